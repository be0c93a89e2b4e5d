# SPDX-License-Identifier: Apache-2.0
"""A model of a join aggregate without timing: batches of input in, reductions of matches out."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from host.device.emission import GroupEmission, Pairs, with_stars
from host.device.model import NEVER, AcceleratorModel
from host.hardware.punctuation import Closings
from host.manifest import JoinAggregateManifest
from host.reference.exact import UInt64s
from host.reference.predicate import Keys
from host.reference.side import Side
from host.words.match_codec import REDUCTIONS, MatchCodec

__all__ = ["MatchesModel", "reduced_pairs"]

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
        self._codec = MatchCodec(manifest)
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

    def mark(
        self,
        overflowed: Mapping[Side, bool],
        *,
        disorder: bool,
        illegal: bool,
        failed: int | None = None,
    ) -> UInt64s:
        """Return a mark as a result word."""
        flags = overflowed[Side.S] << Side.S
        return self._codec.pack_punctuation(
            self._codec.mark, flags, disorder=disorder, illegal=illegal
        )

    def emit(
        self,
        closings: Closings,
        overflow: npt.NDArray[np.bool_],
        *,
        disorder: bool,
        illegal: bool,
        failed: int | None = None,
    ) -> tuple[UInt64s, int]:
        """See :meth:`~host.device.emission.GroupEmission.emit`; only groups of R have results."""
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
        stars = self._codec.pack_punctuation(
            self._codec.star,
            overflow[groups[has_star]].astype(np.int64) << Side.S,
            disorder=disorder,
            illegal=illegal,
        )
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
