# SPDX-License-Identifier: Apache-2.0
"""``python -m hdl depth``: how many LUTs stand between registers, before anything is placed."""

from collections import Counter
from functools import cache
import json

from hdl.verilog.conversion import to_verilog

from .critical_path import PORTS, register_of
from .hierarchy import Hierarchy
from .provenance import identify
from .shell import SHELL, RoutingShell
from .synthesis import synthesize_netlist
from .tools import YOSYS, find_tool

__all__ = ["depth_report", "depth_table", "logic_depth"]

#: Cells between registers, and the levels that each is: a carry chain is one, however long, as the
#: way from cell to cell is short; what joins two LUTs of a tile takes no wire. A multiplier without
#: registers of its own takes as long as three LUTs.
LOGIC = {
    "LUT4": 1, "CCU2C": 1, "PFUMX": 0, "L6MUX21": 0, "TRELLIS_DPR16X4": 1, "MULT18X18D": 3,
}  # fmt: skip
#: Cells that paths begin in, and end in. A distributed RAM is one for what is written.
REGISTERS = ("TRELLIS_FF", "DP16KD", "TRELLIS_DPR16X4")
#: The port of a distributed RAM that leads through it.
READ = "RAD"
#: Ports that data do not come through.
CLOCKS = ("CLK", "CLKA", "CLKB", "WCK")


def bits_of(cell, direction):
    """Yield the ports of a cell in a direction: name and bit, constants left out."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction and port not in CLOCKS:
            yield from ((port, bit) for bit in bits if isinstance(bit, int))


def net_names(module):
    """Return a name for every bit: the shortest one that is not Yosys' own, without its index."""
    names = {}
    for name, net in module["netnames"].items():
        order = (name.startswith("$"), len(name), name)
        for bit in net["bits"]:
            names[bit] = min(names.get(bit, (True, len(name) + 1, name)), order)
    return {bit: name for bit, (*_, name) in names.items()}


def logic_depth(module, hierarchy):
    """Count the LUTs on the longest way to every register of a flat netlist.

    Parameters
    ----------
    module : dict
        As Yosys writes it, in JSON.
    hierarchy : Hierarchy
        Of the Verilog that was synthesized.

    Returns
    -------
    endpoints : dict of int to int
        Levels to how many ports of registers have so many in front of them.
    paths : list of dict
        ``levels``, ``start``, ``end`` (component and register), ``port``, ``endpoints``: one for
        each pair of registers of a component class, deepest first.
    """
    drivers, ends, names = {}, [], net_names(module)
    for cell in module["cells"].values():
        kind, inputs = cell["type"], list(bits_of(cell, "input"))
        outputs = [bit for _, bit in bits_of(cell, "output")]
        through = [way for way in inputs if kind not in REGISTERS or way[0] == READ]
        if kind in LOGIC:
            drivers |= dict.fromkeys(outputs, (kind, through))
        if kind in REGISTERS and outputs:
            ends += [(bit, outputs[0], port) for port, bit in inputs if port != READ]

    @cache
    def longest(bit):
        """Levels in front of a bit, and the register that they begin in."""
        kind, inputs = drivers.get(bit, (None, ()))
        ways = [
            (level + (LOGIC[kind] if port != "CIN" else 0), start)
            for port, source in inputs
            for level, start in [longest(source)]
        ]
        return max(ways, default=(0, bit))

    def register(bit):
        """Say in which component class a register is, and what it is called there."""
        return ".".join(register_of(hierarchy, names.get(bit, "")))

    endpoints, paths = Counter(), {}
    for bit, output, port in ends:
        levels, start = longest(bit)
        endpoints[levels] += 1
        key = (register(start), register(output), PORTS.get(port, port))
        most, count = paths.get(key, (0, 0))
        paths[key] = (max(most, levels), count + 1)
    order = sorted(paths, key=lambda key: (-paths[key][0], key))
    columns = ("start", "end", "port", "levels", "endpoints")
    rows = [dict(zip(columns, (*key, *paths[key]), strict=True)) for key in order]
    return dict(sorted(endpoints.items())), rows


def depth_report(parameters, device, *, folder, preset=None):
    """Synthesize an accelerator as it is routed; return how deep its logic is, for JSON.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    device : Device
    folder : path-like
        Where intermediate files and logs go.
    preset : str or None
        Name of the parameters, repeated in the report.
    """
    find_tool(YOSYS)  # before the work begins
    verilog = to_verilog(RoutingShell(parameters), name=SHELL, platform=device)
    path = synthesize_netlist(verilog, top=SHELL, folder=folder, wide_luts=False)
    module = json.loads(path.read_text(encoding="utf-8"))["modules"][SHELL]
    endpoints, paths = logic_depth(module, Hierarchy(verilog, top=SHELL))
    return {
        "preset": preset,
        "parameters": parameters.to_dict(),
        "device": device.name,
        "endpoints": {str(levels): count for levels, count in endpoints.items()},
        "paths": paths,
        "synthesis": identify(YOSYS).to_dict(),
    }


def depth_table(report, *, limit):
    """Return a report as lines of text: endpoints by levels, then the deepest ``limit`` paths."""
    lines = [["levels", "endpoints", "from", "to", "port"]]
    lines += [
        [str(path["levels"]), str(path["endpoints"]), path["start"], path["end"], path["port"]]
        for path in report["paths"][:limit]
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    counts = ", ".join(f"{count} with {levels}" for levels, count in report["endpoints"].items())
    note = "levels = LUTs one behind the other; a carry chain is one"
    return "\n".join([f"ports of registers by levels: {counts}", "", *text, "", note])
