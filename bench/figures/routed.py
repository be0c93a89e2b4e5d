# SPDX-License-Identifier: Apache-2.0
"""Figures of routed accelerators: cycles counted in simulation, at the clock of a routing report.

Every figure names its conditions. Beside it stands the same figure for groups of one, the strict
outer order, in which no probes share a pass.
"""

from functools import cache
import json

from hdl.fpga.reports import (
    ONE_IN,
    REPORTS,
    conditions,
    describe,
    earlier_design,
    per_second,
    routed_parameters,
)
from hdl.presets import PRESETS
from sim.benches.saturated_run import saturate

from .registry import NotMeasured, Result, figure

__all__ = ["clock", "rate", "routed_report"]

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
