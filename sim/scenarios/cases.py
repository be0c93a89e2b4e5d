# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: which of the cases that matter have been met, told from the words alone.

What a scenario is called says nothing here: its input words are taken apart again, so a scenario
that no longer is what it was written for is found.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from host.exact import places
from host.words import WordCodec, unpack_field

from .collisions import first_looks
from .workloads import BURST, STRIDE

__all__ = ["Cases", "Flow"]

#: Fewest tuples by which the kind of their keys is told, and fewest different keys.
TUPLES, KEYS = 16, 6
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


@dataclass
class Stretch:
    """Tuples without a word of another kind between them, and the state that they meet."""

    sides: np.ndarray
    keys: dict
    times: np.ndarray
    windows: dict
    operands: dict
    period: int
    stored: dict

    @property
    def rows(self):
        """The keys, one row each."""
        return np.stack([places(column) for column in self.keys.values()], axis=1)


@dataclass
class Met:
    """What the input words of a scenario mean."""

    stretches: list = field(default_factory=list)
    between: set = field(default_factory=set)
    words: list = field(default_factory=list)


def taken_apart(manifest, words):
    """Return what input words mean, as :class:`Met`."""
    codec = WordCodec(manifest)
    legal = codec.legal(words)
    kinds = unpack_field(words, manifest.input_word["kind"])
    alone = ~legal | (kinds == manifest.input_kinds["CONTROL"])
    windows = dict.fromkeys(range(2), ("WINDOW", manifest.capacity))
    operands, period, stored = {}, 1, {0: 0, 1: 0}
    met = Met()
    ends = np.flatnonzero(np.diff(alone)) + 1
    for begin, end in pairwise([0, *ends.tolist(), len(words)]):
        if not alone[begin]:
            some = words[begin:end]
            sides, keys, times = codec.unpack_tuples(some)
            met.stretches.append(
                Stretch(sides, keys, times, dict(windows), dict(operands), period, dict(stored))
            )
            met.words.append(some)
            for side in range(2):
                stored[side] += int((sides == side).sum())
            continue
        for at in range(begin, end):
            name, index, value = "a word without meaning", 0, 0
            if legal[at]:
                name, index, value = codec.unpack_control(words[at])
            if end - begin <= 2 and begin and end < len(words):
                met.between.add(name)
            if name in ("WINDOW", "LIFESPAN"):
                windows[index] = (name, value)
            if name == "COORDINATE":
                operands[index] = value
            if name == "PRECISION":
                period = value
            if name in ("CLEAR", "WINDOW", "LIFESPAN", "COORDINATE", "DISTINCT"):
                stored = {0: 0, 1: 0}
    return met


def one_key(manifest, stretch):
    """Whether all tuples have the same key."""
    return len(np.unique(stretch.rows, axis=0)) == 1


def skewed_keys(manifest, stretch):
    """Whether a key of many is that of a fifth of the tuples, as with a Zipf distribution."""
    _, counts = np.unique(stretch.rows, axis=0, return_counts=True)
    return len(counts) >= KEYS and 5 * counts.max() >= counts.sum()


def sorted_keys(manifest, stretch):
    """Whether no key is less than one before it."""
    rows = stretch.rows
    return len(np.unique(rows, axis=0)) >= KEYS and not (rows[1:] < rows[:-1]).any()


def extreme_keys(manifest, stretch):
    """Whether every field has its least and its greatest value."""
    columns = stretch.keys
    return all({key.low, key.high} <= set(columns[key.name].tolist()) for key in manifest.keys)


def strides(manifest, stretch):
    """Whether the values of every field are multiples of :data:`STRIDE`."""
    columns = [column.astype(np.int64) for column in stretch.keys.values()]
    return all(not (column % STRIDE).any() and len(np.unique(column)) > 1 for column in columns)


