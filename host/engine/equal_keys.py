# SPDX-License-Identifier: Apache-2.0
"""Tuples of both sides with equal keys, found by one sort of both sides by key and arrival.

Behind the sort, the tuples that a tuple meets lie right before it: those of its key from the first
one that its window still holds. So each tuple is sorted once and searched for once, and pairs come
out in the strict order, without being sorted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from host.engine.packing import BITS

__all__ = [
    "Partners",
    "hashed",
    "partners",
]

Bools: TypeAlias = npt.NDArray[np.bool_]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]

#: An odd multiplier for hashes of key fields, from the golden ratio (Knuth, 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Partners:
    """The earlier tuples that each later tuple meets.

    Parameters
    ----------
    first, count : array of int64
        For each later tuple, where its partners are in ``ranks``, and how many it has.
    ranks : array of int64
        Places among the arrivals, ascending within the partners of a tuple.
    is_exact : bool
        Whether partners are known to have equal keys; else only hashes of the keys were compared.
    """

    first: Int64s
    count: Int64s
    ranks: Int64s
    is_exact: bool

    @property
    def total(self) -> int:
        """Number of pairs."""
        return int(self.count.sum())

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return the number of the later tuple and the rank of the earlier one of each pair."""
        some = np.flatnonzero(self.count)
        count = self.count[some]
        behind = np.cumsum(count)
        moved = np.repeat(self.first[some] - behind + count, count)
        moved += np.arange(len(moved))
        return np.repeat(some, count), self.ranks[moved]


def partners(
    keys: tuple[Sequence[UInt64s], Sequence[UInt64s]],
    ranks: tuple[Int64s, Int64s],
    begin: Int64s,
    oldest: int,
) -> Partners:
    """Return the partners of the last arrivals.

    Parameters
    ----------
    keys : tuple of sequence of array of uint64
        The fields of the keys of either side's tuples, which are equal in a pair.
    ranks : tuple of array of int64
        Place of each of these tuples among all arrivals, ascending. Arrivals that match nothing may
        be left out.
    begin : array of int64
        For each of the last arrivals, the first arrival that it can meet: itself if there is none.
    oldest : int
        Rank of the first of the last arrivals.
    """
    lefts, newest = len(ranks[0]), oldest + len(begin)
    rank_bits = max(1, newest.bit_length())
    heads, is_exact = _heads(keys, BITS - 1 - rank_bits)
    packed = np.concatenate(heads)
    packed <<= rank_bits
    packed[:lefts] |= ranks[0]
    packed[lefts:] |= ranks[1]
    packed <<= 1
    packed[lefts:] |= 1
    packed.sort()
    is_right = (packed & 1).astype(np.bool_)
    rank = packed >> 1
    rank &= (1 << rank_bits) - 1
    # How many tuples of the right side are before each place; the others are of the left side.
    rights = np.zeros(len(packed) + 1, np.int64)
    np.cumsum(is_right, out=rights[1:])
    place = np.flatnonzero(rank >= oldest)
    later = rank[place] - oldest
    needle = packed[place] >> rank_bits + 1 << rank_bits | begin[later]
    needle <<= 1
    # What has nothing right before it need not be searched for.
    some = np.flatnonzero(packed[np.maximum(place - 1, 0)] >= needle)
    place, later = place[some], later[some]
    start = np.searchsorted(packed, needle[some])
    own = is_right[place]
    since, until = rights[start], rights[place]
    first, count = (np.zeros(len(begin), np.int64) for _ in range(2))
    first[later] = np.where(own, start - since, lefts + since)
    count[later] = np.where(own, place - until - (start - since), until - since)
    return Partners(first, count, np.concatenate([rank[~is_right], rank[is_right]]), is_exact)


def _heads(
    keys: tuple[Sequence[UInt64s], Sequence[UInt64s]], bits: int
) -> tuple[list[Int64s], bool]:
    """Return the keys of either side as numbers of so many bits, and whether they are no hashes."""
    counts = [len(side[0]) for side in keys]
    lows, widths = [], []
    for both in zip(*keys, strict=True):
        ends = [(int(values.min()), int(values.max())) for values in both if len(values)]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        lows.append(low)
        widths.append((high - low).bit_length())
    if sum(widths) > bits:
        return [hashed(side, bits) for side in keys], False
    heads = []
    for side, count in zip(keys, counts, strict=True):
        head = np.zeros(count, np.int64)
        for values, low, width in zip(side, lows, widths, strict=True):
            head <<= width
            head |= (values - np.uint64(low)).view(np.int64)
        heads.append(head)
    return heads, True


def hashed(fields: Sequence[UInt64s], bits: int) -> Int64s:
    """Return a hash of so many bits of the fields of each tuple."""
    mixed = np.zeros(len(fields[0]), np.uint64)
    for values in fields:
        mixed ^= values
        mixed *= _MULTIPLIER
        mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    return (mixed >> np.uint64(64 - bits)).view(np.int64)
