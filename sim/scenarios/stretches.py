# SPDX-License-Identifier: Apache-2.0
"""Decode the input words of a scenario: runs of tuples, and the configuration they meet."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from host.protocol.bit_fields import unpack_field
from host.reference.arrivals import places
from sim.model.words import words_of

__all__ = ["CLEARING", "Met", "Stretch", "taken_apart"]

#: Control words that change turns; there are as many of them as cores, and one more.
TURNS = {"CORE", "SEGMENT"}
#: Control words that empty the windows, or after which nothing may be found in them.
CLEARING = {"CLEAR", "WINDOW", "LIFESPAN", "COORDINATE", "DISTINCT", "CELL"}


@dataclass
class Stretch:
    """A run of tuples without other words in between, and the configuration that the tuples meet.

    Parameters
    ----------
    sides, times : array
        Side and timestamp of each tuple.
    keys : dict of str to array
        Values of each key field.
    windows : dict of int to (str, int)
        Name and operand of the control word that set the window of each side.
    operands : dict of int to int
        Operand of the last COORDINATE word of each key field, or of the last CELL word of each part
        of the digests.
    period, rounds : int
        Probes per star, and tuples per round; zero for no rounds.
    stored : dict of int to int
        Number of tuples of each side since the windows were last cleared.
    """

    sides: np.ndarray
    keys: dict
    times: np.ndarray
    windows: dict
    operands: dict
    period: int
    rounds: int
    stored: dict

    @property
    def rows(self):
        """The keys, one tuple per row."""
        return np.stack([places(column) for column in self.keys.values()], axis=1)


@dataclass
class Met:
    """Decoded input words of a scenario: stretches of tuples with their configuration.

    Parameters
    ----------
    stretches : list of Stretch
    between : set of str
        Names of the control words that stand alone or in pairs between other words, or that change
        turns there and do nothing else.
    words : list of array
        Words of each stretch.
    """

    stretches: list = field(default_factory=list)
    between: set = field(default_factory=set)
    words: list = field(default_factory=list)


def taken_apart(manifest, words):
    """Return input words decoded as a :class:`Met`."""
    codec = words_of(manifest)
    legal = codec.legal(words)
    kinds = unpack_field(words, manifest.input_word["kind"])
    alone = ~legal | (kinds == manifest.input_kinds["CONTROL"])
    windows = dict.fromkeys(range(2), ("WINDOW", manifest.capacity))
    operands, period, rounds, stored = {}, 1, 0, {0: 0, 1: 0}
    met = Met()
    ends = np.flatnonzero(np.diff(alone)) + 1
    for begin, end in pairwise([0, *ends.tolist(), len(words)]):
        if not alone[begin]:
            some = words[begin:end]
            sides, columns, times = codec.unpack_tuples(some)
            keys = {key.name: columns[key.name] for key in manifest.keys}
            met.stretches.append(
                Stretch(
                    sides, keys, times, dict(windows), dict(operands), period, rounds, dict(stored)
                )
            )
            met.words.append(some)
            for side in range(2):
                stored[side] += int((sides == side).sum())
            continue
        controls = [
            codec.unpack_control(words[at]) if legal[at] else ("a word without meaning", 0, 0)
            for at in range(begin, end)
        ]
        few = len(controls) <= 2 or {name for name, *_ in controls} <= TURNS
        for name, index, value in controls:
            if few and begin and end < len(words):
                met.between.add(name)
            if name in ("WINDOW", "LIFESPAN"):
                windows[index] = (name, value)
            if name in ("COORDINATE", "CELL"):
                operands[index] = value
            if name in ("PRECISION", "INNER"):
                period, rounds = (value, 0) if name == "PRECISION" else (1, value)
            if name in CLEARING:
                stored = {0: 0, 1: 0}
    return met
