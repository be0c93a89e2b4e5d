# SPDX-License-Identifier: Apache-2.0
"""Estimate of how large an accelerator can be on a device that no open tool can route."""

from collections import Counter
from dataclasses import asdict
import json
from pathlib import Path

from hdl.architecture import make_accelerator
from hdl.verilog.conversion import TOP, to_verilog

from .hierarchy import Hierarchy
from .provenance import identify
from .rates import comparators, rate_name
from .synthesis import run_yosys
from .tools import YOSYS, find_tool

__all__ = ["estimate", "estimate_text", "resources_of"]

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
        "comparators": comparators(largest),
        "window": largest.capacity,
        "pairs_per_s": comparators(largest) * mhz * 1e6 if parameters.engine == "scan" else None,
        "rate": rate_name(parameters),
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
