# SPDX-License-Identifier: Apache-2.0
"""Figures of the index engine with keys that a hash, a chain or a grid could be slow for."""

from contextlib import closing

import numpy as np

from hdl.parameters import KeyField
from host.predicate import Bounds
from host.spread import Spread

from .index import BAND, EQUI
from .registry import figure
from .saturated_run import RARE, SaturatedRun, tuples
from .timed_join import PERIOD

__all__ = ["ZIPF"]

#: A key that holds any product of 16 bits and 2**18 + 1; the exclusive or of its slices of 18 bits,
#: which the hash once was, is zero.
WIDE = EQUI.with_(keys=(KeyField(name="x", bits=40, signed=False),), bucket_bits=18)
#: An equality whose windows, of 4,096 tuples a side, are filled in reasonable time though a probe
#: may match a third of them.
ZIPF = EQUI.with_(probes=4, sub_window=1 << 12)
#: A band on two fields that are wide enough for values far from each other.
WIDE_BAND = BAND.with_(
    keys=tuple(KeyField(name=name, bits=32, signed=False) for name in "xy"), probes=16
)
#: Different values of a Zipf distribution.
RANKS = 1 << 16


def worst_of_groups(parameters, draw, report):
    """Return the cycles per tuple in groups of 4 or of 16 probes, whichever are more."""
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
    """Cycles per tuple of an equality of keys ``(x << 16) | y``, x and y below 256.

    Windows of 2**16 tuples per side, one match per probe, a star every 1,024 probes.
    """

    def draw(generator, count):
        high, low = generator.integers(0, 1 << 8, (2, count))
        return {"x": high << 16 | low}

    return worst_of_groups(EQUI, draw, report)


@figure("index.skew.fold_adversary", unit="cycles", goal="<= 1.1")
def fold_adversary(report):
    """The same of keys ``x * (2**18 + 1)``, x below 2**16, with 2**18 buckets."""

    def draw(generator, count):
        return {"x": generator.integers(0, 1 << 16, count) * ((1 << 18) + 1)}

    return worst_of_groups(WIDE, draw, report)


@figure("index.skew.zipf_results_per_cycle", unit="results", goal=">= 0.8")
def zipf_results_per_cycle(report):
    """Results per cycle of an equality with keys of a Zipf distribution, in groups of four.

    Exponents 1.1 and 1.5 (the slower counts), 65,536 different keys, windows of 4,096 tuples per
    side, tuples of both sides in turn, a star every 1,024 probes.
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


def band_ratio(values, report):
    """Return cycles per probe by its results, or by one if it has fewer, for a band of +-10.

    Parameters
    ----------
    values : mapping of str to range
        Of which those of each field are drawn, by its name. The host knows as much.
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
    """Cycles per probe by its results (one at the least): a band, one of two fields constant.

    The other one has 2**20 values; windows of 2**16 tuples per side, 2**18 buckets.
    """
    return band_ratio({"x": range(7, 8), "y": range(1 << 20)}, report)


@figure("index.skew.band_multiples", unit="times", goal="<= 2")
def band_multiples(report):
    """The same where both fields are multiples of 1,024, of which there are 256 each."""
    return band_ratio(dict.fromkeys("xy", range(0, 1 << 18, 1 << 10)), report)


@figure("index.skew.band_clustered", unit="times", goal="<= 2")
def band_clustered(report):
    """The same where the values of one field lie within 1,000, far from zero, the other's in 2**20.

    No probe has a match, but for one in thirty.
    """
    return band_ratio({"x": range(5_000_000, 5_001_000), "y": range(1 << 20)}, report)
