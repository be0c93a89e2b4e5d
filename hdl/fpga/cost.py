# SPDX-License-Identifier: Apache-2.0
"""``python -m hdl cost``: the resources that each component of an accelerator takes on a device."""

from dataclasses import asdict, astuple, dataclass

from hdl.architecture import make_accelerator
from hdl.verilog.conversion import TOP, to_verilog

from .hierarchy import Hierarchy, class_of
from .provenance import identify
from .synthesis import synthesize_modules
from .tools import YOSYS, find_tool

__all__ = ["Cost", "cost_report", "cost_table", "module_costs"]

#: Cells of the ECP5 that are counted, and their names in a report.
CELLS = {
    "LUT4": "luts",
    "CCU2C": "carry_cells",
    "TRELLIS_DPR16X4": "distributed_rams",
    "TRELLIS_FF": "registers",
    "DP16KD": "block_rams",
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cells that a component takes.

    Parameters
    ----------
    luts : int
        Four-input look-up tables that only serve as such.
    carry_cells : int
        Carry cells; each handles two bits of an adder or a comparator and takes the place of two
        LUTs.
    distributed_rams : int
        Distributed RAMs of 16 words of 4 bits; each takes the place of four LUTs.
    registers : int
    block_rams : int
    """

    luts: int = 0
    carry_cells: int = 0
    distributed_rams: int = 0
    registers: int = 0
    block_rams: int = 0

    @property
    def logic_cells(self):
        """Return the number of LUT sites that the component takes."""
        return self.luts + 2 * self.carry_cells + 4 * self.distributed_rams

    def __add__(self, other):
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Cost(**dict(zip(CELLS.values(), map(sum, pairs), strict=True)))

    def times(self, number):
        """Return the cost of ``number`` such components."""
        return Cost(**{name: count * number for name, count in asdict(self).items()})

    def to_dict(self):
        """Return the cost as JSON-compatible values."""
        return {**asdict(self), "logic_cells": self.logic_cells}


def module_costs(statistics):
    """Return the cost of every module, without its submodules.

    Parameters
    ----------
    statistics : dict
        Output of Yosys' ``stat -json``.
    """
    costs = {}
    for module, numbers in statistics["modules"].items():
        cells = numbers["num_cells_by_type"]
        costs[module.removeprefix("\\")] = Cost(
            **{name: cells.get(cell, 0) for cell, name in CELLS.items()}
        )
    return costs


def component_rows(costs, counts):
    """Return one row per component class, largest first: name, count, total :class:`Cost`."""
    rows = {}
    for module, count in counts.items():
        name = class_of(module)
        before, cost = rows.get(name, (0, Cost()))
        rows[name] = (before + count, cost + costs.get(module, Cost()).times(count))
    order = sorted(rows, key=lambda name: (-rows[name][1].logic_cells, name))
    return [(name, *rows[name]) for name in order]


def cost_report(parameters, device, *, folder, preset=None):
    """Synthesize an accelerator and return its cost as JSON-compatible values.

    Every module is synthesized by itself. So the report tells exactly where cells are, and somewhat
    overestimates their number, as nothing is optimized across module boundaries.

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
    """
    find_tool(YOSYS)  # fails before the work begins
    verilog = to_verilog(make_accelerator(parameters), platform=device)
    statistics = synthesize_modules(verilog, top=TOP, folder=folder)
    rows = component_rows(module_costs(statistics), Hierarchy(verilog, top=TOP).counts())
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
        "components": [
            {"component": name, "count": count, "total": cost.to_dict()}
            for name, count, cost in rows
        ],
        "total": total.to_dict(),
        "share": {name: round(share, 4) for name, share in shares.items()},
        "synthesis": identify(YOSYS).to_dict(),
    }


def each(number, count):
    """Return ``number`` divided by ``count`` as text, marked with ``~`` if rounded."""
    return str(number // count) if number % count == 0 else f"~{number / count:.0f}"


def cost_table(report):
    """Return a report as text: one row per component class, with cost of one and of all."""
    heads = ["LUT4", "carry", "dist. RAM", "cells", "registers", "block RAM"]
    keys = ["luts", "carry_cells", "distributed_rams", "logic_cells", "registers", "block_rams"]
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
    note = "cells = LUT4 + 2 x carry + 4 x distributed RAM; a row is without its subcomponents"
    return "\n".join([*text, "", note])
