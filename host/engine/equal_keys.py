# SPDX-License-Identifier: Apache-2.0
"""Tuples of both sides with equal keys, found by one sort of both sides by key and arrival.

Behind the sort, the tuples that a tuple meets lie right before it: those of its key from the first
one that its window still holds. So each tuple is sorted once and searched for once, and pairs come
out in the strict order, without being sorted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from host.arrays import Int64s, UInt64s, inverse

__all__ = [
    "BITS",
    "Moments",
    "Partners",
    "hashed",
    "merge_places",
    "order_and_values",
    "order_by",
    "order_by_both",
    "partners",
]


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


def merge_places(left: UInt64s, right: UInt64s) -> tuple[Int64s, Int64s]:
    """Return the place of every tuple of both sides in their common order of arrival.

    Only the places are computed, so that values can be written to them directly.

    Parameters
    ----------
    left, right : array of uint64
        Timestamps, ascending; on a tie the left side arrives first.
    """
    both = np.concatenate([left, right])
    # A stable sort merges two runs that ascend in one pass, and keeps the left one first on a tie.
    # Of numbers with their side as the last digit, it takes half of the time of `argsort`.
    if max((int(times[-1]) for times in (left, right) if len(times)), default=0) < 1 << 63:
        both <<= np.uint64(1)
        both[len(left) :] |= np.uint64(1)
        both.sort(kind="stable")
        is_right = (both & np.uint64(1)).astype(np.bool_)
        return np.flatnonzero(~is_right), np.flatnonzero(is_right)
    places = inverse(np.argsort(both, kind="stable"))
    return places[: len(left)], places[len(left) :]


# Equal keys of both sides.

#: An odd multiplier for hashes of key fields, from the golden ratio (Knuth, 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
#: Tuples right before a tuple that are looked at one by one, if it reaches no further.
NEAR = 16


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
        """Return the times as small numbers, the largest difference, and bits that hold their sum.

        There is room for one more, so that numbers with other digits in front of them are further
        apart than the largest difference, whatever stands behind them.
        """
        least = min(int(times[0]) for times in (self.left, self.right) if len(times))
        most = max(int(times[-1]) for times in (self.left, self.right) if len(times)) - least
        life = min(self.life, most)
        left, right = (
            (times - np.uint64(least)).view(np.int64) for times in (self.left, self.right)
        )
        return left, right, life, (most + life + 1).bit_length()


@dataclass(frozen=True)
class Ranges:
    """The earlier tuples of some later ones, as ranges of a list.

    Parameters
    ----------
    later : array of int64
        The later tuples, ascending, as in :class:`Partners`.
    first, count : array of int64
        For each of them, where its partners are in ``earlier``, and how many it has.
    earlier : array of int64
        Earlier tuples, ascending within the partners of a tuple, as in :class:`Partners`.
    """

    later: Int64s
    first: Int64s
    count: Int64s
    earlier: Int64s

    def pairs(self) -> Int64s:
        """Return all pairs, as in :class:`Partners`."""
        place = np.repeat(self.first - np.cumsum(self.count) + self.count, self.count)
        place += np.arange(len(place))
        pairs = self.earlier[place]
        pairs |= np.repeat(self.later, self.count)
        return pairs


@dataclass(frozen=True)
class Partners:
    """The earlier tuples that each later tuple meets.

    A pair is a number: the later tuple's rank is in the bits from ``low`` on, the earlier tuple's
    below, and whether that one is of the right side is the last bit. So pairs ascend in the strict
    order.

    Parameters
    ----------
    low : int
        Bits of an earlier tuple.
    near : array of int64
        Pairs, ascending.
    ranges : Ranges or None
        Pairs of other later tuples, which have more partners, if there are any.
    is_exact : bool
        Whether partners are known to have equal keys; else only hashes of the keys were compared.
    """

    low: int
    near: Int64s
    ranges: Ranges | None
    is_exact: bool

    @property
    def total(self) -> int:
        """Number of pairs."""
        return len(self.near) + (0 if self.ranges is None else int(self.ranges.count.sum()))

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return the rank of the left and of the right tuple of each pair, in the strict order."""
        pairs = self.near
        if self.ranges is not None:
            pairs = np.concatenate([self.near, self.ranges.pairs()])
            if len(self.near):
                pairs.sort(kind="stable")  # which merges what ascends already
        later, earlier = pairs >> self.low, pairs & (1 << self.low) - 1
        is_right = (pairs & 1).astype(np.bool_)
        earlier >>= 1
        return np.where(is_right, later, earlier), np.where(is_right, earlier, later)


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
    reach: Int64s | int = life + 1 << low
    place = np.flatnonzero(packed[1:] - packed[:-1] < reach)
    place += 1
    found = packed[place]
    digits = (1 << low) - 1
    if oldest:
        some = np.flatnonzero(found & digits >= oldest << 1)
        place, found = place[some], found[some]
    if times is None:
        own = found & digits
        reach = own + 1 - (begin(own >> 1) << 1)
        some = np.flatnonzero(found - packed[place - 1] < reach)
        place, found, reach = place[some], found[some], reach[some]
    # The few tuples right before most tuples are looked at one by one.
    begun = int(np.searchsorted(place, NEAR))
    is_far = np.zeros(len(place), np.bool_)
    is_far[begun:] = found[begun:] - packed[place[begun:] - NEAR] < _of(reach, slice(begun, None))
    ranges = None
    if is_far.any():
        far, near = np.flatnonzero(is_far), np.flatnonzero(~is_far)
        ranges = _ranges(packed, low, place[far], found[far], _of(reach, far))
        place, found, reach = place[near], found[near], _of(reach, near)
    return Partners(low, _near(packed, low, place, found, reach), ranges, is_exact)


