# SPDX-License-Identifier: Apache-2.0
"""Figures of the scan engine: its cycle efficiency, and the speed of its simulation."""

from contextlib import closing
import os
from pathlib import Path
import tempfile
import time

from hdl.bundle import write_bundle
from hdl.fpga.reports import ONE_IN
from hdl.presets import PRESETS
from host.devices.simulated import SimulatedDevice
from sim.benches.saturated_run import FREQUENT, RARE, SaturatedRun
from sim.verilated.library import build_library

from .calibration import calibrated
from .instructions import Instructions
from .registry import figure

__all__ = ["SCAN"]

#: The accelerator that the scan is measured on: sixteen cores with sub-windows of 512 keys.
SCAN = PRESETS["paper"].with_(sub_window=512, fan_in=4)


def sim_rate(parameters, report):
    """Return comparisons per second of CPU time: the median of five runs, calibrated."""
    with closing(SaturatedRun(parameters, report)) as run:
        run.bound(RARE)

        def measure():
            with Instructions() as executed:
                seconds, counts = run.measure(50 * parameters.engine.probes)
            return counts["comparisons"], seconds, executed.count

        return calibrated(measure, runs=5, parts=10, rate=True, report=report)


@figure("scan.sim_comparisons_per_s", unit="comparisons/s", goal=">= 2e8")
def sim_comparisons_per_s(report):
    """Comparisons that the simulator library makes per second of CPU time.

    The accelerator has 16 cores, 4 lanes and 8 probes; windows are full. The simulation has one
    thread. The figure is the median of five runs.
    """
    return sim_rate(SCAN.with_(sub_window=2000, lanes=4, probes=8), report)


@figure("scan.sim_comparisons_per_s_one_lane", unit="comparisons/s", goal=">= 1.5e7")
def sim_comparisons_per_s_one_lane(report):
    """Comparisons per second of CPU time, as above, with one lane and windows of 8,000 tuples."""
    return sim_rate(SCAN.with_(sub_window=500, probes=8), report)


#: Measured efficiencies: the bound of the band, and the share of useful comparisons.
_efficiencies = []


def efficiencies(report):
    """Return the cycle efficiency of every shape at both match rates; measure them only once."""
    if not _efficiencies:
        for probes in (1, 4, 8):
            for lanes in (1, 2):
                parameters = SCAN.with_(probes=probes, lanes=lanes)
                with closing(SaturatedRun(parameters, report)) as run:
                    for bound, one_in in ((RARE, ONE_IN), (FREQUENT, 1_000)):
                        run.bound(bound)
                        share = run.record(one_in)["cycle_efficiency"]
                        report(f"figures: {probes} probes, {lanes} lanes, +-{bound}: {share:.4f}")
                        _efficiencies.append((bound, share))
    return _efficiencies


@figure("scan.cycle_efficiency", unit="of 1", goal=">= 0.99")
def cycle_efficiency(report):
    """Useful comparisons / (comparators * cycles), counted in hardware, with full windows.

    The accelerators have 16 cores of 512 keys; one pair in 250,000 matches. The figure is the
    lowest of 1, 4 and 8 probes with 1 and 2 lanes.
    """
    return min(share for bound, share in efficiencies(report) if bound == RARE)


@figure("scan.cycle_efficiency_crowded", unit="of 1", goal=">= 0.9")
def cycle_efficiency_crowded(report):
    """Cycle efficiency, as above, if one pair in 1,000 matches."""
    return min(share for bound, share in efficiencies(report) if bound == FREQUENT)


@figure("scan.model_build_s_64", unit="s", goal="< 90")
def model_build_s_64(report):
    """Wall-clock seconds from parameters to a loaded library of 64 cores, with an empty cache."""
    return calibrated(
        lambda: (1, cold_build(report), None), runs=1, parts=1, rate=False, wall=True, report=report
    )


def cold_build(report):
    """Return the seconds to generate and build the accelerator of 64 cores with an empty cache."""
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
