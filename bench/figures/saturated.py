# SPDX-License-Identifier: Apache-2.0
"""Figures of accelerators with full windows, which get words as fast as they accept them.

All of them are counted in cycles, by the counters of the simulated hardware.
"""

from contextlib import closing

import numpy as np
import pyarrow as pa

from hdl.fpga.reports import ONE_IN
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from host import Query, open_device
from host.devices.bundles import SIMULATED, choose_device
from host.devices.simulated import MemoryPace
from host.protocol.spread import Spread
from host.reference.predicate import Bounds
from host.session.join import Join
from sim.benches.saturated_run import FREQUENT, RARE, SaturatedRun, tuples

from .registry import Result, figure

__all__ = ["BAND", "EQUI", "PERIOD", "SCAN", "WINDOW", "bandwidth_used", "latencies"]

#: The accelerator that the scan is measured on: sixteen cores with sub-windows of 512 keys.
SCAN = PRESETS["paper"].with_(sub_window=512, fan_in=4)
#: Tuples per side of the window of an index.
WINDOW = 1 << 16
#: Probes per star of an index. Each star takes a cycle of the output, as a result does.
PERIOD = 1 << 10
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
#: Bounds of the paper's benchmark, a band of two fields.
PAPER = dict.fromkeys("xy", Bounds(-RARE, RARE))


def counted(parameters, count, report, *, bounds, spreads=None, burst=1, **options):
    """Return what the hardware counts of so many tuples.

    Parameters
    ----------
    parameters : JoinParameters
        The accelerator.
    count : int
        Tuples of both sides, which come once the windows are full.
    report : callable
        Receives lines about the progress.
    bounds, spreads : dict
        See :meth:`sim.benches.saturated_run.SaturatedRun.ask`.
    burst : int
        Tuples of a side in a row.
    **options
        Of :class:`sim.benches.saturated_run.SaturatedRun`.
    """
    with closing(SaturatedRun(parameters, report, **options)) as run:
        run.ask(bounds, spreads)
        run.burst = burst
        return run.measure(count)[1]


def slowest(shapes, count, report, **load):
    """Return the cycles per tuple of the slowest of several accelerators under the same load."""
    worst = 0
    for parameters in shapes:
        counts = counted(parameters, count, report, **load)
        share = counts["cycles"] / tuples(counts)
        report(f"figures: groups of {parameters.engine.probes}: {share:.4f} cycles per tuple")
        worst = max(worst, share)
    return worst


# A scan.

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


# An index.


def equality_cycles(report, *, burst=1, **changes):
    """Return the cycles per tuple with groups of 4 or of 16 probes, whichever is slower.

    Keys are uniform with one match per probe, windows are full, a star comes every 1,024 probes,
    and the sides alternate in runs of ``burst`` tuples.
    """
    groups = [EQUI.with_(probes=n, **changes) for n in (4, 16)]
    return slowest(groups, 1 << 20, report, bounds={}, values=WINDOW, period=PERIOD, burst=burst)


@figure("index.equi.cycles_per_tuple", unit="cycles", goal="<= 0.51")
def equi_cycles_per_tuple(report):
    """Cycles per tuple of either side, with uniform keys, one match per probe and full windows.

    Windows hold 2**16 tuples per side. The sides alternate, two tuples share a word, and a star
    comes every 1,024 probes. The figure is the slower of groups of 4 and of 16 probes.
    """
    return equality_cycles(report)


@figure("index.equi.cycles_per_tuple_in_bursts", unit="cycles", goal="< 1.02")
def equi_cycles_in_bursts(report):
    """Cycles per tuple, as above, for runs of 1,024 tuples of a side, which cannot share words."""
    return equality_cycles(report, burst=1 << 10)


@figure("index.equi.cycles_per_lone_tuple", unit="cycles", goal="< 1.01")
def equi_cycles_per_lone_tuple(report):
    """Cycles per tuple, as above, for alternating sides with one tuple in a word."""
    return equality_cycles(report, tuples_per_word=1)


@figure("index.reads_per_cycle", unit="of 1", goal=">= 0.95")
def reads_per_cycle(report):
    """Entries read per cycle and region with long chains: 64 tuples of the window per bucket."""
    counts = counted(
        EQUI.with_(bucket_bits=10), 1 << 14, report, bounds={}, values=WINDOW, period=PERIOD
    )
    return counts["region_busy"] / (2 * counts["cycles"])


