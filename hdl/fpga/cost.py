# SPDX-License-Identifier: Apache-2.0
"""Size of an accelerator by component, here and on large devices."""

from collections import Counter, defaultdict
from dataclasses import asdict
import json
from pathlib import Path

from hdl.families.choice import make_accelerator
from hdl.verilog.conversion import TOP, to_verilog

from .critical_path import Hierarchy, class_of
from .depth import CELLS, CONSTANT_SITES, Cost, carry_feeds
from .provenance import design_hash, identify, routed_verilog
from .route import placed_netlist
from .shell import SHELL
from .synthesis import run_yosys
from .tools import YOSYS, find_tool

__all__ = ["cost_report", "cost_table", "estimate", "estimate_text", "resources_of"]


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
    accelerator, as long as nextpnr packs by the rules of :mod:`hdl.fpga.depth`.

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
        "parameters": parameters.words(),
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


#: Synthesizes every module by itself for UltraScale+. Yosys knows no Versal, whose LUTs have six
#: inputs as well.
SCRIPT = """\
read_verilog {top}.v
synth_xilinx -family xcup -noiopad -noclkbuf -top {top}
tee -q -o modules.json stat -json
"""
#: What each cell of Yosys' mapping takes of a device. Carry chains and wide multiplexers stand
#: beside LUTs that are counted anyway.
TAKES = {
    **{f"LUT{inputs}": ("luts", 1) for inputs in range(1, 7)},
    **dict.fromkeys(("INV", "SRL16E", "SRLC32E"), ("luts", 1)),
    **dict.fromkeys(("RAM32X1D", "RAM64X1D"), ("luts", 2)),
    **dict.fromkeys(("RAM32M", "RAM64M"), ("luts", 4)),
    **dict.fromkeys(("RAM32M16", "RAM64M8"), ("luts", 8)),
    **dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), ("registers", 1)),
    "RAMB18E2": ("block_rams", 1),
    "RAMB36E2": ("block_rams", 2),
    "DSP48E2": ("multipliers", 1),
}
RESOURCES = ("luts", "registers", "block_rams", "multipliers")
#: Two numbers of cores whose difference tells what one core takes with its share of the trees.
FEW, MANY = 2, 4


def resources_of(statistics, counts):
    """Return the resources of a design, by name.

    Parameters
    ----------
    statistics : dict
        Output of Yosys' ``stat -json``.
    counts : dict
        Number of instances of each module.
    """
    total = Counter(dict.fromkeys(RESOURCES, 0))
    for module, numbers in statistics["modules"].items():
        times = counts.get(module.removeprefix("\\"), 0)
        for cell, number in numbers["num_cells_by_type"].items():
            if cell in TAKES:
                resource, each = TAKES[cell]
                total[resource] += times * number * each
    return dict(total)


def synthesized(parameters, folder):
    """Synthesize an accelerator module by module; return its resources."""
    verilog = to_verilog(make_accelerator(parameters))
    path = run_yosys(SCRIPT.format(top=TOP), verilog, "modules.json", top=TOP, folder=folder)
    statistics = json.loads(path.read_text(encoding="utf-8"))
    return resources_of(statistics, Hierarchy(verilog, top=TOP).counts())


def most_cores(device, fixed, each, usable):
    """Return how many cores fit, and the resource of which there is too little for one more.

    Parameters
    ----------
    device : LargeDevice
    fixed, each : dict of str to float
        Resources of what an accelerator has once, and of a core.
    usable : float
        Share of the device that may be filled.
    """
    room = {
        name: int((usable * getattr(device, name) - fixed[name]) // each[name])
        for name in RESOURCES
        if each[name] > 0
    }
    least = min(room, key=room.__getitem__)
    return max(0, room[least]), least


def estimate(parameters, device, *, folder, mhz, usable):
    """Return an estimate as JSON-compatible values: cores, comparators, window, rate.

    Two accelerators, of :data:`FEW` and :data:`MANY` cores, are synthesized. Their difference is
    what a core takes with its share of the trees; the rest is there once. Clock and usable share
    are assumptions of the caller: nothing is placed or routed.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of a core; their number of cores does not matter.
    device : LargeDevice
    folder : path-like
        Folder for intermediate files and logs.
    mhz : float
        Clock to compute rates with.
    usable : float
        Share of each resource that may be filled, above 0 and at most 1.

    Raises
    ------
    ValueError
        If the share is none, or if not even one core fits.
    """
    if not 0 < usable <= 1:
        raise ValueError(f"Usable share must be above 0 and at most 1, not {usable}")
    find_tool(YOSYS)  # fails before the work begins
    few, many = (
        synthesized(parameters.with_(cores=cores), Path(folder) / str(cores))
        for cores in (FEW, MANY)
    )
    each = {name: (many[name] - few[name]) / (MANY - FEW) for name in RESOURCES}
    fixed = {name: max(0.0, few[name] - FEW * each[name]) for name in RESOURCES}
    cores, limit = most_cores(device, fixed, each, usable)
    if cores == 0:
        raise ValueError(
            f"Not one core fits {usable:.0%} of the {device.title}: there are too few {limit}; "
            f"give a core fewer lanes, or a smaller sub-window"
        )
    largest = parameters.with_(cores=cores)
    decides = parameters.engine.counted == "comparisons"
    return {
        "estimate": True,
        "device": asdict(device),
        "usable": usable,
        "assumed_mhz": mhz,
        "per_core": each,
        "once": fixed,
        "cores": cores,
        "limited_by": limit,
        "used": {name: round(fixed[name] + cores * each[name]) for name in RESOURCES},
        "comparators": largest.comparators,
        "window": largest.capacity,
        "pairs_per_s": largest.comparators * mhz * 1e6 if decides else None,
        "rate": parameters.engine.rate,
        "synthesis": identify(YOSYS).to_dict(),
    }


def estimate_text(report):
    """Return an estimate as text, with its arithmetic."""
    device, usable = report["device"], report["usable"]
    lines = [
        f"ESTIMATE for the {device['title']}: nothing was placed or routed.",
        f"Cells of synth_xilinx, every module by itself; {usable:.0%} of the device may be filled.",
        "",
        f"{'':12} {'once':>10} {'per core':>10} {'of':>10} {'used':>10}",
    ]
    for name in RESOURCES:
        used = report["used"][name]
        lines.append(
            f"{name.replace('_', ' '):12} {report['once'][name]:10.0f} "
            f"{report['per_core'][name]:10.1f} {device[name]:10} {used:10} "
            f"{used / device[name]:4.0%}"
        )
    limit, cores = report["limited_by"], report["cores"]
    room = f"({usable:g} x {device[limit]} - {report['once'][limit]:.0f})"
    each = f"{report['per_core'][limit]:.1f} {limit.replace('_', ' ')}"
    size = f"comparators = {report['comparators']}, window = {report['window']} tuples per side"
    lines += ["", f"cores = {room} / {each} = {cores}", size]
    if report["pairs_per_s"]:
        mhz = report["assumed_mhz"]
        lines.append(
            f"rate = {report['comparators']} comparators x {mhz:g} MHz (assumed) = "
            f"{report['pairs_per_s']:.3g} {report['rate']} per second at most, with full groups"
        )
    return "\n".join(lines)
