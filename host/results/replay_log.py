# SPDX-License-Identifier: Apache-2.0
"""The tuples that were sent and that a later probe can still meet, to be sent again."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.reference.exact import UInt64s
from host.reference.side import Side
from host.words import WordCodec

__all__ = ["Again", "ReplayLog"]

Int64s = npt.NDArray[np.int64]


class Again(NamedTuple):
    """Tuples to send again.

    Attributes
    ----------
    words : array of uint64
        Their input words.
    numbers : dict of Side to array of int64
        For each side, the numbers of its tuples within their side.
    places : dict of Side to array of int64
        For each side, the places of its tuples among all of these tuples.
    """

    words: UInt64s
    numbers: dict[Side, Int64s]
    places: dict[Side, Int64s]


class ReplayLog:
    """Keeps the words of tuples, in the order of arrival, batch by batch.

    Tuples are numbered within their side from the beginning of the execution.

    Parameters
    ----------
    codec : WordCodec
        Codec of the accelerator's words.
    """

    def __init__(self, codec: WordCodec) -> None:
        self._codec = codec
        self._batches: list[UInt64s] = []
        self._firsts: list[dict[Side, int]] = []  # by batch: numbers of the next tuples before it
        self._counts = dict.fromkeys(Side, 0)

    @property
    def kept(self) -> int:
        """Number of words that are kept."""
        return sum(len(words) for words in self._batches)

    def append(self, words: UInt64s, counts: Mapping[Side, int]) -> None:
        """Add a copy of words that hold so many tuples of each side."""
        self._batches.append(words.copy())
        self._firsts.append(dict(self._counts))
        for side, count in counts.items():
            self._counts[side] += count

    def forget(self, before: Mapping[Side, int]) -> None:
        """Release batches whose tuples all have lower numbers."""
        while len(self._batches) > 1 and all(
            self._firsts[1][side] <= number for side, number in before.items()
        ):
            del self._batches[0], self._firsts[0]

    def again(self, first: Mapping[Side, int]) -> Again:
        """Return the tuples from the numbers ``first`` on, which must not have been forgotten."""
        words = np.concatenate(self._batches)
        sides, keys, times = self._codec.unpack_tuples(words)
        numbers = np.empty(len(sides), np.int64)
        for side in Side:
            mine = sides == side
            numbers[mine] = self._firsts[0][side] + np.arange(np.count_nonzero(mine))
        kept = np.flatnonzero(numbers >= np.where(sides == Side.R, first[Side.R], first[Side.S]))
        sides, numbers = sides[kept], numbers[kept]
        fields = {name: column[kept] for name, column in keys.items()}
        return Again(
            self._codec.pack_tuples(sides, fields, times[kept]),
            {side: numbers[sides == side] for side in Side},
            {side: np.flatnonzero(sides == side) for side in Side},
        )
