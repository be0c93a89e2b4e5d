# SPDX-License-Identifier: Apache-2.0
"""What the input words of a scenario mean: tuples in a row, and the state that they meet."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from host.exact import places
from host.words import WordCodec, unpack_field

__all__ = ["Met", "Stretch", "taken_apart"]


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
