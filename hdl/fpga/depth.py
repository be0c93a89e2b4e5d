# SPDX-License-Identifier: Apache-2.0
"""Logic depth of a netlist, by its cells."""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from functools import cache
import json

from .critical_path import PORTS, Hierarchy, register_of
from .provenance import identify, routed_verilog
from .shell import SHELL
from .synthesis import synthesize_netlist
from .tools import YOSYS, find_tool

__all__ = [
    "CARRY",
    "CARRY_SITES",
    "CELLS",
    "CONSTANT_SITES",
    "RAM_SITES",
    "Cost",
    "carry_feeds",
    "cost_of",
    "depth_report",
    "depth_table",
    "logic_depth",
]


# Yosys counts cells, nextpnr counts sites. They differ where a cell takes several sites, and
# where nextpnr adds cells of its own: a carry has no wire to or from the fabric, so nextpnr leads
# it through a further carry cell where a chain begins with a signal or a constant, and where a
# carry leaves its chain.

CARRY = "CCU2C"
#: LUT sites of a carry cell, and of one that nextpnr adds.
CARRY_SITES = 2
#: LUT sites of a distributed RAM: four hold its words, and two give their inputs to its write port.
RAM_SITES = 6
#: LUT sites that hold the constants zero and one, once in a design.
CONSTANT_SITES = 2

#: A pin that is left open, in Yosys' JSON.
OPEN = "x"


def pin(cell, port):
    """Return the bit at a port of one bit, or :data:`OPEN`."""
    bits = cell["connections"].get(port) or [OPEN]
    return bits[0]


def carry_feeds(cells):
    """Count the carry cells that nextpnr adds, by the cell to which each is added.

    Parameters
    ----------
    cells : dict
        Cells of a flat netlist of the ECP5, as in Yosys' JSON: the one that nextpnr reads.

    Returns
    -------
    Counter
        Name of a carry cell to 1 or 2. One cell is added if the carry input is connected, if only
        to a constant, and no other carry cell drives it. One is added if the carry output is
        connected and does not lead to the input of exactly one carry cell and nowhere else. An
        output without any reader counts as connected, because nextpnr does not look for readers at
        the end of a chain.
    """
    chains = {name: cell for name, cell in cells.items() if cell["type"] == CARRY}
    carries = {pin(cell, "COUT") for cell in chains.values()} - {OPEN}
    readers = defaultdict(list)
    for cell in cells.values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for bit in carries.intersection(bits):
                    readers[bit].append((cell["type"], port))
    feeds = Counter()
    for name, cell in chains.items():
        if pin(cell, "CIN") not in carries | {OPEN}:
            feeds[name] += 1
        if (carry := pin(cell, "COUT")) != OPEN and readers[carry] != [(CARRY, "CIN")]:
            feeds[name] += 1
    return feeds