def _of(reach: Int64s | int, places: Int64s | slice) -> Int64s | int:
    """Return how far some tuples reach."""
    return reach if isinstance(reach, int) else reach[places]


def _near(packed: Int64s, low: int, place: Int64s, found: Int64s, reach: Int64s | int) -> Int64s:
    """Return the pairs of tuples that reach the one before, and less than :data:`NEAR` of them."""
    digits, pairs = (1 << low) - 1, []
    before = packed[place - 1]
    for distance in range(1, NEAR):
        others = np.flatnonzero(((before ^ found) & 1).astype(np.bool_))
        pairs.append((found[others] & digits - 1) << low - 1 | before[others] & digits)
        begun = int(np.searchsorted(place, distance + 1))
        before = packed[place[begun:] - (distance + 1)]
        further = np.flatnonzero(found[begun:] - before < _of(reach, slice(begun, None)))
        if not len(further):
            break
        before = before[further]
        further += begun
        place, found, reach = place[further], found[further], _of(reach, further)
    met = np.concatenate(pairs)
    met.sort()
    return met


def _ranges(packed: Int64s, low: int, place: Int64s, found: Int64s, reach: Int64s | int) -> Ranges:
    """Return the partners of tuples as ranges, however far they reach."""
    start = np.searchsorted(packed, found - reach, side="right")
    packed = packed & (1 << low) - 1
    is_right = packed & 1
    # How many tuples of the right side are before each place; the others are of the left side.
    rights = np.cumsum(is_right)
    rights -= is_right
    lefts = len(packed) - int(rights[-1] + is_right[-1])
    since = rights[start]
    count = rights[place] - since  # of the right side, which a left tuple meets
    side = found & 1
    first = np.where(side, start - since, lefts + since)
    count = np.where(side, place - start - count, count)
    some = np.flatnonzero(count)
    later = found[some] & (1 << low) - 2
    order = order_by(later)
    some = some[order]
    by_side = np.concatenate([packed.compress(is_right == side) for side in (0, 1)])
    return Ranges(later[order] << low - 1, first[some], count[some], by_side)


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
