# SPDX-License-Identifier: Apache-2.0
"""The right answer of a chain of cores, which no software device computes.

A chain names both tuples of a pair by their numbers, and the order of its pairs is free between two
marks. So the answer is a bag of pairs for each mark, which the reference join finds.
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.reference.arrivals import Arrivals, Side
from host.reference.join import reference_join
from host.reference.predicate import EQUAL, Bounds, DifferenceBand
from host.reference.window import CountWindow, TimeWindow
from sim.model.device import own_predicate
from sim.model.words import words_of

__all__ = ["ChainAnswer", "ChainJoin", "assert_chain_right", "chain_answer", "read_chain"]

#: Control words that are answered by a mark.
MARKED = ("CLEAR", "FLUSH", "PRECISION")


@dataclass
class ChainAnswer:
    """What a chain answers, mark by mark.

    Parameters
    ----------
    pairs : list of list of (int, int)
        Of every mark, the pairs before it since the last one, as sorted numbers of R and S.
    faults : list of (int, int, int)
        Of every mark, the faults before it since CLEAR: overflow, disorder, illegal.
    """

    pairs: list = field(default_factory=list)
    faults: list = field(default_factory=list)

    def __len__(self):
        """Return how many results there are."""
        return len(self.pairs) + sum(map(len, self.pairs))


class ChainJoin:
    """The join of a chain, which is told its words and answers at every mark.

    The tuples since both windows were last empty are joined by the reference at every control word.

    Parameters
    ----------
    manifest : Manifest
        Of the chain.

    Attributes
    ----------
    answer : ChainAnswer
    """

    def __init__(self, manifest):
        self.manifest = manifest
        self.answer = ChainAnswer()
        self._custom = own_predicate(manifest)
        self._bounds = {key.name: Bounds() for key in manifest.keys}
        self._windows = [CountWindow(manifest.capacity)] * 2
        self._tuples = {"side": np.zeros(0, np.uint8), "time": np.zeros(0, np.uint64)}
        for key in manifest.keys:
            self._tuples[f"key.{key.name}"] = np.zeros(0, np.int64 if key.signed else np.uint64)
        self._known = 0  # pairs of these tuples that are nothing new
        self._due = []  # pairs that the next mark comes after
        self._restart()

    def _restart(self):
        """Begin to number tuples, and forget faults and time."""
        self._base = [0, 0]  # tuples since CLEAR, before those that are joined
        self._fault, self._now = [0, 0, 0], 0
        self._times = defaultdict(list)  # of the tuples that are joined, by side

    def control(self, operation, index, value):
        """Take a legal control word."""
        self._due += self._pairs()[self._known :]
        if operation in MARKED:
            self.answer.pairs.append(sorted(self._due))
            self.answer.faults.append(tuple(self._fault))
            self._due = []
        if operation.startswith("BOUND"):
            key = self.manifest.keys[index]
            ends = [self._bounds[key.name].low, self._bounds[key.name].high]
            ends[operation == "BOUND_HIGH"] = min(max(value, -(1 << key.bits)), (1 << key.bits) - 1)
            self._bounds[key.name] = Bounds(*ends)
        elif operation == "WINDOW":
            self._windows[index] = CountWindow(min(max(value, 1), self.manifest.capacity))
            self._forget([index])
        elif operation == "LIFESPAN":
            longest = (1 << self.manifest.timestamp_bits) - 1
            self._windows[index] = TimeWindow(min(max(value, 0), longest))
            self._forget([index])
        if operation in self.manifest.chain.emptied_by:
            self._forget([Side.R, Side.S])
        if operation == "CLEAR":
            self._restart()
        self._known = len(self._pairs())

    def _forget(self, emptied):
        """Leave out the tuples of some sides."""
        for side in emptied:
            self._base[side] += int((self._tuples["side"] == side).sum())
            self._times[side].clear()
        kept = ~np.isin(self._tuples["side"], emptied)
        self._tuples = {name: column[kept] for name, column in self._tuples.items()}

    def tuples(self, sides, keys, times):
        """Take tuples, given as arrays; those that are out of order or find no room are dropped."""
        taken = [self._takes(*one) for one in zip(sides.tolist(), times.tolist(), strict=True)]
        taken = np.array(taken, np.bool_)
        columns = {"side": sides, "time": times}
        columns |= {f"key.{name}": column for name, column in keys.items()}
        for name, column in self._tuples.items():
            more = columns[name][taken].astype(column.dtype)
            self._tuples[name] = np.concatenate([column, more])

    def illegal(self):
        """Take a word that the ingress drops."""
        self._fault[2] = 1

    def _takes(self, side, time):
        """Return whether a tuple is in order and has room; if not, remember the fault."""
        self._fault[1] |= int(self.manifest.timestamp_bits > 0 and time < self._now)
        if self._fault[1]:
            return False
        self._now, window, before = time, self._windows[side], self._times[side]
        if isinstance(window, TimeWindow):
            held = len(before) - bisect_left(before, time - window.lifespan)
            if held >= self.manifest.capacity:
                self._fault[0] |= 1 << side
                return False
        before.append(time)
        return True

    def _predicate(self):
        """Return the predicate that is in force."""
        if self._custom is not None:
            return self._custom
        equal = dict.fromkeys(self._bounds, EQUAL)
        return DifferenceBand(self._bounds if self.manifest.bounded else equal)

    def _pairs(self):
        """Return all pairs of the tuples that are joined, in order of their later tuples."""
        side, time = self._tuples["side"], self._tuples["time"]
        keys = {name: self._tuples[f"key.{name}"] for name in self._bounds}
        found = reference_join(Arrivals(side, keys, time), self._predicate(), *self._windows)
        numbers = np.zeros(len(side), np.int64)
        for one in Side:
            own = np.flatnonzero(side == one)
            numbers[own] = self._base[one] + np.arange(len(own))
        numbers %= 1 << self.manifest.chain.ordinal_bits
        is_r = side[found.probe] == Side.R
        r = np.where(is_r, found.probe, found.stored)
        s = np.where(is_r, found.stored, found.probe)
        return list(zip(numbers[r].tolist(), numbers[s].tolist(), strict=True))


def chain_answer(manifest, words):
    """Return the :class:`ChainAnswer` to input words, one per row."""
    codec, join = words_of(manifest), ChainJoin(manifest)
    legal = codec.legal(words)
    is_control = unpack_field(words, codec.input["kind"]) == manifest.input_kinds["CONTROL"]
    begin = 0
    for at in [*np.flatnonzero(~legal | is_control).tolist(), len(words)]:
        if at > begin:
            join.tuples(*codec.unpack_tuples(words[begin:at]))
        if at < len(words) and legal[at]:
            join.control(*codec.unpack_control(words[at]))
        elif at < len(words):
            join.illegal()
        begin = at + 1
    return join.answer


def read_chain(manifest, results):
    """Return the :class:`ChainAnswer` that result words are, and the pairs behind its last mark."""
    marks = WordCodec(manifest).marks(results)
    r, s, *told = (
        unpack_field(results, manifest.result_word[name]).tolist()
        for name in ("r", "s", "overflow", "disorder", "illegal")
    )
    answer, current = ChainAnswer(), []
    for n, is_mark in enumerate(marks):
        if is_mark:
            answer.pairs.append(sorted(current))
            answer.faults.append(tuple(column[n] for column in told))
            current = []
        else:
            current.append((r[n], s[n]))
    return answer, current


def assert_chain_right(manifest, results, answer):
    """Compare a chain's results with the answer of the reference join.

    Parameters
    ----------
    manifest : Manifest
        Of the chain.
    results : array of uint64
        All result words, one per row.
    answer : ChainAnswer
        From :func:`chain_answer`.

    Raises
    ------
    AssertionError
        If a pair is missing, repeated, wrong, or beyond a mark; or if a mark or its faults are
        wrong. Pairs count after an overflow, too.
    """
    found, behind = read_chain(manifest, results)
    assert not behind, f"{len(behind)} pairs after the last mark"
    assert found.faults == answer.faults, "the marks are not those of the reference join"
    for mark, (pairs, right) in enumerate(zip(found.pairs, answer.pairs, strict=True)):
        assert pairs == right, f"the pairs before mark {mark} are not those of the reference join"
