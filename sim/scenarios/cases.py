# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: which of the cases that matter have been met, told from the words alone.

What a scenario is called says nothing here: its input words are taken apart again, so a scenario
that no longer is what it was written for is found.
"""

from dataclasses import dataclass

from host.words import WordCodec, unpack_field

from .stretches import taken_apart
from .tuple_cases import OF_TUPLES, always, timed

__all__ = ["Cases", "Flow"]

#: Fewest tuples by which the kind of their keys is told.
TUPLES = 16
#: Cycles in which something must have waited to count.
CYCLES = 8


@dataclass(frozen=True)
class Flow:
    """For how many cycles the streams of an accelerator stood still.

    Parameters
    ----------
    withheld : int
        The bench offered no input word.
    refused : int
        The accelerator did not take an input word.
    untaken : int
        The bench did not take a result word.
    """

    withheld: int
    refused: int
    untaken: int


def paired(manifest):
    """Whether a word can have two tuples."""
    return manifest.tuples_per_word == 2


def first_of(side):
    """Return whether a word has two tuples, the first of them of ``side``, as a function."""

    def holds(manifest, words):
        kinds = unpack_field(words, manifest.input_word["kind"])
        both = kinds == manifest.input_kinds["BOTH"]
        return (unpack_field(words[both], manifest.input_word["first"]) == side).any()

    return holds


#: Cases of input words that have tuples.
OF_WORDS = {
    "two tuples in a word, R first": (paired, first_of(0)),
    "two tuples in a word, S first": (paired, first_of(1)),
}
#: Cases of results.
OF_RESULTS = {
    "a pair": (always, lambda manifest, of: (of.kind == manifest.result_kinds["PAIR"]).any()),
    "overflow of R": (timed, lambda _, of: (of.overflow & 1).any()),
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
    """The cases of one accelerator, and which of them have been met.

    Parameters
    ----------
    manifest : Manifest
        Of the accelerator.

    Attributes
    ----------
    met : dict of str to int
        Scenarios that met a case, by the names of all cases that this accelerator can meet.
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
            What was sent.
        results : array of uint64
            What was answered, one result a row.
        flow : Flow
            How often the streams stood still.
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
