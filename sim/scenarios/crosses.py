# SPDX-License-Identifier: Apache-2.0
"""Crosses of functional coverage: which words met which state of a window, under which stall.

As the cases of :mod:`sim.scenarios.cases`, they are recognized in the words alone: the state of the
windows follows from the words before, and the stall is what the word itself had to wait for.
"""

from itertools import product

from host.protocol.bit_fields import unpack_field
from sim.model.words import words_of

from .stretches import CLEARING
from .tuple_cases import timed

__all__ = ["BOUNDARIES", "KINDS", "PRECISIONS", "STALLED", "Crosses"]

#: Kinds of words.
KINDS = ("R", "S", "R and S", "control", "no meaning")
#: What a word waited for before it was taken: the bench, or the accelerator.
STALLED = ("at once", "withheld", "refused")
#: State of the window that a tuple meets: that of a count in the first row, that of a time in the
#: second one, in which the oldest tuple may be as old as the lifespan allows.
BOUNDARIES = (
    "empty", "growing", "full",
    "none expired", "oldest in its last moment", "some expired", "all expired",
)  # fmt: skip
#: How often a star has to come.
PRECISIONS = ("each probe", "each group", "rarer", "none", "rounds")


def possible(manifest):
    """Return the combinations that an accelerator can meet."""
    has_rounds = "INNER" in manifest.operations
    left_out = set()
    if manifest.tuples_per_word == 1:
        left_out.add("R and S")
    if not timed(manifest):
        left_out.update(BOUNDARIES[3:])
    if manifest.probes == 1:
        left_out.add("each group")
    if manifest.probes >= 1 << manifest.probe_bits:
        left_out.add("rarer")
    if not has_rounds:
        left_out.add("rounds")
    every = product(KINDS, STALLED, BOUNDARIES, PRECISIONS)
    return {names for names in every if not left_out.intersection(names)}


class _Window:
    """Timestamps of the tuples of a side, since its window was last cleared."""

    def __init__(self, capacity):
        self.kind, self.size = "WINDOW", capacity
        self.clear()

    def clear(self):
        """Forget all tuples."""
        self.count, self.times = 0, set()
        self.oldest = self.newest = 0

    def add(self, time):
        """Add a tuple."""
        self.oldest = min(self.oldest, time) if self.count else time
        self.newest = max(self.newest, time) if self.count else time
        self.count += 1
        self.times.add(time)

    def boundary(self, now):
        """Return the state of the window at a time."""
        if not self.count:
            return "empty"
        if self.kind == "WINDOW":
            return "full" if self.count >= self.size else "growing"
        if now - self.newest > self.size:
            return "all expired"
        if now - self.size in self.times:
            return "oldest in its last moment"
        return "some expired" if now - self.oldest > self.size else "none expired"


class Crosses:
    """Coverage counters: combinations of kind, stall, boundary and precision of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.

    Attributes
    ----------
    met : dict of tuple to int
        For each combination that the accelerator can meet, the number of words that met it.
    """

    def __init__(self, manifest):
        self.manifest = manifest
        self.met = dict.fromkeys(sorted(possible(manifest)), 0)

    def sample(self, words, waits):
        """Count the combinations that the words of a run have met.

        Parameters
        ----------
        words : array of uint64
            Input words, one per row, in the order in which they were sent.
        waits : list of set of str
            For each word, what it waited for: any of ``"withheld"`` and ``"refused"``.
        """
        manifest, codec = self.manifest, words_of(self.manifest)
        windows = [_Window(manifest.capacity) for _ in range(2)]
        period, rounds, now = 1, 0, 0
        legal = codec.legal(words)
        kinds = unpack_field(words, manifest.input_word["kind"])
        control = manifest.input_kinds["CONTROL"]
        for at, (word, wait) in enumerate(zip(words, waits, strict=True)):
            precision = self.precision(period, rounds)
            if legal[at] and kinds[at] != control:
                sides, _, times = codec.unpack_tuples(words[at : at + 1])
                kind = "R and S" if len(sides) == 2 else KINDS[sides[0]]
                for side, time in zip(sides.tolist(), times.tolist(), strict=True):
                    now = time
                    self.count(kind, wait, windows[1 - side].boundary(now), precision)
                    windows[side].add(now)
                continue
            kind = "control" if legal[at] else "no meaning"
            for window in windows:
                self.count(kind, wait, window.boundary(now), precision)
            if not legal[at]:
                continue
            name, index, value = codec.unpack_control(word)
            if name in ("WINDOW", "LIFESPAN"):
                windows[index].kind, windows[index].size = name, value
            if name in ("PRECISION", "INNER"):
                period, rounds = (value, 0) if name == "PRECISION" else (1, value)
            if name in CLEARING:
                for window in windows:
                    window.clear()

    def precision(self, period, rounds):
        """Return the name of a precision."""
        if rounds:
            return "rounds"
        if period == 0:
            return "none"
        if period == 1:
            return "each probe"
        return "each group" if period <= self.manifest.probes else "rarer"

    def count(self, kind, wait, boundary, precision):
        """Count a word."""
        for stalled in wait or ("at once",):
            self.met[kind, stalled, boundary, precision] += 1
