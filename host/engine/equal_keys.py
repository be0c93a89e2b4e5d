# SPDX-License-Identifier: Apache-2.0
"""Tuples of both sides with equal keys, found by one sort of both sides by key and arrival.

Behind the sort, the tuples that a tuple meets lie right before it: those of its key from the first
one that its window still holds. So each tuple is sorted once and searched for once, and pairs come
out in the strict order, without being sorted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "BITS",
    "Moments",
    "Partners",
    "hashed",
    "order_and_values",
    "order_by",
    "order_by_both",
    "partners",
]

Bools: TypeAlias = npt.NDArray[np.bool_]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]

# Orders by numbers, found by sorting the numbers themselves, with their places as last digits.
#
# Sorting numbers takes a fifth of the time of `argsort`.

#: Bits of a packed number; its sign stays clear, as signed numbers are sorted fastest.
BITS = 63


def order_by(values: Int64s) -> Int64s:
    """Return the order in which values ascend; equal ones stay as they are."""
    return order_and_values(values)[0]


def order_and_values(values: Int64s) -> tuple[Int64s, Int64s]:
    """Return the order in which values ascend, and the values in it."""
    if not len(values):
        return np.zeros(0, np.int64), values
    least, bits = int(values.min()), (len(values) - 1).bit_length()
    if (int(values.max()) - least).bit_length() + bits > BITS:
        order = np.argsort(values, kind="stable")
        return order, values[order]
    packed = values - least << bits
    packed |= np.arange(len(values))
    packed.sort()
    order = packed & (1 << bits) - 1
    packed >>= bits
    packed += least
    return order, packed


def order_by_both(major: Int64s, minor: Int64s) -> Int64s:
    """Return the order by ``major``, then by ``minor``."""
    if not len(major):
        return np.zeros(0, np.int64)
    least, start = int(minor.min()), int(major.min())
    bits = (int(minor.max()) - least).bit_length()
    if (int(major.max()) - start).bit_length() + bits > BITS:
        return np.lexsort((minor, major))
    return order_by(major - start << bits | minor - least)


# Equal keys of both sides.

#: An odd multiplier for hashes of key fields, from the golden ratio (Knuth, 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Moments:
    """The times of the tuples of both sides, of which those so close to one another can meet.

    Parameters
    ----------
    left, right : array of uint64
        The times, ascending.
    life : int
        Largest difference of the times of a pair.
    """

    left: UInt64s
    right: UInt64s
    life: int

    def digits(self) -> tuple[Int64s, Int64s, int, int]:
        """Return the times as small numbers, the largest difference, and the bits of their sums."""
        least = min(int(times[0]) for times in (self.left, self.right) if len(times))
        most = max(int(times[-1]) for times in (self.left, self.right) if len(times)) - least
        life = min(self.life, most)
        left, right = (
            (times - np.uint64(least)).view(np.int64) for times in (self.left, self.right)
        )
        return left, right, life, (most + life).bit_length()


@dataclass(frozen=True)
class Partners:
    """The earlier tuples that each later tuple meets.

    Parameters
    ----------
    later : array of int64
        Ranks of the later tuples that have partners, ascending.
    is_right : array of int64
        One for each of them that is of the right side, else zero.
    first, count : array of int64
        For each of them, where its partners are in ``ranks``, and how many it has.
    ranks : array of int64
        Ranks of earlier tuples, ascending within the partners of a tuple.
    is_exact : bool
        Whether partners are known to have equal keys; else only hashes of the keys were compared.
    """

    later: Int64s
    is_right: Int64s
    first: Int64s
    count: Int64s
    ranks: Int64s
    is_exact: bool

    @property
    def total(self) -> int:
        """Number of pairs."""
        return int(self.count.sum())

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return the rank of the left and of the right tuple of each pair, in the strict order."""
        moved = np.repeat(self.first - np.cumsum(self.count) + self.count, self.count)
        moved += np.arange(len(moved))
        earlier, later = self.ranks[moved], np.repeat(self.later, self.count)
        swapped = np.repeat(self.is_right.astype(np.bool_), self.count)
        return np.where(swapped, earlier, later), np.where(swapped, later, earlier)


