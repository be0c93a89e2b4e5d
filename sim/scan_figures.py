# SPDX-License-Identifier: Apache-2.0
"""Figures of the scan engine: its efficiency, its clock, and how quick its simulation is."""

from contextlib import closing
import json
import os
from pathlib import Path
import statistics
import tempfile
import time

from hdl.bundle import write_bundle
from hdl.parameters import PRESETS, JoinParameters
from host.device.simulated import SimulatedDevice

from .figures import NotMeasured, figure
from .library import build_library
from .saturated_run import FREQUENT, RARE, SaturatedRun, tuples

__all__ = ["ROUTING", "SCAN", "routed_mhz"]

#: The accelerators that the scan is measured on: sixteen cores of 512 keys.
SCAN = PRESETS["paper"].with_(sub_window=512, fan_in=4)


def sim_rate(parameters, report):
    """Return comparisons per second of wall-clock time, the median of nine runs."""
    with closing(SaturatedRun(parameters, report)) as run:
        run.bound(RARE)
        rates = []
        for _ in range(9):
            seconds, counts = run.measure(500 * parameters.probes)
            rates.append(counts["comparisons"] / seconds)
        return statistics.median(rates)


@figure("scan.sim_comparisons_per_s", unit="comparisons/s", goal=">= 2e8")
def sim_comparisons_per_s(report):
    """Comparisons that the simulator library makes per second of wall-clock time.

    16 cores, 4 lanes, 8 probes, full windows, one thread; the median of nine runs.
    """
    return sim_rate(SCAN.with_(sub_window=2000, lanes=4, probes=8), report)


@figure("scan.sim_comparisons_per_s_one_lane", unit="comparisons/s", goal=">= 1.5e7")
def sim_comparisons_per_s_one_lane(report):
    """The same with a single lane and windows of 8,000 tuples."""
    return sim_rate(SCAN.with_(sub_window=500, probes=8), report)


#: What has been measured of the scan: bound and share of useful comparisons.
_efficiencies = []


def efficiencies(report):
    """Return the cycle efficiency of every shape at both match rates, measured once."""
    if not _efficiencies:
        for probes in (1, 4, 8):
            for lanes in (1, 2):
                parameters = SCAN.with_(probes=probes, lanes=lanes)
                with closing(SaturatedRun(parameters, report)) as run:
                    for bound in (RARE, FREQUENT):
                        run.bound(bound)
                        _, counts = run.measure(400 * probes)
                        comparators = 2 * parameters.cores * lanes * probes
                        share = counts["comparisons"] / (comparators * counts["cycles"])
                        report(f"figures: {probes} probes, {lanes} lanes, +-{bound}: {share:.4f}")
                        _efficiencies.append((bound, share))
    return _efficiencies


@figure("scan.cycle_efficiency", unit="of 1", goal=">= 0.99")
def cycle_efficiency(report):
    """Useful comparisons by comparators and cycles, counted in hardware, with full windows.

    16 cores of 512 keys, one match in 250,000; the lowest of 1, 4, 8 probes with 1 and 2 lanes.
    """
    return min(share for bound, share in efficiencies(report) if bound == RARE)


@figure("scan.cycle_efficiency_crowded", unit="of 1", goal=">= 0.9")
def cycle_efficiency_crowded(report):
    """The same with one match in 1,000."""
    return min(share for bound, share in efficiencies(report) if bound == FREQUENT)


#: Where the committed reports of `python -m hdl route` are.
ROUTING = Path("docs") / "routing"
#: Tuples per side of the window that tuples are counted with, and the rate of the paper's FPGA: it
#: joins 5,200 tuples per second with a window of 2**21, that is, with 64 times the comparisons.
WINDOW = 1 << 15
PAPER_TUPLES = 5_200 << 6


def routed_mhz(preset, speed):
    """Return the clock that the committed report of a preset says: its slowest seed's."""
    path = ROUTING / f"{preset}-lfe5u-85f-grade{speed}.json"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotMeasured(
            f"{path} is missing; write it with: make route PRESET={preset} SPEED={speed}"
        ) from error
    if JoinParameters.from_dict(report["parameters"]) != PRESETS[preset]:
        raise NotMeasured(f"{path} is of other parameters than the preset now has; route it again")
    return report["fmax_mhz"]


def routed_rate(preset, counted, report, *, window=None):
    """Return how many of ``counted`` a second the routed accelerator does, with full windows.

    ``counted`` gets the differences of the hardware counters; the clock is that of grade 8.
    """
    mhz = routed_mhz(preset, 8)
    with closing(SaturatedRun(PRESETS[preset], report, window=window)) as run:
        run.bound(RARE)
        _, counts = run.measure(80 * PRESETS[preset].probes)
        report(f"figures: {preset} at {mhz} MHz: {counted(counts)} in {counts['cycles']} cycles")
        return counted(counts) / counts["cycles"] * mhz * 1e6


def comparisons(counts):
    """Return the comparisons counted."""
    return counts["comparisons"]


@figure("scan.routed_comparisons_per_s_equality", unit="comparisons/s", goal=">= 1.5e11")
def routed_comparisons_per_s_equality(report):
    """Comparisons of 32-bit keys by an LFE5U-85F: counted in simulation, at the routed clock."""
    return routed_rate("ecp5-equality", comparisons, report)


@figure("scan.routed_comparisons_per_s_band", unit="comparisons/s", goal=">= 5e10")
def routed_comparisons_per_s_band(report):
    """The same for bands in two fields of 16 bits."""
    return routed_rate("ecp5-band", comparisons, report)


@figure("scan.routed_mhz_16_cores", unit="MHz", goal=">= 150")
def routed_mhz_16_cores(report):
    """Clock of the preset `paper`, routed for the slowest speed grade."""
    return routed_mhz("paper", 6)


@figure("scan.tuples_per_s", unit="tuples/s", goal=f">= {PAPER_TUPLES}")
def tuples_per_s(report):
    """Tuples of both sides that the routed `ecp5-band` joins with windows of 2**15 per side.

    The goal is the paper's 5,200 per second at 2**21, scaled to as many comparisons.
    """
    return routed_rate("ecp5-band", tuples, report, window=WINDOW)


@figure("scan.model_build_s_64", unit="s", goal="< 90")
def model_build_s_64(report):
    """Seconds from parameters to a loaded library, 64 cores, everything cold."""
    before = os.environ.get("SPLITJOIN_CACHE")
    with tempfile.TemporaryDirectory(prefix="splitjoin-") as folder:
        os.environ["SPLITJOIN_CACHE"] = str(Path(folder) / "cache")
        try:
            start = time.perf_counter()
            bundle = Path(folder) / "bundle"
            write_bundle(PRESETS["paper"].with_(cores=64), bundle)
            build_library(bundle, report=report)
            SimulatedDevice(bundle).close()
            return time.perf_counter() - start
        finally:
            if before is None:
                del os.environ["SPLITJOIN_CACHE"]
            else:
                os.environ["SPLITJOIN_CACHE"] = before
