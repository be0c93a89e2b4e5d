# SPDX-License-Identifier: Apache-2.0
"""Words of a bundle's accelerator in, its result words out, from the reference join."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from host.expressions import Expression, evaluate
from host.protocol.bit_fields import unpack_field
from host.protocol.manifest import JoinAggregateManifest, Manifest
from host.protocol.punctuation import Closings
from host.query.conditions import Condition
from host.reference.arrivals import Side, UInt64s
from host.reference.predicate import Keys, load_predicate
from sim.model.accelerator import (
    NEVER,
    AcceleratorModel,
    GroupEmission,
    Pairs,
    Told,
    with_stars,
)
from sim.model.words import REDUCTIONS, MatchWords, words_of

__all__ = [
    "DeviceModel",
    "MatchesModel",
    "reduced_pairs",
    "own_predicate",
]

# A model of a join aggregate: batches of input in, reductions of matches out.

Int64s = npt.NDArray[np.int64]


def reduced_pairs(
    probe: Int64s, value: Int64s, probes: int, *, least: int, most: int
) -> dict[str, Int64s]:
    """Return count, total, least and most of the values that each of some probes matches.

    Parameters
    ----------
    probe, value : array of int64
        For each pair, the number of its probe and the value that it matches.
    probes : int
        Number of probes.
    least, most : int
        What ``least`` and ``most`` of no match are.
    """
    reduced = {
        "count": np.bincount(probe, minlength=probes).astype(np.int64),
        "total": np.zeros(probes, np.int64),
        "least": np.full(probes, least),
        "most": np.full(probes, most),
    }
    np.add.at(reduced["total"], probe, value)
    np.minimum.at(reduced["least"], probe, value)
    np.maximum.at(reduced["most"], probe, value)
    return reduced


class MatchEmission(GroupEmission):
    """Reduces the matches of R's probes, and turns them into result words.

    Parameters
    ----------
    manifest : JoinAggregateManifest
        Manifest with the layout of the words and the storage rule.
    """

    def __init__(self, manifest: JoinAggregateManifest) -> None:
        super().__init__(manifest)
        self._codec = MatchWords(manifest)
        self._longest = 1 << manifest.probe_bits
        half = 1 << manifest.value_bits - 1
        self._neutral = {"least": half - 1, "most": -half}
        self._held = {name: np.zeros(0, np.int64) for name in REDUCTIONS}
        self._number = 0  # of the next probe that leaves, since the last star

    def add(self, side: Side, probes: int, pairs: Pairs) -> None:
        """Reduce the pairs of the next ``probes`` probes of R; those of S find none."""
        if side is Side.S:
            return
        value = np.zeros(0, np.int64) if pairs.value is None else pairs.value
        reduced = reduced_pairs(pairs.probe, value, probes, **self._neutral)
        self._held = {name: np.concatenate([self._held[name], reduced[name]]) for name in reduced}

    def mark(self, overflowed: Mapping[Side, bool], told: Told) -> UInt64s:
        """Return a mark as a result word."""
        flags = overflowed[Side.S] << Side.S
        return self._codec.pack_punctuation(self._codec.mark, flags, told.disorder, told.illegal)

    def emit(
        self, closings: Closings, overflow: npt.NDArray[np.bool_], told: Told
    ) -> tuple[UInt64s, int]:
        """See :meth:`~sim.model.accelerator.GroupEmission.emit`; only groups of R have results."""
        groups = np.flatnonzero(closings.side == Side.R)
        counts, has_star = closings.probes[groups], closings.star[groups]
        ends = np.cumsum(counts)
        values = int(counts.sum())
        leaving = {name: column[:values] for name, column in self._held.items()}
        self._held = {name: column[values:] for name, column in self._held.items()}
        # Where the numbers of probes began to count from zero, before each group and behind all.
        zeros = np.where(has_star, ends, -self._number)
        zeros = np.maximum.accumulate(np.concatenate([[-self._number], zeros]))
        numbers = (np.arange(values) - np.repeat(zeros[:-1], counts)) % self._longest
        self._number = values - int(zeros[-1])
        flags = overflow[groups[has_star]].astype(np.int64) << Side.S
        stars = self._codec.pack_punctuation(self._codec.star, flags, told.disorder, told.illegal)
        words = self._codec.pack_values(numbers, leaving)
        return with_stars(words, stars, ends[has_star]), values


class MatchesModel(AcceleratorModel):
    """State of a join aggregate between two input words, as that of an ``AcceleratorModel``.

    Parameters
    ----------
    manifest : JoinAggregateManifest
        Manifest of the accelerator.
    custom : function, optional
        Predicate of a custom comparator.
    """

    manifest: JoinAggregateManifest

    def _make_emission(self) -> MatchEmission:
        return MatchEmission(self.manifest)

    def _join(self, side: Side, keys: Keys, time: UInt64s, before: Int64s) -> Pairs:
        """Return the pairs that probes of R find, with their values; those of S do not probe."""
        if side is Side.S:
            return Pairs.empty()
        pairs = super()._join(side, keys, time, before)
        if not len(pairs.stored):
            return pairs
        stored = self._histories[Side.S]
        values = np.asarray(stored.keys["value"], np.int64)
        return pairs._replace(value=values[pairs.stored - stored.base])

    def _overflow(self, side: Side, first: int, mine: Int64s, time: UInt64s) -> int:
        """Note which cores overflow; tuples of R are not stored."""
        return NEVER if side is Side.R else super()._overflow(side, first, mine, time)


# The model of any bundle, word by word.

#: Least number of tuples joined at once, used after a control word, and the largest number.
FEWEST, MOST = 1 << 10, 1 << 16
#: Number of results of a batch above which the next batch of tuples is smaller.
MANY = 1 << 18


def own_predicate(manifest: Manifest) -> Callable[[Any, Any], Any] | None:
    """Return the predicate of an accelerator that has one of its own, as a function of two keys.

    Raises
    ------
    UsageError
        If it is a function that cannot be imported.
    """
    if manifest.where is not None:
        expression = Expression(Condition(manifest.where).text)

        def predicate(r: Any, s: Any) -> Any:
            rows = {"l": r, "r": s}
            values = {name: getattr(rows[name[0]], name[2:]) for name in expression.names}
            return np.not_equal(evaluate(expression, values), 0)

        return predicate
    return None if manifest.predicate is None else load_predicate(manifest.predicate)


class DeviceModel:
    """Computes the result words of a bundle's hardware.

    The results and their order equal those of the hardware while the period of the stars is at most
    ``probes``. With a longer period, the pairs between two stars may come in another order. After
    an overflow or disorder, stars and marks report the error as in hardware, and the pairs, which
    are then unreliable, can differ.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the bundle, which is no chain.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        is_aggregate = isinstance(manifest, JoinAggregateManifest)
        kind = MatchesModel if is_aggregate else AcceleratorModel
        self._model, self._codec = kind(manifest, own_predicate(manifest)), words_of(manifest)
        self._waiting = np.zeros((0, manifest.result_word.columns), np.uint64)
        self._batch = FEWEST

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters that do not count cycles, by name."""
        return self._model.counters

    def fail(self, core: int) -> None:
        """Let a core fail, as :meth:`sim.model.accelerator.AcceleratorModel.fail` does."""
        self._model.fail(core)

    def exchange(self, words: UInt64s, results: UInt64s) -> tuple[int, int]:
        """Take input words, fill in results, and return how many of each there are.

        As a device does, it stops behind a mark and where ``results`` is full.
        """
        kinds = unpack_field(words, self.manifest.input_word["kind"])
        legal = self._codec.legal(words)
        alone = np.flatnonzero((kinds == self.manifest.input_kinds["CONTROL"]) | ~legal)
        accepted, produced = 0, 0
        while True:
            delivered, marked = self._deliver(results[produced:])
            produced += delivered
            if marked or produced == len(results) or accepted == len(words):
                return accepted, produced
            at = int(np.searchsorted(alone, accepted))
            until = int(alone[at]) if at < len(alone) else len(words)
            if until == accepted:
                self._batch = FEWEST
                if legal[accepted]:
                    control = self._codec.unpack_control(words[accepted])
                    self._waiting = self._codec.join_results(self._model.control(*control))
                else:
                    self._model.drop_illegal()
                accepted += 1
            else:
                until = min(until, accepted + self._batch)
                self._waiting = self._tuples(words[accepted:until])
                accepted = until

    def _tuples(self, words: UInt64s) -> UInt64s:
        """Join tuples, and adapt the size of the next batch to the number of results."""
        answers = self._model.tuples(*self._codec.unpack_tuples(words))
        if len(answers) > MANY:
            self._batch = max(1, self._batch // 4)
        elif len(answers) < MANY // 4:
            self._batch = min(MOST, self._batch * 2)
        return self._codec.join_results(answers)

    def _deliver(self, results: UInt64s) -> tuple[int, bool]:
        """Deliver waiting results; return their number, and whether the last one is a mark."""
        # Only the last waiting word can be a mark, because each control word is executed alone.
        count = min(len(results), len(self._waiting))
        results[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        kind = unpack_field(results[count - 1 : count], self.manifest.result_word["kind"])
        return count, count > 0 and int(kind[0]) == self._codec.mark