@figure("index.band.cycles_per_tuple", unit="cycles", goal="<= 1.05")
def band_cycles_per_tuple(report):
    """Cycles per tuple for the paper's benchmark, a band of +-10 in two fields of 10,000 values.

    The figure is the slower of groups of 16 and of 64 probes.
    """
    shapes = BAND, BAND.with_(probes=64)
    return slowest(shapes, 1 << 19, report, bounds=PAPER, period=PERIOD)


def engine_ratio(bounds, of, by, window, report):
    """Return the cycles per tuple of the engine ``of`` divided by those of the engine ``by``.

    Both are the default devices, with windows of ``window`` tuples per side.
    """
    cycles = {}
    for engine, preset in (("scan", "demo"), ("index", "demo-index")):
        counts = counted(PRESETS[preset], 1 << 12, report, bounds=bounds, window=window)
        cycles[engine] = counts["cycles"] / tuples(counts)
        report(f"figures: {engine}, {bounds}: {cycles[engine]:.2f} cycles per tuple")
    return cycles[of] / cycles[by]


@figure("index.band.times_scan", unit="times", goal=">= 10")
def band_times_scan(report):
    """Cycles per tuple of the default scan divided by the index's, for the paper's band."""
    return engine_ratio(PAPER, "scan", "index", 1 << 14, report)


@figure("scan.inequality.times_index", unit="times", goal=">= 10")
def inequality_times_index(report):
    """Cycles per tuple of the default index divided by the scan's, for ``r.x - s.x >= 9900``."""
    return engine_ratio({"x": Bounds(9_900, None)}, "index", "scan", 1 << 11, report)


# Keys that could make a hash, a chain or a grid slow.

#: A key that holds any product of a 16-bit number and 2**18 + 1. The exclusive or of its 18-bit
#: slices, which an earlier hash used, is always zero.
WIDE = EQUI.with_(keys=(KeyField(name="x", bits=40, signed=False),), bucket_bits=18)
#: An equality with windows of 4,096 tuples per side. They fill in reasonable time although a probe
#: may match a third of a window.
ZIPF = EQUI.with_(probes=4, sub_window=1 << 12)
#: A band on two fields that are wide enough for values far apart.
WIDE_BAND = BAND.with_(
    keys=tuple(KeyField(name=name, bits=32, signed=False) for name in "xy"), probes=16
)
#: Number of different values of a Zipf distribution.
RANKS = 1 << 16


def worst_of_groups(parameters, draw, report):
    """Return the cycles per tuple with groups of 4 or of 16 probes, whichever is slower."""
    shapes = [parameters.with_(probes=probes) for probes in (4, 16)]
    return slowest(shapes, 1 << 18, report, bounds={}, period=PERIOD, draw=draw)


@figure("index.skew.octets", unit="cycles", goal="<= 1.1")
def octets(report):
    """Cycles per tuple of an equality of keys ``(x << 16) | y``, with x and y below 256.

    Windows hold 2**16 tuples per side, one tuple matches per probe, and a star comes every 1,024
    probes.
    """

    def draw(generator, count):
        high, low = generator.integers(0, 1 << 8, (2, count))
        return {"x": high << 16 | low}

    return worst_of_groups(EQUI, draw, report)


@figure("index.skew.fold_adversary", unit="cycles", goal="<= 1.1")
def fold_adversary(report):
    """Cycles per tuple, as above, of keys ``x * (2**18 + 1)``, x below 2**16; 2**18 buckets."""

    def draw(generator, count):
        return {"x": generator.integers(0, 1 << 16, count) * ((1 << 18) + 1)}

    return worst_of_groups(WIDE, draw, report)


@figure("index.skew.zipf_results_per_cycle", unit="results", goal=">= 0.8")
def zipf_results_per_cycle(report):
    """Results per cycle of an equality with keys of a Zipf distribution, in groups of four probes.

    The figure is the slower of the exponents 1.1 and 1.5. There are 65,536 different keys; windows
    hold 4,096 tuples per side, tuples of both sides alternate, and a star comes every 1,024 probes.
    """
    least = np.inf
    for exponent in (1.1, 1.5):
        shares = np.cumsum(np.arange(1, RANKS + 1) ** -exponent)

        def draw(generator, count, shares=shares):
            return {"x": np.searchsorted(shares, generator.random(count) * shares[-1])}

        counts = counted(ZIPF, 1 << 12, report, bounds={}, period=PERIOD, draw=draw)
        rate = counts["results"] / counts["cycles"]
        report(f"figures: exponent {exponent}: {rate:.3f} results per cycle")
        least = min(least, rate)
    return least