#: Cells of the ECP5 that are counted, and their names in a report.
CELLS = {
    "LUT4": "luts",
    "CCU2C": "carry_cells",
    "TRELLIS_DPR16X4": "distributed_rams",
    "TRELLIS_FF": "registers",
    "DP16KD": "block_rams",
    "MULT18X18D": "multipliers",
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cells that a component or a whole design takes.

    Parameters
    ----------
    luts : int
        Four-input look-up tables that only serve as such.
    carry_cells : int
        Carry cells; each handles two bits of an adder or a comparator and takes the place of two
        LUTs.
    carry_feeds : int
        Carry cells that nextpnr adds where a carry comes from the fabric or goes there
        (:func:`hdl.fpga.depth.carry_feeds`).
    distributed_rams : int
        Distributed RAMs of 16 words of 4 bits; each takes the place of six LUTs, two of them for
        its write port.
    registers : int
    block_rams : int
    multipliers : int
        Multipliers of 18 by 18 bits.
    """

    luts: int = 0
    carry_cells: int = 0
    carry_feeds: int = 0
    distributed_rams: int = 0
    registers: int = 0
    block_rams: int = 0
    multipliers: int = 0

    @property
    def logic_cells(self):
        """Return the number of LUT sites that the cells take."""
        carries = self.carry_cells + self.carry_feeds
        return self.luts + CARRY_SITES * carries + RAM_SITES * self.distributed_rams

    def __add__(self, other):
        theirs = asdict(other)
        return Cost(**{name: count + theirs[name] for name, count in asdict(self).items()})

    def to_dict(self):
        """Return the cost as JSON-compatible values."""
        return {**asdict(self), "logic_cells": self.logic_cells}


def cost_of(cells):
    """Return the :class:`Cost` of a flat netlist's cells, as in Yosys' JSON."""
    count = Counter(CELLS[cell["type"]] for cell in cells.values() if cell["type"] in CELLS)
    return Cost(**count, carry_feeds=carry_feeds(cells).total())


#: Cells between registers, and their levels of logic. A carry chain is one level, whatever its
#: length, as the way from cell to cell is short. Cells that join two LUTs of a tile need no wire,
#: so they are none. A multiplier without registers of its own takes as long as three LUTs.
LOGIC = {
    "LUT4": 1, "CCU2C": 1, "PFUMX": 0, "L6MUX21": 0, "TRELLIS_DPR16X4": 1, "MULT18X18D": 3,
}  # fmt: skip
#: Cells in which paths begin and end. A distributed RAM is one of them for its write port.
REGISTERS = ("TRELLIS_FF", "DP16KD", "TRELLIS_DPR16X4")
#: Read address of a distributed RAM: the port through which paths lead on.
READ = "RAD"
#: Clock ports, which carry no data.
CLOCKS = ("CLK", "CLKA", "CLKB", "WCK")


def bits_of(cell, direction):
    """Yield the bits at a cell's ports of one direction as (port, bit), without constants."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction and port not in CLOCKS:
            yield from ((port, bit) for bit in bits if isinstance(bit, int))


def net_names(module):
    """Return a name for every bit: the shortest one that is not made up by Yosys, without index."""
    names = {}
    for name, net in module["netnames"].items():
        order = (name.startswith("$"), len(name), name)
        for bit in net["bits"]:
            names[bit] = min(names.get(bit, (True, len(name) + 1, name)), order)
    return {bit: name for bit, (*_, name) in names.items()}


def logic_depth(module, hierarchy):
    """Count the LUTs on the longest path to every register of a flat netlist.

    Parameters
    ----------
    module : dict
        Module of Yosys' JSON.
    hierarchy : Hierarchy
        Hierarchy of the synthesized Verilog.

    Returns
    -------
    endpoints : dict of int to int
        Number of register ports by the levels of logic in front of them.
    paths : list of dict
        One row per pair of registers of a component class, deepest first: ``levels``, ``start`` and
        ``end`` (component and register), ``port``, ``endpoints``.
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
        """Return the levels in front of a bit, and the register in which that path begins."""
        kind, inputs = drivers.get(bit, (None, ()))
        ways = [
            (level + (LOGIC[kind] if port != "CIN" else 0), start)
            for port, source in inputs
            for level, start in [longest(source)]
        ]
        return max(ways, default=(0, bit))

    def register(bit):
        """Return the component class of a register, and its name within the component."""
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


def depth_report(parameters, device, *, folder, preset=None, inputs=1):
    """Synthesize an accelerator as for routing; return its logic depth as JSON-compatible values.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    device : Device
    folder : path-like
        Folder for intermediate files and logs.
    preset : str or None
        Name of the preset, repeated in the report.
    inputs : int
        Inputs that are merged in front of the accelerator (:class:`hdl.fpga.shell.RoutingShell`).
    """
    find_tool(YOSYS)  # fails before the work begins
    verilog = routed_verilog(parameters, device, inputs)
    path = synthesize_netlist(verilog, top=SHELL, folder=folder, wide_luts=False)
    module = json.loads(path.read_text(encoding="utf-8"))["modules"][SHELL]
    endpoints, paths = logic_depth(module, Hierarchy(verilog, top=SHELL))
    return {
        "preset": preset,
        "parameters": parameters.words(),
        "inputs": inputs,
        "device": device.name,
        "endpoints": {str(levels): count for levels, count in endpoints.items()},
        "paths": paths,
        "synthesis": identify(YOSYS).to_dict(),
    }


def depth_table(report, *, limit):
    """Return a report as text: endpoints by levels, then the deepest ``limit`` paths."""
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
