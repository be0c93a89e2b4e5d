# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: the cases that matter and have been met, recognized in the words alone.

The name of a scenario does not count. Its input words are decoded, so that a scenario is noticed
that no longer meets the case it was written for.
"""

from dataclasses import dataclass

from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.manifest import JoinAggregateManifest

from .stretches import taken_apart
from .tuple_cases import OF_TUPLES, always, timed

__all__ = ["Cases", "Flow"]

#: Least number of tuples in a stretch whose keys, sides and windows are classified.
TUPLES = 16
#: Least number of cycles that a stream must stand still to count.
CYCLES = 8


@dataclass(frozen=True)
class Flow:
    """Stall cycles of an accelerator's streams.

    Parameters
    ----------
    withheld : int
        Cycles in which the bench offered no input word.
    refused : int
        Cycles in which the accelerator did not accept an offered input word.
    untaken : int
        Cycles in which the bench did not take a result word.
    """

    withheld: int
    refused: int
    untaken: int


def paired(manifest):
    """Return whether a word can hold two tuples."""
    return manifest.tuples_per_word == 2


def first_of(side):
    """Return a function that tests whether any word has two tuples with that of ``side`` first."""

    def holds(manifest, words):
        kinds = unpack_field(words, manifest.input_word["kind"])
        both = kinds == manifest.input_kinds["BOTH"]
        return (unpack_field(words[both], manifest.input_word["first"]) == side).any()

    return holds


#: Cases of input words that hold tuples.
OF_WORDS = {
    "two tuples in a word, R first": (paired, first_of(0)),
    "two tuples in a word, S first": (paired, first_of(1)),
}


def stores_both(manifest):
    """Return whether tuples of R are stored in a window of time, unlike those of an aggregate."""
    return timed(manifest) and not isinstance(manifest, JoinAggregateManifest)


def matches(manifest, results):
    """Return whether there is a pair, or a value of at least one match."""
    if isinstance(manifest, JoinAggregateManifest):
        is_value = results.kind == manifest.result_kinds["VALUE"]
        return (is_value & (results.values["count"] > 0)).any()
    return (results.kind == manifest.result_kinds["PAIR"]).any()


#: Cases of results.
OF_RESULTS = {
    "a pair": (always, matches),
    "overflow of R": (stores_both, lambda _, of: (of.overflow & 1).any()),
    "overflow of S": (timed, lambda _, of: (of.overflow & 2).any()),
    "disorder": (timed, lambda _, of: of.disorder.any()),
    "an illegal word is told": (always, lambda _, of: of.illegal.any()),
}
#: Cases of streams that stand still.
OF_FLOW = {
    "input withheld": lambda flow: flow.withheld >= CYCLES,
    "input refused": lambda flow: flow.refused >= CYCLES,
    "results not taken": lambda flow: flow.untaken >= CYCLES,
}


class Cases:
    """Coverage counters: the cases of one accelerator, and how often each was met.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.

    Attributes
    ----------
    met : dict of str to int
        For each case that the accelerator can meet, the number of scenarios that met it.
    """

    def __init__(self, manifest):
        self.manifest = manifest
        tables = (OF_TUPLES, OF_WORDS, OF_RESULTS)
        names = [name for table in tables for name, (can, _) in table.items() if can(manifest)]
        operations = [*manifest.operations, "a word without meaning"]
        names += ["no tuple", *OF_FLOW, *(f"between tuples: {name}" for name in operations)]
        self.met = dict.fromkeys(names, 0)

    def sample(self, scenario, results, flow):
        """Count the cases that a run has met.

        Parameters
        ----------
        scenario : Scenario
            Scenario that was sent.
        results : array of uint64
            Results that were received, one per row.
        flow : Flow
            Number of cycles in which the streams stood still.
        """
        manifest = self.manifest
        seen = taken_apart(manifest, scenario.words)
        fields = WordCodec(manifest).unpack_results(results)
        kinds = [
            (OF_TUPLES, [some for some in seen.stretches if len(some.sides) >= TUPLES]),
            (OF_WORDS, seen.words),
            (OF_RESULTS, [fields]),
        ]
        met = {
            name
            for table, subjects in kinds
            for name, (_, holds) in table.items()
            if name in self.met and any(holds(manifest, one) for one in subjects)
        }
        met |= {name for name, holds in OF_FLOW.items() if holds(flow)}
        met |= {f"between tuples: {name}" for name in seen.between}
        if not seen.stretches:
            met.add("no tuple")
        for name in met:
            self.met[name] += 1
