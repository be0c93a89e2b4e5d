# SPDX-License-Identifier: Apache-2.0
"""Programs for chains of cores, and the pairs between two marks that the reference join finds."""

from dataclasses import dataclass, field

import numpy as np

from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.reference.arrivals import Arrivals, Side
from host.reference.join import reference_join
from host.reference.predicate import EQUAL, Bounds, DifferenceBand, load_predicate
from host.reference.window import CountWindow, TimeWindow

__all__ = ["Program", "faults_by_mark", "pairs_by_mark", "random_program"]

MARKED = ("CLEAR", "FLUSH", "PRECISION")


@dataclass
class Program:
    """Words for a chain, in order, and what it must answer.

    Control words and tuples are added; the tuples since both windows were last empty are joined by
    the reference whenever a mark is due.
    """

    manifest: Manifest
    words: list = field(default_factory=list)
    #: Of every mark, the pairs before it since the last one, as sorted numbers of R and S.
    expected: list = field(default_factory=list)
    #: Of every mark, the faults before it since CLEAR: overflow, disorder, illegal.
    faults: list = field(default_factory=list)

    def __post_init__(self):
        self._codec = WordCodec(self.manifest)
        self._bounds = {key.name: Bounds() for key in self.manifest.keys}
        self._windows = [CountWindow(self.manifest.capacity)] * 2
        self._base = [0, 0]  # tuples since CLEAR, before those that are joined
        self._tuples = []
        self._known = 0  # pairs of them that are nothing new
        self._due = []  # pairs that the next mark comes after
        self._fault, self._now = [0, 0, 0], 0

    def control(self, operation, index=0, value=0):
        """Add a control word."""
        self.words.append(self._codec.pack_control(operation, index, value))
        self._due += self._pairs()[self._known :]
        if operation in MARKED:
            self.expected.append(sorted(self._due))
            self.faults.append(tuple(self._fault))
            self._due = []
        if operation.startswith("BOUND"):
            name = self.manifest.keys[index].name
            ends = [self._bounds[name].low, self._bounds[name].high]
            ends[operation == "BOUND_HIGH"] = value
            self._bounds[name] = Bounds(*ends)
        elif operation in ("WINDOW", "LIFESPAN"):
            self._windows[index] = (CountWindow if operation == "WINDOW" else TimeWindow)(value)
            self._forget([index])
        if operation in self.manifest.chain.emptied_by:
            self._forget([Side.R, Side.S])
        if operation == "CLEAR":
            self._base, self._fault, self._now = [0, 0], [0, 0, 0], 0
        self._known = len(self._pairs())

    def _forget(self, emptied):
        """Leave out the tuples of some sides."""
        for side in emptied:
            self._base[side] += sum(own == side for own, *_ in self._tuples)
        self._tuples = [row for row in self._tuples if row[0] not in emptied]

    def tuples(self, sides, keys, times):
        """Add tuples; ``keys`` has a list for each of them."""
        names = [key.name for key in self.manifest.keys]
        columns = {name: np.array([key[n] for key in keys]) for n, name in enumerate(names)}
        self.words.append(self._codec.pack_tuples(np.array(sides), columns, np.array(times)))
        for row in zip(sides, keys, times, strict=True):
            if self._is_taken(*row):
                self._tuples.append(row)

    def illegal(self, word):
        """Add a word that the ingress drops, as an integer."""
        columns = self.manifest.input_word.columns
        parts = [word >> 64 * n & (1 << 64) - 1 for n in range(columns)]
        self.words.append(np.array([parts], np.uint64))
        self._fault[2] = 1

    def _is_taken(self, side, key, time):
        """Return whether a tuple is in order and has room; if not, remember the fault."""
        self._fault[1] |= int(self.manifest.timestamp_bits > 0 and time < self._now)
        if self._fault[1]:
            return False
        self._now, window = time, self._windows[side]
        if isinstance(window, TimeWindow):
            held = [at for own, _, at in self._tuples if own == side]
            if sum(time - at <= window.lifespan for at in held) >= self.manifest.capacity:
                self._fault[0] |= 1 << side
                return False
        return True

    def packed(self):
        """Return the words as rows."""
        return np.concatenate(self.words)

    def _predicate(self, names):
        """Return the predicate that is in force."""
        if self.manifest.comparator == "custom":
            return load_predicate(self.manifest.predicate)
        is_equality = self.manifest.comparator == "equality"
        return DifferenceBand(dict.fromkeys(names, EQUAL) if is_equality else self._bounds)

    def _pairs(self):
        """Return all pairs of the tuples that are joined, in order of their later tuples."""
        if not self._tuples:
            return []
        sides, keys, times = zip(*self._tuples, strict=True)
        names = [key.name for key in self.manifest.keys]
        columns = {name: np.array([key[n] for key in keys]) for n, name in enumerate(names)}
        side = np.array(sides, np.uint8)
        matches = reference_join(
            Arrivals(side, columns, np.array(times)), self._predicate(names), *self._windows
        )
        numbers = np.where(side == Side.R, np.cumsum(side == Side.R), np.cumsum(side == Side.S)) - 1
        pairs = []
        for probe, stored in zip(matches.probe, matches.stored, strict=True):
            r, s = (probe, stored) if side[probe] == Side.R else (stored, probe)
            pairs.append((int(numbers[r]) + self._base[0], int(numbers[s]) + self._base[1]))
        return pairs


