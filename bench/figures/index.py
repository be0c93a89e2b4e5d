# SPDX-License-Identifier: Apache-2.0
"""Figures of the index engine: cycles per tuple, and the speed of its simulation."""

from contextlib import closing
from pathlib import Path

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters
from hdl.presets import PRESETS
from host import open_device
from host.reference.predicate import Bounds
from sim.benches.saturated_run import RARE, SaturatedRun, tuples
from sim.verilated.library import build_library

from .calibration import calibrated
from .instructions import Instructions
from .registry import figure
from .timed_join import PERIOD, TUPLES, WINDOW, uniform_join

__all__ = ["BAND", "EQUI"]

#: Accelerators of one core that holds the whole windows, with two tuples in a word: equality of one
#: field, and the paper's band on two fields. The band's index has four buckets per tuple, because
#: each field of the paper's benchmark has 313 cells.
EQUI = JoinParameters.of(
    cores=1, sub_window=WINDOW, keys=PRESETS["ecp5-index"].keys, comparator="equality",
    engine="index", probes=16, probe_bits=10, tuples_per_word=2,
)  # fmt: skip
BAND = JoinParameters.of(
    cores=1, sub_window=WINDOW, keys=PRESETS["paper"].keys, engine="index", probes=16,
    probe_bits=10, bucket_bits=18, tuples_per_word=2,
)  # fmt: skip


def slowest_equality(shapes, report, *, burst=1):
    """Return the cycles per tuple of the slowest of several accelerators.

    Keys are uniform with one match per probe, windows are full, a star comes every 1,024 probes,
    and the sides alternate in runs of ``burst`` tuples.
    """
    worst = 0
    for changes in shapes:
        parameters = EQUI.with_(**changes)
        with closing(SaturatedRun(parameters, report, values=WINDOW, period=PERIOD)) as run:
            run.ask({})
            run.burst = burst
            _, counts = run.measure(1 << 20)
            share = counts["cycles"] / tuples(counts)
            report(f"figures: groups of {parameters.engine.probes}: {share:.4f} cycles per tuple")
            worst = max(worst, share)
    return worst


@figure("index.equi.cycles_per_tuple", unit="cycles", goal="<= 0.51")
def equi_cycles_per_tuple(report):
    """Cycles per tuple of either side, with uniform keys, one match per probe and full windows.

    Windows hold 2**16 tuples per side. The sides alternate, two tuples share a word, and a star
    comes every 1,024 probes. The figure is the slower of groups of 4 and of 16 probes.
    """
    return slowest_equality([{"probes": n} for n in (4, 16)], report)


@figure("index.equi.cycles_per_tuple_in_bursts", unit="cycles", goal="< 1.02")
def equi_cycles_in_bursts(report):
    """Cycles per tuple, as above, for runs of 1,024 tuples of a side, which cannot share words."""
    return slowest_equality([{"probes": n} for n in (4, 16)], report, burst=1 << 10)


@figure("index.equi.cycles_per_lone_tuple", unit="cycles", goal="< 1.01")
def equi_cycles_per_lone_tuple(report):
    """Cycles per tuple, as above, for alternating sides with one tuple in a word."""
    return slowest_equality([{"probes": n, "tuples_per_word": 1} for n in (4, 16)], report)


@figure("index.reads_per_cycle", unit="of 1", goal=">= 0.95")
def reads_per_cycle(report):
    """Entries read per cycle and region with long chains: 64 tuples of the window per bucket."""
    parameters = EQUI.with_(bucket_bits=10)
    with closing(SaturatedRun(parameters, report, values=WINDOW, period=PERIOD)) as run:
        run.ask({})
        _, counts = run.measure(1 << 14)
        return counts["region_busy"] / (2 * counts["cycles"])


@figure("index.band.cycles_per_tuple", unit="cycles", goal="<= 1.05")
def band_cycles_per_tuple(report):
    """Cycles per tuple for the paper's benchmark, a band of +-10 in two fields of 10,000 values.

    The figure is the slower of groups of 16 and of 64 probes.
    """
    worst = 0
    for parameters in (BAND, BAND.with_(probes=64)):
        with closing(SaturatedRun(parameters, report, period=PERIOD)) as run:
            run.bound(RARE)
            _, counts = run.measure(1 << 19)
            share = counts["cycles"] / tuples(counts)
            report(f"figures: groups of {parameters.engine.probes}: {share:.4f} cycles per tuple")
            worst = max(worst, share)
    return worst


def engine_ratio(bounds, of, by, window, report):
    """Return the cycles per tuple of the engine ``of`` divided by those of the engine ``by``.

    Both are the default devices, with windows of ``window`` tuples per side.
    """
    cycles = {}
    for engine, preset in (("scan", "demo"), ("index", "demo-index")):
        parameters = PRESETS[preset]
        with closing(SaturatedRun(parameters, report, window=window)) as run:
            run.ask(bounds)
            _, counts = run.measure(1 << 12)
            cycles[engine] = counts["cycles"] / tuples(counts)
            report(f"figures: {engine}, {bounds}: {cycles[engine]:.2f} cycles per tuple")
    return cycles[of] / cycles[by]


@figure("index.band.times_scan", unit="times", goal=">= 10")
def band_times_scan(report):
    """Cycles per tuple of the default scan divided by the index's, for the paper's band."""
    bounds = dict.fromkeys("xy", Bounds(-RARE, RARE))
    return engine_ratio(bounds, "scan", "index", 1 << 14, report)


@figure("scan.inequality.times_index", unit="times", goal=">= 10")
def inequality_times_index(report):
    """Cycles per tuple of the default index divided by the scan's, for ``r.x - s.x >= 9900``."""
    return engine_ratio({"x": Bounds(9_900, None)}, "index", "scan", 1 << 11, report)


def arrow_rate(parameters, bounds, values, report):
    """Return tuples per second from Arrow tables to Arrow batches, calibrated.

    The seconds are wall-clock time, because host and device work at the same time. The rate is the
    median of three runs of five joins.
    """
    bundle = Path("build") / "figures" / f"arrow-{parameters.predicate.kind}"
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
    timed = uniform_join(bounds, values)

    def measure(device):
        with Instructions() as executed:
            seconds, busy, results = timed(device)
        report(
            f"figures: {TUPLES:,} tuples, {results:,} results in {seconds:.2f} s, "
            f"{busy:.2f} s of them in the device"
        )
        return TUPLES, seconds, executed.count

    with open_device(f"sim:{bundle}") as device:
        return calibrated(
            lambda: measure(device), runs=3, parts=5, rate=True, wall=True, report=report
        )


@figure("index.equi.sim_tuples_per_s", unit="tuples/s", goal=">= 5e6")
def equi_sim_tuples_per_s(report):
    """Tuples per second of wall-clock time, Arrow to Arrow through the simulator library."""
    return arrow_rate(EQUI, {"x": 0}, WINDOW, report)


@figure("index.band.sim_tuples_per_s", unit="tuples/s", goal=">= 2e6")
def band_sim_tuples_per_s(report):
    """Tuples per second, as above, for the paper's benchmark."""
    return arrow_rate(BAND, dict.fromkeys("xy", RARE), 10_000, report)
