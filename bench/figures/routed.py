# SPDX-License-Identifier: Apache-2.0
"""Figures of routed accelerators: cycles counted in simulation, at the clock of a routing report.

Every figure names its conditions. Beside it stands the same figure for groups of one, the strict
outer order, in which no probes share a pass. The last figure is how far the cost that ``python -m
hdl cost`` tells is from what nextpnr has placed.
"""

from functools import cache, partial
import json
from pathlib import Path

from hdl.fpga.cost import cost_report
from hdl.fpga.devices import find_device
from hdl.fpga.provenance import design_hash, identify, routed_verilog
from hdl.fpga.reports import (
    ONE_IN,
    REPORTS,
    conditions,
    describe,
    earlier_design,
    per_second,
    published,
    routed_parameters,
)
from hdl.fpga.tools import YOSYS
from hdl.presets import PRESETS
from sim.benches.saturated_run import saturate

from .registry import NotMeasured, Result, figure

__all__ = ["SCANS", "clock", "errors_of", "kept_cost", "rate", "routed_report"]

#: Tuples per side of the window for the figure of tuples per second, and the rate of the paper's
#: software, scaled to that window. On 28 cores of Xeon processors, the software joins 5,200 tuples
#: per second with a window of 2**21, which takes 64 times the comparisons.
WINDOW = 1 << 15
PAPER_TUPLES = 5_200 << 6


def routed_report(preset, speed):
    """Return the published routing report of a preset.

    Raises
    ------
    NotMeasured
        If there is no report, or the report has other parameters than the preset.
    """
    path = REPORTS / f"{preset}-lfe5u-85f-grade{speed}.json"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotMeasured(
            f"{path} is missing; write it with: make route PRESET={preset} SPEED={speed}"
        ) from error
    if routed_parameters(report) != PRESETS[preset]:
        raise NotMeasured(f"{path} is of other parameters than the preset now has; route it again")
    return report


@cache
def provenance(preset, speed):
    """Return a note and details that describe a report: its clock, programs and design."""
    routed = routed_report(preset, speed)
    programs = [f"{router['name']} {router['version']}" for router in routed["routers"]]
    locked = any(router["locked"] for router in routed["routers"])
    earlier = earlier_design(routed)
    note = (
        f"routed at {routed['fmax_mhz']} MHz, grade {speed}, the slowest of "
        f"{len(routed['runs'])} seeds, by {', '.join(programs)}"
        f"{'' if locked else ' (no seed by the locked package)'}"
        f"{'' if earlier is None else f'; of an earlier design ({earlier})'}"
    )
    return note, {
        "fmax_mhz": routed["fmax_mhz"],
        "routers": programs,
        "locked_seed": locked,
        "earlier_design": earlier,
    }


def clock(preset, speed):
    """Return the clock of a preset from its published report: that of the slowest seed."""
    routed = routed_report(preset, speed)
    note, details = provenance(preset, speed)
    return Result(routed["fmax_mhz"], notes=(note,), details={"conditions": details})


@cache
def counts(preset, window, report):
    """Return the simulated accelerator's records for full groups and for groups of one."""
    full, single = saturate(PRESETS[preset], report, matches=[ONE_IN], window=window)
    return {"full": full, "single": single}


def rate(preset, name, groups, report, *, window=None):
    """Return how many ``name`` per second the routed accelerator performs with full windows."""
    routed = routed_report(preset, 8)
    note, details = provenance(preset, 8)
    record = counts(preset, window, report)[groups]
    value = per_second(PRESETS[preset].engine, record, routed["fmax_mhz"])[name]
    return Result(
        value,
        notes=(describe(record), note),
        details={"conditions": {**conditions(record), **details}},
    )


@figure("scan.routed_mhz_16_cores", unit="MHz", goal=">= 150")
def routed_mhz_16_cores(report):
    """Clock of the preset `paper`, routed for the slowest speed grade."""
    return clock("paper", 6)


@figure("scan.tuples_per_s", unit="tuples/s", goal=f">= {PAPER_TUPLES}")
def tuples_per_s(report):
    """Tuples of both sides per second that the routed `ecp5-band` joins with 2**15-tuple windows.

    The goal is the rate of the paper's 28 cores, 5,200 tuples per second at a window of 2**21,
    scaled to the same number of comparisons.
    """
    return rate("ecp5-band", "tuples", "full", report, window=WINDOW)


@figure("scan.tuples_per_s_groups_of_one", unit="tuples/s", goal=None)
def tuples_per_s_groups_of_one(report):
    """Tuples per second, as above, in strict outer order."""
    return rate("ecp5-band", "tuples", "single", report, window=WINDOW)


@figure("index.routed_mhz", unit="MHz", goal=">= 160")
def index_routed_mhz(report):
    """Clock of the preset `ecp5-index`, the largest ring of an LFE5U-85F, at grade 8."""
    return clock("ecp5-index", 8)


@figure("index.default_routed_mhz", unit="MHz", goal=">= 140")
def index_default_routed_mhz(report):
    """Clock of the preset `ecp5-default`, the twin of the default index device, at grade 8."""
    return clock("ecp5-default", 8)


