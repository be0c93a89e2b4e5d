# SPDX-License-Identifier: Apache-2.0
"""Compare a simulated accelerator with the software device on random streams, by result."""

from dataclasses import dataclass
from itertools import count, zip_longest

from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import answer, expected_results, hostile_scenario, random_scenario
from sim.scenarios.answers import canonical, without_pairs

__all__ = ["Comparison", "compare"]

#: Stall rates of input words and of result words: cycles out of 256 in which none is transferred.
STALLS = ((0, 0), (60, 60), (0, 200), (180, 0))
#: Largest number of tuples in a segment, and segments per scenario; each has its own configuration.
TUPLES, SEGMENTS = 1500, 5
#: Kinds of scenarios, used in turn: with stars in a fixed order, with free order of the results
#: between rare stars, with windows that outgrow the cores, and with words that no host sends.
KINDS = ("ordered", "free", "overflow", "hostile")


@dataclass
class Comparison:
    """Result of a comparison: counts of words sent and received, and of differences.

    Parameters
    ----------
    scenarios : int
    tuples : int
        Tuples sent, including those dropped because of disorder or an illegal configuration.
    pairs : int
        Pairs among the results.
    results : int
        Pairs, stars and marks.
    differences : int
        Results that are missing, unexpected, or different from the expected result.
    first : str or None
        Kind, seed and stalls of the first scenario that differs.
    """

    scenarios: int = 0
    tuples: int = 0
    pairs: int = 0
    results: int = 0
    differences: int = 0
    first: str | None = None


def scenario_of(manifest, kind, seed):
    """Return the scenario of the given kind and seed."""
    if kind == "hostile":
        return hostile_scenario(manifest, seed, tuples=TUPLES // 5)
    return random_scenario(
        manifest, seed, tuples=TUPLES, segments=SEGMENTS, overflow=kind == "overflow",
        period=0 if kind == "free" else None,
    )  # fmt: skip


def tuples_in(manifest, words):
    """Return the number of tuples in input words."""
    found = unpack_field(words, manifest.input_word["kind"])
    sizes = {"R": 1, "S": 1, "BOTH": 2}
    kinds = [(code, sizes.get(name, 0)) for name, code in manifest.input_kinds.items()]
    return sum(size * int((found == code).sum()) for code, size in kinds)


def comparable(manifest, results, scenario):
    """Return results as lists whose order counts; equal answers give equal lists."""
    if scenario.faulty:
        results = without_pairs(manifest, results)
    rows = canonical(manifest, results, free=scenario.free)
    if not scenario.free:
        return [rows]
    return [[*pairs, star] for side in rows for pairs, star in side]


def difference(received, expected):
    """Return the number of places in which two results of :func:`comparable` differ."""
    return sum(
        mine != wanted
        for got, should in zip_longest(received, expected, fillvalue=())
        for mine, wanted in zip_longest(got, should)
    )


def compare(bundle, *, tuples, seed=1, report=lambda text: None):
    """Send random scenarios to a bundle's simulated device and to the software device.

    The scenarios have count-based and time-based windows, control words between any two words, and
    stalls at input and output. Memories and registers start with random contents. The scenarios use
    the kinds of :data:`KINDS` and the pairs of :data:`STALLS` in turn, each with a new seed.

    Parameters
    ----------
    bundle : path-like
        Bundle with its library.
    tuples : int
        Least number of tuples to send.
    seed : int
        Seed of the first scenario. Each further scenario has the next number as its seed.
    report : callable
        Receives a line for each scenario that differs.

    Returns
    -------
    Comparison
    """
    manifest = Manifest.load(bundle)
    codec, done = WordCodec(manifest), Comparison()
    for number in count(seed):
        if done.tuples >= tuples:
            return done
        kind = KINDS[number % len(KINDS)]
        stall_in, stall_out = STALLS[number // len(KINDS) % len(STALLS)]
        scenario = scenario_of(manifest, kind, number)
        expected = expected_results(bundle, scenario)
        wanted = comparable(manifest, expected, scenario)
        try:
            received = answer(bundle, scenario, seed=number, stall_in=stall_in, stall_out=stall_out)
            got = comparable(manifest, received, scenario)
        except AssertionError as error:  # no end, or pairs after the last star: not comparable
            report(f"{error}")
            got = []
        differing = difference(got, wanted)
        if differing:
            where = f"{kind} scenario, seed {number}, stalls {stall_in} and {stall_out}"
            report(f"{where}: {differing} of {len(expected)} results differ")
            done.first = done.first or where
        done.scenarios += 1
        done.tuples += tuples_in(manifest, scenario.words)
        done.pairs += int((codec.unpack_results(expected).kind == codec.pair).sum())
        done.results += len(expected)
        done.differences += differing
    return done
