# SPDX-License-Identifier: Apache-2.0
"""``python -m hdl cost``: the resources that each component of an accelerator takes on a device."""

from collections import Counter, defaultdict
import json
from pathlib import Path

from .cells import CELLS, Cost
from .hierarchy import Hierarchy, class_of
from .packing import CONSTANT_SITES, carry_feeds
from .provenance import design_hash, identify, routed_verilog
from .route import placed_netlist
from .shell import SHELL
from .tools import YOSYS, find_tool

__all__ = ["cost_report", "cost_table"]


def component_costs(cells, hierarchy):
    """Return the :class:`Cost` of every component class, without its subcomponents.

    Cells of a flat netlist are named after nets, and a net on a boundary is named after either
    side. So a cell may be attributed to a neighbouring component; the sum is exact.

    Parameters
    ----------
    cells : dict
        Cells of a flat netlist, as in Yosys' JSON.
    hierarchy : Hierarchy
        Hierarchy of the synthesized Verilog.
    """
    feeds, counts = carry_feeds(cells), defaultdict(Counter)
    for name, cell in cells.items():
        if cell["type"] in CELLS:
            count = counts[class_of(hierarchy.locate(name)[1])]
            count[CELLS[cell["type"]]] += 1
            count["carry_feeds"] += feeds[name]
    return {component: Cost(**count) for component, count in counts.items()}


def component_rows(costs, counts):
    """Return one row per component class, largest first: name, count, total :class:`Cost`."""
    numbers = Counter()
    for module, count in counts.items():
        numbers[class_of(module)] += count
    order = sorted(numbers, key=lambda name: (-costs.get(name, Cost()).logic_cells, name))
    return [(name, numbers[name], costs.get(name, Cost())) for name in order]


def cost_report(parameters, device, *, folder, preset=None):
    """Synthesize an accelerator as for routing, and return its cost as JSON-compatible values.

    The netlist is the one that :func:`hdl.fpga.route.route` places, and its cells are counted as
    nextpnr packs them. So LUT sites, registers, block RAMs and multipliers are those of a routed
    accelerator, as long as nextpnr packs by the rules of :mod:`hdl.fpga.packing`.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    device : Device
        Device whose shares are reported.
    folder : path-like
        Folder for intermediate files and logs.
    preset : str or None
        Name of the preset, repeated in the report.

    Returns
    -------
    dict
        ``components`` and their sum, ``total``, are those of the accelerator. ``shell`` is the cost
        of the shell in which an accelerator is routed, with the LUTs of the design's constants.
    """
    find_tool(YOSYS)  # fails before the work begins
    verilog = routed_verilog(parameters, device)
    path, _ = placed_netlist(verilog, parameters, device, folder=Path(folder))
    cells = json.loads(path.read_text(encoding="utf-8"))["modules"][SHELL]["cells"]
    hierarchy = Hierarchy(verilog, top=SHELL)
    costs = component_costs(cells, hierarchy)
    shell = costs.pop(SHELL, Cost()) + Cost(luts=CONSTANT_SITES)
    counts = {module: n for module, n in hierarchy.counts().items() if module != SHELL}
    rows = component_rows(costs, counts)
    total = sum((cost for _, _, cost in rows), Cost())
    shares = {
        "logic_cells": total.logic_cells / device.logic_cells,
        "registers": total.registers / device.logic_cells,
        "block_rams": total.block_rams / device.block_rams,
    }
    return {
        "preset": preset,
        "parameters": parameters.to_dict(),
        "device": device.name,
        "design": design_hash(verilog),
        "components": [
            {"component": name, "count": count, "total": cost.to_dict()}
            for name, count, cost in rows
        ],
        "total": total.to_dict(),
        "shell": shell.to_dict(),
        "share": {name: round(share, 4) for name, share in shares.items()},
        "synthesis": identify(YOSYS).to_dict(),
    }


def each(number, count):
    """Return ``number`` divided by ``count`` as text, marked with ``~`` if rounded."""
    return str(number // count) if number % count == 0 else f"~{number / count:.0f}"


def cost_table(report):
    """Return a report as text: one row per component class, with cost of one and of all."""
    heads = ["LUT4", "carry", "fed", "dist. RAM", "cells", "registers", "block RAM", "multiplier"]
    keys = [
        "luts", "carry_cells", "carry_feeds", "distributed_rams", "logic_cells", "registers",
        "block_rams", "multipliers",
    ]  # fmt: skip
    lines = [["component", "count", "cells each", "registers each", *heads]]
    for row in report["components"]:
        count, total = row["count"], row["total"]
        ones = [each(total["logic_cells"], count), each(total["registers"], count)]
        lines.append([row["component"], str(count), *ones, *(str(total[key]) for key in keys)])
    lines.append(["total", "", "", "", *(str(report["total"][key]) for key in keys)])
    shares = [f"{report['share'][key]:.1%}" if key in report["share"] else "" for key in keys]
    lines.append([f"of the {report['device']}", "", "", "", *shares])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = []
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]
        text.append("  ".join(cells).rstrip())
    shell = report["shell"]
    notes = [
        "cells = LUT4 + 2 x (carry + fed) + 6 x distributed RAM: the LUT sites that nextpnr fills",
        "fed: carry cells that nextpnr adds where a chain begins or ends in the fabric",
        "a row is without its subcomponents",
    ]
    more = f"{shell['logic_cells']} cells and {shell['registers']} registers more"
    return "\n".join([*text, "", *notes, f"the shell in which it is routed takes {more}"])