@figure("index.routed_tuples_per_s", unit="tuples/s", goal=">= 2.5e8")
def index_routed_tuples_per_s(report):
    """Tuples of both sides, in turn, that the routed `ecp5-index` accepts per second."""
    return rate("ecp5-index", "tuples", "full", report, window=PRESETS["ecp5-index"].capacity)


@figure("index.routed_tuples_per_s_groups_of_one", unit="tuples/s", goal=None)
def index_routed_tuples_per_s_groups_of_one(report):
    """Tuples per second, as above, in strict outer order."""
    return rate("ecp5-index", "tuples", "single", report, window=PRESETS["ecp5-index"].capacity)


# Scans that fill a device: pairs per second by digests and by whole keys, and the share of it that
# a twin with 48-bit timestamps reaches.

#: What is counted, with its goal and the preset that does it. Whole keys have another name than
#: digests, because a comparator of digests compares some bits of two keys only.
SCANS = {
    "pairs_decided_per_s_equality": (">= 3e11", "ecp5-equality-wide"),
    "pairs_decided_per_s_band": (">= 2e11", "ecp5-band-digest"),
    "whole_key_per_s_equality": (">= 1e11", "ecp5-equality-whole"),
    "whole_key_per_s_band": (">= 6.2e10", "ecp5-band"),
}


def scan_rate(preset, groups, report):
    """Return the pairs per second that a routed preset decides, or compares by whole keys."""
    return rate(preset, PRESETS[preset].engine.rate, groups, report)


def timed_over_plain(preset, report):
    """Return the rate of a preset's twin with timestamps over that of the preset."""
    plain = scan_rate(preset, "full", report)
    timed = scan_rate(f"{preset}-timed", "full", report)
    return Result(
        timed.value / plain.value,
        notes=tuple(f"{name}: {note}" for name, result in
                    (("plain", plain), ("timed", timed)) for note in result.notes),
        details={"plain": plain.details, "timed": timed.details},
    )  # fmt: skip


for name, (goal, preset) in SCANS.items():
    unit = "comparisons/s" if "whole_key" in name else "pairs/s"
    row = f"scan.routed_{name}"
    figure(row, unit=unit, goal=goal)(partial(scan_rate, preset, "full"))
    figure(f"{row}_groups_of_one", unit=unit, goal=None)(partial(scan_rate, preset, "single"))
    figure(f"scan.routed_timed_over_plain_{name}", unit="", goal=">= 0.9")(
        partial(timed_over_plain, preset)
    )


# The cost that is told beside what is placed.

#: Resources, as a routing report and as a cost names them.
RESOURCES = {"lut4": "logic_cells", "registers": "registers", "block_rams": "block_rams"}
#: Folder of the costs that were told before.
KEPT = Path("build") / "cost-figures"


def errors_of(routed, cost):
    """Return by how much each resource of a cost differs from a routing report, as a share of it.

    The shell is part of both.
    """
    used = {name: routed["utilization"][name]["used"] for name in RESOURCES}
    told = {name: cost["total"][key] + cost["shell"][key] for name, key in RESOURCES.items()}
    return {name: told[name] / used[name] - 1 for name in RESOURCES}


def kept_cost(preset, device, design, *, folder=KEPT):
    """Return the cost of a preset: as it was told before, if design and Yosys are the same."""
    path, program = folder / f"{preset}-{device.name}.json", identify(YOSYS).to_dict()
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if (kept["design"], kept["synthesis"]) == (design, program):
            return kept
    cost = cost_report(PRESETS[preset], device, folder=folder / preset, preset=preset)
    path.write_text(json.dumps(cost), encoding="utf-8")
    return cost


@figure("hdl.cost.worst_error", unit="", goal="<= 0.1")
def worst_error(report):
    """Largest error of ``python -m hdl cost`` in LUTs, registers or block RAMs of a routed preset.

    A share of what nextpnr has placed. Only the routing reports of the current design count. A
    preset takes a minute or two, but none if it was measured before.
    """
    worst, earlier, notes, details = 0.0, [], [], {}
    for routed in published().values():
        if routed.get("inputs", 1) > 1:  # an accelerator with its merge
            continue
        preset, device = routed["preset"], find_device(routed["device"])
        if preset is None or routed_parameters(routed) != PRESETS.get(preset):
            continue
        design = design_hash(routed_verilog(PRESETS[preset], device))
        if design != routed["design"]:
            earlier.append(preset)
            continue
        report(f"cost of {preset}")
        details[preset] = errors_of(routed, kept_cost(preset, device, design))
        worst = max(worst, *map(abs, details[preset].values()))
        told = ", ".join(f"{name} {error:+.1%}" for name, error in details[preset].items())
        notes.append(f"{preset}: {told}")
    if not details:
        raise NotMeasured("No routing report is of the current design; route one: make route")
    if earlier:
        notes.append(f"reports of an earlier design do not count: {', '.join(earlier)}")
    return Result(worst, notes=tuple(notes), details={"errors": details})