def partners(
    keys: tuple[Sequence[UInt64s], Sequence[UInt64s]],
    ranks: tuple[Int64s, Int64s],
    oldest: int,
    begin: Callable[[Int64s], Int64s],
    moments: Moments | None = None,
) -> Partners:
    """Return the partners of the last arrivals.

    Parameters
    ----------
    keys : tuple of sequence of array of uint64
        The fields of the keys of either side's tuples, which are equal in a pair.
    ranks : tuple of array of int64
        Place of each of these tuples among all arrivals, ascending. Arrivals that match nothing may
        be left out.
    oldest : int
        Rank of the first of the last arrivals.
    begin : callable
        Returns, for ranks from ``oldest`` on, the first arrival that each can meet: itself if there
        is none.
    moments : Moments, optional
        The same by the times of the tuples, where they fit beside the keys: so nothing is asked of
        ``begin``.
    """
    low = max(int(own[-1]) for own in ranks).bit_length() + 1  # the rank; the side as last digit
    times, life, width = None, 0, 0
    lows, widths = _spans(keys)
    if moments is not None:
        *times, life, width = moments.digits()
        if sum(widths) + width + low > BITS:
            times, life, width = None, 0, 0
    is_exact = sum(widths) + low <= BITS
    lefts = len(ranks[0])
    packed = np.zeros(lefts + len(ranks[1]), np.int64)
    for side, own in enumerate((packed[:lefts], packed[lefts:])):
        if is_exact:
            for values, least, bits in zip(keys[side], lows, widths, strict=True):
                own <<= bits
                own |= (values - np.uint64(least)).view(np.int64)
        else:
            own |= hashed(keys[side], BITS - low)
        if times is not None:
            own <<= width
            own |= times[side]
        own <<= low - 1
        own |= ranks[side]
        own <<= 1
        own |= side
    packed.sort()
    # What has another key than the tuple right before it, or comes too late, meets nothing.
    place = np.flatnonzero(packed[1:] - packed[:-1] < life + 1 << low)
    place += 1
    found = packed[place]
    mask = (1 << low - 1) - 1
    later = found >> 1
    later &= mask
    if oldest:
        some = np.flatnonzero(later >= oldest)
        place, found, later = place[some], found[some], later[some]
    needle = found >> low
    needle -= life
    needle <<= low
    if times is None:
        needle |= begin(later) << 1
    start = np.searchsorted(packed, needle)
    is_right = packed & 1
    # How many tuples of the right side are before each place; the others are of the left side.
    rights = np.cumsum(is_right)
    rights -= is_right
    since = rights[start]
    count = rights[place] - since  # of the right side, which a left tuple meets
    found &= 1
    first = np.where(found, start - since, lefts + since)
    count = np.where(found, place - start - count, count)
    some = np.flatnonzero(count)
    some = some[order_by(later[some])]
    packed >>= 1
    packed &= mask
    by_side = np.concatenate([packed.compress(is_right == side) for side in (0, 1)])
    return Partners(later[some], found[some], first[some], count[some], by_side, is_exact)


def _spans(keys: tuple[Sequence[UInt64s], Sequence[UInt64s]]) -> tuple[list[int], list[int]]:
    """Return the least value of each field, and the bits of the differences from it."""
    lows, widths = [], []
    for both in zip(*keys, strict=True):
        low = min(int(values.min()) for values in both)
        lows.append(low)
        widths.append((max(int(values.max()) for values in both) - low).bit_length())
    return lows, widths


def hashed(fields: Sequence[UInt64s], bits: int) -> Int64s:
    """Return a hash of so many bits of the fields of each tuple."""
    mixed = np.zeros(len(fields[0]), np.uint64)
    for values in fields:
        mixed ^= values
        mixed *= _MULTIPLIER
        mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    return (mixed >> np.uint64(64 - bits)).view(np.int64)