#: Rows of each side of the figure of trades and quotes, and of its windows.
TRADES, TRADES_WINDOW = 6_000, 1 << 12


@figure("index.skew.symbols", unit="cycles", goal="<= 2")
def symbols(report):
    """Cycles per tuple of an equality of symbols and a band of prices, by the way of a user.

    2,000 symbols have a Zipf distribution of exponent 1.1, so the first has a fifth of the rows;
    prices are within +-3, and deviate by 300 from that of the symbol. Windows hold 4,096 tuples.
    """
    prices = np.random.default_rng(5).integers(1_000, 100_000, 2_000)
    shares = np.cumsum(np.arange(1, len(prices) + 1) ** -1.1)

    def rows(seed):
        generator = np.random.default_rng(seed)
        symbol = np.searchsorted(shares, generator.random(TRADES) * shares[-1])
        price = prices[symbol] + np.rint(generator.normal(0, 300, TRADES)).astype(np.int64)
        return pa.table({"t": np.arange(TRADES), "symbol": symbol, "price": price})

    query = Query(time="t", rows=TRADES_WINDOW, on="symbol", band={"price": (-3, 3)})
    with open_device(choose_device(SIMULATED, query).uri) as device:
        found = Join(rows(1), rows(2), query, device).run()
    report(f"figures: {found.table.num_rows / TRADES / 2:.2f} results a tuple")
    return found.cycles / TRADES / 2


def band_ratio(values, report):
    """Return cycles per probe divided by results per probe (at least one), for a band of +-10.

    Parameters
    ----------
    values : mapping of str to range
        For each field, the range that its values are drawn from; the host knows the range.
    report : callable
        Receives lines about the progress.
    """

    def draw(generator, count):
        return {
            name: generator.integers(0, len(of), count) * of.step + of.start
            for name, of in values.items()
        }

    spreads = {name: Spread(of[-1], of.step, of.start) for name, of in values.items()}
    counts = counted(
        WIDE_BAND, 1 << 17, report, bounds=PAPER, spreads=spreads, period=PERIOD, draw=draw
    )
    probes = tuples(counts)
    results = counts["results"] / probes
    report(f"figures: {counts['cycles'] / probes:.3f} cycles and {results:.3f} results a probe")
    return counts["cycles"] / probes / max(results, 1)


@figure("index.skew.band_constant_field", unit="times", goal="<= 2")
def band_constant_field(report):
    """Cycles per probe / results per probe (at least one), for a band with a constant field.

    The other field has 2**20 values. Windows hold 2**16 tuples per side; there are 2**18 buckets.
    """
    return band_ratio({"x": range(7, 8), "y": range(1 << 20)}, report)


@figure("index.skew.band_multiples", unit="times", goal="<= 2")
def band_multiples(report):
    """The ratio of :func:`band_constant_field` for two fields with 256 multiples of 1,024 each."""
    return band_ratio(dict.fromkeys("xy", range(0, 1 << 18, 1 << 10)), report)


@figure("index.skew.band_clustered", unit="times", goal="<= 2")
def band_clustered(report):
    """The ratio of :func:`band_constant_field` for one field with clustered values.

    Its 1,000 values are consecutive and far from zero; the other field has 2**20 values. About one
    probe in thirty has a match.
    """
    return band_ratio({"x": range(5_000_000, 5_001_000), "y": range(1 << 20)}, report)


# Result ports, where results saturate one.

FIELD = (KeyField(name="x", bits=16, signed=False),)
#: Values of the field: a tuple meets a sixteenth of a window of 256 tuples.
PORT_VALUES = 16
#: Tuples of a measurement.
PORT_TUPLES = 4_000
PORT_SCAN = JoinParameters.of(
    cores=4, sub_window=64, lanes=4, probes=8, keys=FIELD, probe_bits=3, comparator="equality"
)
PORT_INDEX = JoinParameters.of(
    engine="index", cores=4, sub_window=64, probes=8, keys=FIELD, probe_bits=3,
    comparator="equality",
)  # fmt: skip
#: Accelerators, and probes per star.
PORT_LOADS = {
    "scan, groups of 8": (PORT_SCAN, 8),
    "scan, strict outer order": (PORT_SCAN, 1),
    "index, groups of 8": (PORT_INDEX, 8),
    "index, two results in a word": (PORT_INDEX.with_(tuples_per_word=2), 8),
}