def random_program(manifest, seed, *, tuples=40, blocks=2, timed=False, spread=2):
    """Return a random program: bursts of a side, alternating ones, none, small windows and large.

    Parameters
    ----------
    manifest : Manifest
        Of a chain.
    seed : int
    tuples : int
        Of every block, about.
    blocks : int
        Parts with other windows and bounds.
    timed : bool
        Whether windows may be time-based.
    spread : int
        The least and greatest key.
    """
    rng = np.random.default_rng(seed)
    program, now = Program(manifest), 0
    for _ in range(blocks):
        for index in range(len(manifest.keys)):
            program.control("BOUND_LOW", index, -int(rng.integers(0, 2)))
            program.control("BOUND_HIGH", index, int(rng.integers(0, 2)))
        by_time = timed and rng.random() < 0.7
        for side in range(2):
            if by_time and rng.random() < 0.8:  # so short that no more fit than there is room for
                program.control("LIFESPAN", side, int(rng.integers(0, manifest.capacity - 1)))
            else:
                program.control("WINDOW", side, int(rng.integers(1, manifest.capacity + 1)))
        program.control("PRECISION", 0, int(rng.integers(0, 3)))
        program.control("CLEAR")
        now = 0
        for _ in range(int(rng.integers(1, 3))):
            share, sides = rng.choice([0.0, 0.1, 0.5, 0.5, 0.9, 1.0]), []
            while len(sides) < rng.integers(0, tuples + 1):
                sides += [int(rng.random() < share)] * int(rng.choice([1, 1, 1, 2, 7]))
            times = now + np.cumsum(np.ones(len(sides), np.int64))
            now = int(times[-1]) if len(sides) else now
            low = [0 if not key.signed else -spread for key in manifest.keys]
            keys = [[int(rng.integers(least, spread + 1)) for least in low] for _ in sides]
            if sides:
                program.tuples(sides, keys, [int(time) for time in times])
            program.control("FLUSH")
    return program


def pairs_by_mark(manifest, results):
    """Return the pairs before every mark of some result words, sorted; and those after the last."""
    codec = WordCodec(manifest)
    r, s = (unpack_field(results, manifest.result_word[name]) for name in "rs")
    pairs, current = [], []
    for n, is_mark in enumerate(codec.marks(results)):
        if is_mark:
            pairs.append(sorted(current))
            current = []
        else:
            current.append((int(r[n]), int(s[n])))
    return pairs, current


def faults_by_mark(manifest, results):
    """Return the faults in every mark of some result words: overflow, disorder, illegal."""
    marks = results[WordCodec(manifest).marks(results)]
    names = ("overflow", "disorder", "illegal")
    columns = [unpack_field(marks, manifest.result_word[name]) for name in names]
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]