def look_alike(manifest, stretch, *, hashed):
    """Whether all keys, three at least, are in one bucket or have one digest."""
    looks = first_looks(manifest, stretch.operands, stretch.keys)
    if looks is None or len(np.unique(np.broadcast_to(looks, len(stretch.sides)))) > 1:
        return False
    if manifest.engine == "index" and manifest.comparator == "band":
        bit = manifest.index.coordinate.fields["hashed"].offset
        if hashed != any(operand >> bit & 1 for operand in stretch.operands.values()):
            return False
        if not any(stretch.operands.values()):
            return False
    return len(np.unique(stretch.rows, axis=0)) >= 3


def one_side(manifest, stretch):
    """Whether all tuples are of one side."""
    return len(np.unique(stretch.sides)) == 1


def burst(manifest, stretch):
    """Whether one side has :data:`BURST` tuples in a row, and then comes the other."""
    changes = np.flatnonzero(np.diff(stretch.sides)) + 1
    return len(changes) > 0 and np.diff([0, *changes, len(stretch.sides)]).max() >= BURST


def full_window(manifest, stretch):
    """Whether a probe meets as many tuples as the cores can hold."""
    return any(
        stretch.windows[side] == ("WINDOW", manifest.capacity)
        and (stretch.stored[side] + np.cumsum(stretch.sides == side) >= manifest.capacity)[
            stretch.sides != side
        ].any()
        for side in range(2)
    )


def window_leaves(manifest, stretch):
    """Whether four tuples or more of a side leave their window at once, and it is empty then."""
    times = places(stretch.times)
    for side, (name, lifespan) in stretch.windows.items():
        own = times[stretch.sides == side]
        if name != "LIFESPAN":
            continue
        for at in np.flatnonzero(np.diff(own) > max(lifespan, 0)):
            if (own[: at + 1] + np.uint64(max(lifespan, 0)) >= own[at]).sum() >= 4:
                return True
    return False


def window_is(name, size=None):
    """Return whether a window is of a kind, as a function of a stretch."""
    return lambda manifest, stretch: any(
        kind == name and size in (None, value) for kind, value in stretch.windows.values()
    )


def timed(manifest):
    """Whether there are timestamps."""
    return manifest.timestamp_bits > 0


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


def hashes(manifest):
    """Whether keys that differ can look alike to a hash or as digests."""
    if manifest.engine == "index":
        bits = sum(key.bits for key in manifest.keys)
        return bits >= manifest.index.bucket_bits + 2
    return manifest.parameters["digest_bits"] is not None


def grids(manifest):
    """Whether an index can have a grid of cells."""
    return manifest.engine == "index" and manifest.comparator == "band"


def always(manifest):
    """For cases that every accelerator can meet."""
    return True


#: Cases of tuples without another word between them: for which accelerators, and whether it is one.
OF_TUPLES = {
    "one hot key": (always, one_key),
    "skewed keys": (always, skewed_keys),
    "sorted keys": (always, sorted_keys),
    "extremes of all fields": (always, extreme_keys),
    f"keys in strides of {STRIDE}": (always, strides),
    "keys of one hash or digest": (hashes, lambda *of: look_alike(*of, hashed=True)),
    "keys of one cell of a grid": (grids, lambda *of: look_alike(*of, hashed=False)),
    "one side only": (always, one_side),
    f"a burst of {BURST}": (always, burst),
    "a probe of a full window": (always, full_window),
    "a window of one": (always, window_is("WINDOW", 1)),
    "a window by time": (timed, window_is("LIFESPAN")),
    "a whole window expires": (timed, window_leaves),
    "a star for each probe": (always, lambda _, stretch: stretch.period == 1),
    "a star for each group": (
        lambda manifest: manifest.probes > 1,
        lambda manifest, stretch: stretch.period == manifest.probes,
    ),
    "stars rarer than groups": (
        lambda manifest: manifest.probes < 1 << manifest.probe_bits,
        lambda manifest, stretch: stretch.period > manifest.probes,
    ),
    "no stars but the last": (always, lambda _, stretch: stretch.period == 0),
}
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