@figure("order.two_ports", unit="times", goal=">= 1.9")
def two_ports(report):
    """Throughput with two result ports over that with one, where results saturate one.

    Both accelerators are the same but for their ``result_streams``. Sides alternate, and a tuple
    meets 16 of 256 tuples of the window. So one port, which takes a word in nearly every cycle, is
    what limits the first of them. Tuples per cycle, by the counters of the hardware. The value is
    that of a scan in full groups; the notes have the other loads, and how busy the ports are.
    """
    ratios, notes = {}, []
    for name, (parameters, period) in PORT_LOADS.items():
        counts = [
            counted(
                parameters.with_(result_streams=ports), PORT_TUPLES, report, bounds={},
                values=PORT_VALUES, period=period,
            )
            for ports in (1, 2)
        ]  # fmt: skip
        rates = [tuples(some) / some["cycles"] for some in counts]
        busy = [some["output_busy"] / some["cycles"] for some in counts]
        ratios[name] = rates[1] / rates[0]
        notes.append(
            f"{name}: {rates[0]:.4f} and {rates[1]:.4f} tuples per cycle, {ratios[name]:.3f} times;"
            f" {busy[0]:.3f} and {busy[1]:.3f} words per cycle"
        )
    return Result(ratios["scan, groups of 8"], notes=tuple(notes), details={"loads": ratios})


# A scan of windows in external memories.

#: One core whose passes read 2,048 rows.
EXTERNAL = JoinParameters.of(
    cores=1, sub_window=8192, lanes=4, probes=16, probe_bits=4,
    keys=(KeyField(name="x", bits=16), KeyField(name="y", bits=16)),
    store="external", memory_width=128, memory_burst=16, memory_latency=64,
)  # fmt: skip
#: Groups of each side in a measurement.
GROUPS = 20
#: Latencies that are measured, with accelerators that were made to hide the ones before the colon.
LATENCIES = {64: (1, 16, 32, 64, 96, 128, 256), 256: (64, 128, 256)}


def bandwidth_used(parameters, latency, report, *, jitter=0):
    """Measure beats with full windows, and words as fast as they are accepted.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    latency, jitter : int
        Pace of its memories, in cycles.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    used : float
        Beats that are read per cycle and region, of which each is compared with all probes.
    useful : float
        Bytes of keys in a beat.
    counts : dict of str to int
        Counters of the hardware.
    """
    pace = MemoryPace(latency=latency, jitter=jitter)
    with closing(SaturatedRun(parameters, report, memory=pace)) as run:
        run.bound(RARE)
        _, counts = run.measure(2 * GROUPS * parameters.engine.probes)
        regions, useful = len(run.manifest.memory.ports), run.manifest.memory.key_bytes
    return counts["memory_reads"] / (regions * counts["cycles"]), useful, counts


def latencies(report):
    """Yield rows of a table: latency that is hidden, latency, beats per cycle, counters."""
    for hidden, measured in LATENCIES.items():
        for latency in measured:
            used, _, counts = bandwidth_used(EXTERNAL.with_(memory_latency=hidden), latency, report)
            yield hidden, latency, used, counts


@figure("external.efficiency_at_64_cycles_latency", unit="beats per cycle", goal=">= 0.9")
def efficiency_at_64_cycles_latency(report):
    """Beats read per cycle and memory port while windows of 2,048 rows are scanned.

    The memories answer after 64 cycles, with a beat per cycle. One pair in 250,000 matches. Words
    come as fast as they are accepted, and sides alternate. Every beat that is read is a row of
    keys, which all probes of the group are compared with. Rows that are on the chip when their pass
    begins are not read. Counted at the ports by the accelerator's own counters.
    """
    used, useful, counts = bandwidth_used(EXTERNAL, 64, report)
    size = EXTERNAL.engine.memory_width // 8
    waits = counts["memory_waits"] / (2 * counts["cycles"])
    note = (
        f"{useful:g} of {size} bytes of a beat are keys; passes wait for a row in {waits:.4f} of"
        f" all cycles, and rows are written in {counts['memory_writes'] / counts['cycles']:.4f}"
    )
    return Result(used, notes=(note,), details={"counters": counts})
