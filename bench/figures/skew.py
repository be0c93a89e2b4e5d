# SPDX-License-Identifier: Apache-2.0
"""Figures of the index engine with keys that could make a hash, a chain or a grid slow."""

from contextlib import closing

import numpy as np
import pyarrow as pa

from hdl.parameters import KeyField
from host import Query, open_device
from host.devices.bundles import SIMULATED, choose_device
from host.protocol.spread import Spread
from host.reference.predicate import Bounds
from host.session.join import Join
from sim.benches.saturated_run import RARE, SaturatedRun, tuples

from .index import BAND, EQUI
from .registry import figure
from .timed_join import PERIOD

__all__ = ["ZIPF"]

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
    worst = 0
    for probes in (4, 16):
        grouped = parameters.with_(probes=probes)
        with closing(SaturatedRun(grouped, report, period=PERIOD, draw=draw)) as run:
            run.ask({})
            _, counts = run.measure(1 << 18)
            share = counts["cycles"] / tuples(counts)
            report(f"figures: groups of {probes}: {share:.4f} cycles per tuple")
            worst = max(worst, share)
    return worst


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

        with closing(SaturatedRun(ZIPF, report, period=PERIOD, draw=draw)) as run:
            run.ask({})
            _, counts = run.measure(1 << 12)
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
    with closing(SaturatedRun(WIDE_BAND, report, period=PERIOD, draw=draw)) as run:
        run.ask(dict.fromkeys(values, Bounds(-RARE, RARE)), spreads)
        _, counts = run.measure(1 << 17)
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
