# SPDX-License-Identifier: Apache-2.0
"""What control words of a program do, by ``docs/architecture.md``, section 2.

Moments are as in :mod:`sim.soak.model`; a stretch from ``begin`` to ``end`` holds the tuples with
``begin <= moment < end``. No tuple has the moment of a control word.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .words import as_numbers

__all__ = ["Controls", "Window", "read_controls"]

END = 1 << 62


@dataclass(frozen=True)
class Window:
    """A window of one side, from its empty beginning until it is emptied again.

    Parameters
    ----------
    begin, end : int
        The stretch in which it stores.
    timed : bool
        Whether ``size`` is a lifespan; else it is a number of tuples.
    size : int
    distinct : bool
        Whether its keys have been declared distinct.
    """

    begin: int
    end: int
    timed: bool
    size: int
    distinct: bool


class Controls:
    """The legal control words of a program, in their effects.

    Attributes
    ----------
    illegal : list of int
        Moments of illegal words.
    counts : Counter
        Legal words of each operation.
    marks, closings, clears : list of int
        Moments of words that answer a mark, close groups, empty everything.
    precisions, bounds, hashes : list of (int, value)
        From when on which precision, bounds of all fields, or hashed fields hold.
    """

    def __init__(self, manifest, capacity):
        parameters = manifest["parameters"]
        self.capacity = capacity
        self.bits = [key["bits"] for key in parameters["keys"]]
        self.longest = (1 << parameters["timestamp_bits"]) - 1
        self.period = 1 << parameters["probe_bits"]
        self.probes = parameters["probes"]
        self.coordinate = manifest.get("index", {}).get("coordinate")
        open_bounds = tuple((-(1 << bits), (1 << bits) - 1) for bits in self.bits)
        self.illegal, self.marks, self.closings, self.clears = [], [], [], []
        self.counts = Counter()
        self.precisions, self.bounds = [(-1, 1)], [(-1, open_bounds)]
        self.hashes = [(-1, (False,) * len(self.bits))]
        self.lives = [[Window(0, END, False, capacity, False)] for _ in range(2)]

    def execute(self, moment, op, index, value):
        """Take one legal control word."""
        self.counts[op] += 1
        if op in ("CLEAR", "FLUSH", "PRECISION"):
            self.marks.append(moment)
        if op not in ("BOUND_LOW", "BOUND_HIGH"):
            self.closings.append(moment)
        getattr(self, f"on_{op.lower()}")(moment, index, value)

    def renew(self, moment, side, **changes):
        """Begin a new window of a side."""
        lives = self.lives[side]
        lives.append(replace(lives[-1], begin=moment, **changes))
        lives[-2] = replace(lives[-2], end=moment)

    def on_clear(self, moment, index, value):
        """CLEAR."""
        self.clears.append(moment)
        for side in (0, 1):
            self.renew(moment, side)

    def on_flush(self, moment, index, value):
        """FLUSH: it closes groups, as others do."""

    def bound(self, moment, index, end, value):
        """Set one bound of a field."""
        limit = 1 << self.bits[index]
        bounds = [list(both) for both in self.bounds[-1][1]]
        bounds[index][end] = min(max(value, -limit), limit - 1)
        self.bounds.append((moment, tuple(map(tuple, bounds))))

    def on_bound_low(self, moment, index, value):
        """BOUND_LOW."""
        self.bound(moment, index, 0, value)

    def on_bound_high(self, moment, index, value):
        """BOUND_HIGH."""
        self.bound(moment, index, 1, value)

    def on_window(self, moment, index, value):
        """WINDOW."""
        self.renew(moment, index, timed=False, size=min(max(value, 1), self.capacity))

    def on_lifespan(self, moment, index, value):
        """LIFESPAN."""
        self.renew(moment, index, timed=True, size=min(max(value, 0), self.longest))

    def on_precision(self, moment, index, value):
        """PRECISION."""
        period = value if 1 <= value <= self.period else self.period
        self.precisions.append((moment, period))

    def on_coordinate(self, moment, index, value):
        """COORDINATE: of its part, only whether it is hashed can change an answer."""
        part = self.coordinate["fields"]["hashed"]
        sure = 0 <= value < 1 << self.coordinate["bits"]
        hashed = not sure or bool(part["bits"] and value >> part["offset"] & 1)
        fields = list(self.hashes[-1][1])
        fields[index] = hashed
        self.hashes.append((moment, tuple(fields)))
        for side in (0, 1):
            self.renew(moment, side)

    def on_distinct(self, moment, index, value):
        """DISTINCT."""
        for side in (0, 1):
            changes = {"distinct": bool(value & 1)} if side == index else {}
            self.renew(moment, side, **changes)

    def eras(self):
        """Return the stretches between CLEAR words."""
        return list(pairwise([0, *self.clears, END]))

    def windows(self, side):
        """Return the windows of a side."""
        return self.lives[side]

    def free(self):
        """Tell of every mark whether the order of the results before it is free."""
        moments = [moment for moment, _ in self.precisions]
        in_force = np.searchsorted(moments, self.marks, side="left") - 1
        return np.array([self.precisions[n][1] > self.probes for n in in_force], bool)

    def stretches(self):
        """Yield ``begin, end, period, closed`` between words that close groups."""
        moments = [moment for moment, _ in self.precisions]
        ends = [0, *self.closings, END]
        in_force = np.searchsorted(moments, ends[:-1], side="right") - 1
        for (begin, end), n in zip(pairwise(ends), in_force, strict=True):
            yield begin, end, self.precisions[n][1], end != END

    def bounds_of(self, moments):
        """Yield, for rising moments, bounds and the range of moments in which they hold."""
        return versions(self.bounds, moments)

    def misled(self, bounds, moments):
        """Tell of each probe whether a field is hashed whose bounds differ."""
        wrong = np.zeros(len(moments), bool)
        for hashed, begin, end in versions(self.hashes, moments):
            wrong[begin:end] = any(
                one and low != high for one, (low, high) in zip(hashed, bounds, strict=True)
            )
        return wrong


def versions(changes, moments):
    """Yield ``value, begin, end``: which of some rising moments a value holds for."""
    begins = np.searchsorted(moments, [moment for moment, _ in changes])
    for (_, value), begin, end in zip(changes, begins, [*begins[1:], len(moments)], strict=True):
        if begin < end:
            yield value, int(begin), int(end)


def read_controls(manifest, layout, words, capacity):
    """Return the :class:`Controls` of a program."""
    controls = Controls(manifest, capacity)
    kinds = manifest["input_kinds"]
    kind = layout.get(words, "kind")
    tuples = [kinds[name] for name in ("R", "S", "BOTH") if name in kinds]
    names = {code: name for name, code in manifest["operations"].items()}
    places = np.flatnonzero(~np.isin(kind, tuples))
    for place, number in zip(places.tolist(), as_numbers(words[places]), strict=True):
        op = names.get(layout.value(number, "control.op"))
        index = layout.value(number, "control.index")
        legal = layout.value(number, "kind") == kinds["CONTROL"] and op is not None
        if legal and index < manifest["indices"][op]:
            controls.execute(2 * place, op, index, layout.value(number, "control.value"))
        else:
            controls.illegal.append(2 * place)
    return controls
