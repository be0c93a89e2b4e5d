# SPDX-License-Identifier: Apache-2.0
"""Random streams through a simulated accelerator, result by result against the software device."""

from dataclasses import dataclass
from itertools import count, zip_longest

from host.manifest import Manifest
from host.words import WordCodec
from host.words.bit_fields import unpack_field
from sim.scenarios import answer, expected_results, hostile_scenario, random_scenario
from sim.scenarios.answers import canonical, without_pairs

__all__ = ["Comparison", "compare"]

#: In how many of 256 cycles an input word is withheld, and a result word is not taken.
STALLS = ((0, 0), (60, 60), (0, 200), (180, 0))
#: Tuples of a segment, at the most, and segments of a scenario; each has another configuration.
TUPLES, SEGMENTS = 1500, 5
#: In this order, again and again: stars in order, stars as rarely as they come, windows that
#: outgrow the cores, words that no host sends.
KINDS = ("ordered", "free", "overflow", "hostile")


@dataclass
class Comparison:
    """What was sent, what came, and how much of it differs.

    Parameters
    ----------
    scenarios : int
    tuples : int
        Sent, those included that disorder or illegal configurations drop.
    pairs : int
        Among the results.
    results : int
        Pairs, stars and marks.
    differences : int
        Results that are missing, or of which another one, or none, should have come.
    first : str or None
        The first scenario that differs: its kind, seed and stalls.
    """

    scenarios: int = 0
    tuples: int = 0
    pairs: int = 0
    results: int = 0
    differences: int = 0
    first: str | None = None


def scenario_of(manifest, kind, seed):
    """Return the scenario of a kind and a seed."""
    if kind == "hostile":
        return hostile_scenario(manifest, seed, tuples=TUPLES // 5)
    return random_scenario(
        manifest, seed, tuples=TUPLES, segments=SEGMENTS, overflow=kind == "overflow",
        period=0 if kind == "free" else None,
    )  # fmt: skip


def tuples_in(manifest, words):
    """Return how many tuples some input words hold."""
    found = unpack_field(words, manifest.input_word["kind"])
    sizes = {"R": 1, "S": 1, "BOTH": 2}
    kinds = [(code, sizes.get(name, 0)) for name, code in manifest.input_kinds.items()]
    return sum(size * int((found == code).sum()) for code, size in kinds)


def comparable(manifest, results, scenario):
    """Return results as lists, parts whose order counts: equal for equal answers."""
    if scenario.faulty:
        results = without_pairs(manifest, results)
    rows = canonical(manifest, results, free=scenario.free)
    if not scenario.free:
        return [rows]
    return [[*pairs, star] for side in rows for pairs, star in side]


def difference(received, expected):
    """Return in how many places two answers of :func:`comparable` differ."""
    return sum(
        mine != wanted
        for got, should in zip_longest(received, expected, fillvalue=())
        for mine, wanted in zip_longest(got, should)
    )


def compare(bundle, *, tuples, seed=1, report=lambda text: None):
    """Send random scenarios to a bundle's simulated device and to the software device.

    Windows by count and by time, control words between any two words, stalls at input and output,
    answers out of random memories and registers: a scenario with a number of its own for each kind
    of :data:`KINDS` and each pair of :data:`STALLS`.

    Parameters
    ----------
    bundle : path-like
        With its library.
    tuples : int
        To send, at the least.
    seed : int
        Of the first scenario; each next one has the next number.
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
        except AssertionError as error:  # no end, or no star after pairs: nothing can be compared
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
