# SPDX-License-Identifier: Apache-2.0
"""The software engine: a sliding-window join of tuples as they arrive, in vectorized NumPy."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from host.arrays import Array, Bools, Int64s, UInt64s
from host.engine.equal_keys import Moments, merge_places, order_by_both, partners
from host.engine.sorted_index import Box, Reads, SortedIndex
from host.reference.arrivals import Side
from host.reference.predicate import Bounds
from host.reference.window import CountWindow, Window

__all__ = [
    "Block",
    "Found",
    "SoftwareEngine",
    "Tuples",
]

#: Place of the later tuple, and the left and the right row, of each pair.
Pairs = tuple[Int64s, Int64s, Int64s]

_TOP = (1 << 64) - 1
#: Most stored tuples that the probes of one block may read, unless the caller says otherwise.
MOST_READ = 1 << 21


@dataclass(frozen=True)
class Tuples:
    """Tuples of one side in their order of arrival.

    Parameters
    ----------
    fields : sequence of array of uint64
        Key fields, as unsigned numbers in the order, and at the distances, of the values.
    times : array of uint64
        Timestamps, ascending.
    places : array of int64
        Places among all arrivals of both sides, ascending.
    rows : array of int64
        Numbers of the rows that the tuples stand for, ascending.
    valid : array of bool or None
        Which tuples can match at all; None if all can. The others only count in windows of rows.
    """

    fields: Sequence[UInt64s]
    times: UInt64s
    places: Int64s
    rows: Int64s
    valid: Bools | None = None

    def __len__(self) -> int:
        return len(self.times)

    def part(self, begin: int, end: int | None = None) -> "Tuples":
        """Return the tuples from one index up to another."""
        return self._each(lambda values: values[begin:end])

    def copy_from(self, begin: int) -> "Tuples":
        """Return a copy of the tuples from an index on."""
        return self._each(lambda values: values[begin:].copy())

    def _each(self, change: Callable[[Array], Array]) -> "Tuples":
        """Return the tuples with a change of each of their arrays."""
        fields = list(map(change, self.fields))
        valid = None if self.valid is None else change(self.valid)
        return Tuples(fields, change(self.times), change(self.places), change(self.rows), valid)

    def before(self, place: int) -> int:
        """Return how many tuples have arrived before a place."""
        return int(np.searchsorted(self.places, place))

    @classmethod
    def joined(cls, parts: Sequence["Tuples"]) -> "Tuples":
        """Return all tuples of several parts, at least one."""
        parts = [part for part in parts if len(part)] or [parts[0]]
        if len(parts) == 1:
            return parts[0]
        valid = None
        if any(part.valid is not None for part in parts):
            valid = np.concatenate(
                [np.ones(len(p), np.bool_) if p.valid is None else p.valid for p in parts]
            )
        return cls(
            [np.concatenate(column) for column in zip(*(p.fields for p in parts), strict=True)],
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.rows for part in parts]),
            valid,
        )


@dataclass(frozen=True)
class Block:
    """Arrivals that are joined at once.

    Parameters
    ----------
    sides : dict of Side to Tuples
        The arrivals.
    old : dict of Side to Tuples
        The windows that they come to.
    whole : dict of Side to Tuples
        The windows, and behind them the arrivals.
    rest : dict of Side to Tuples
        The windows that they leave.
    end : int
        Place behind the last arrival.
    """

    sides: dict[Side, Tuples]
    old: dict[Side, Tuples]
    whole: dict[Side, Tuples]
    rest: dict[Side, Tuples]
    end: int

    def __len__(self) -> int:
        return sum(len(tuples) for tuples in self.sides.values())


@dataclass(frozen=True)
class Found:
    """Pairs, by their later tuple and then by their earlier one.

    Parameters
    ----------
    place : array of int64
        Place of the later tuple among all arrivals.
    left, right : array of int64
        Rows of the tuples.
    complete : int
        All pairs of the arrivals before this place have been found, with these.
    oldest : dict of Side to int or None
        The oldest row of each side in the windows behind that place; None if there is none.
    compared : int
        Stored tuples that have been compared with a probe.
    """

    place: Int64s
    left: Int64s
    right: Int64s
    complete: int
    oldest: dict[Side, int | None]
    compared: int


class SoftwareEngine:
    """Finds the pairs of a sliding-window join, block by block, in the strict order.

    A block of arrivals is joined at once: the tuples of one side probe a sorted index of the other
    side's window and block, and the tuples of the other side probe an index of the first side's
    window. A block that is as long as a window therefore sorts each tuple about twice. Memory holds
    the windows, the blocks that are being joined, and for each of these ``most_read`` pairs or
    those of one tuple. A block whose probes would read more is cut.

    Blocks do not wait for one another's pairs, so threads can join several of them.

    Parameters
    ----------
    bounds : sequence of Bounds
        Bounds of the difference ``r - s`` of each key field.
    window : CountWindow or TimeWindow
        Window of either side.
    most_read : int
        Most stored tuples that the probes of a block may read.

    Attributes
    ----------
    held : int
        Tuples in both windows, behind all blocks.
    """

    def __init__(
        self, bounds: Sequence[Bounds], window: Window, *, most_read: int = MOST_READ
    ) -> None:
        self.most_read = most_read
        self._bounds = [(at, bound) for at, bound in enumerate(bounds) if not bound.is_open]
        self._never = any(
            bound.low is not None and bound.high is not None and bound.low > bound.high
            for _, bound in self._bounds
        )
        self._by_key = self._bounds and all(bound.low == bound.high for _, bound in self._bounds)
        self._rows = window.size if isinstance(window, CountWindow) else None
        self._lifespan = 0 if isinstance(window, CountWindow) else min(int(window.lifespan), _TOP)
        self._windows: dict[Side, Tuples] | None = None
        # Arrivals of a block, as long as these do not read too much. Threads that join blocks
        # change it; whatever it is, the pairs are the same.
        self._most = 1 << 18
        self.held = 0

    def push(self, sides: dict[Side, Tuples]) -> Iterator[Block]:
        """Take the next arrivals of both sides; yield them as blocks.

        The next arrivals must not be pushed before the iterator has ended.

        Parameters
        ----------
        sides : dict of Side to Tuples
            Tuples of both sides, with the same fields; a side may have none.
        """
        if not any(len(tuples) for tuples in sides.values()):
            return
        old = self._windows or {side: tuples.part(0, 0) for side, tuples in sides.items()}
        begin = min(int(tuples.places[0]) for tuples in sides.values() if len(tuples))
        last = max(int(tuples.places[-1]) for tuples in sides.values() if len(tuples))
        while begin <= last:
            end = min(begin + self._most, last + 1)
            block = self._block(old, sides, begin, end)
            begin, old = end, block.rest
            self._windows, self.held = old, sum(len(tuples) for tuples in old.values())
            yield block

    def found(self, block: Block) -> Generator[Found, None, None]:
        """Yield the pairs whose later tuple is in a block; in any thread, at any time."""
        waiting = [block]
        while waiting:
            block = waiting.pop()
            pairs, reads = self._pairs(block)
            if reads < self.most_read // 4:
                self._most = max(self._most, 2 * len(block))
            if pairs is None:
                self._most = max(1, len(block) // 2)
                waiting += reversed(self._halves(block))
            else:
                oldest = {
                    side: int(tuples.rows[0]) if len(tuples) else None
                    for side, tuples in block.rest.items()
                }
                yield Found(*pairs, block.end, oldest, reads)

    def _block(
        self, old: dict[Side, Tuples], sides: dict[Side, Tuples], begin: int, end: int
    ) -> Block:
        """Return the arrivals from one place up to another as a block."""
        part = {
            side: tuples.part(tuples.before(begin), tuples.before(end))
            for side, tuples in sides.items()
        }
        whole = {side: Tuples.joined([old[side], part[side]]) for side in Side}
        return Block(part, old, whole, self._expired(whole), end)

    def _halves(self, block: Block) -> list[Block]:
        """Return a block as two."""
        begin = min(int(tuples.places[0]) for tuples in block.sides.values() if len(tuples))
        middle = begin + (block.end - begin) // 2
        first = self._block(block.old, block.sides, begin, middle)
        return [first, self._block(first.rest, block.sides, middle, block.end)]

    def matches(
        self, left: Tuples, right: Tuples, *, adding: bool = False
    ) -> tuple[SortedIndex, Box, Reads] | None:
        """Return where the matches of each left tuple are, among all right tuples at once.

        Neither window holds these tuples before or after. The index may give the matches as pairs,
        or as stretches of its order, which can be reduced without pairs; see
        :meth:`SortedIndex.is_exact` and :attr:`SortedIndex.has_sums`. None if nothing can match.

        Parameters
        ----------
        left, right : Tuples
            All tuples of both sides.
        adding : bool
            Whether matches are reduced by adding up integers.
        """
        if self._never or not len(left) or not len(right):
            return None
        sides = {Side.R: left, Side.S: right}
        return self._search(Side.R, sides, right, 0, reducing=True, adding=adding)

    def _pairs(self, block: Block) -> tuple[Pairs | None, int]:
        """Return a block's pairs, or None if they are too many to be found at once; and reads."""
        if self._never or not all(len(tuples) for tuples in block.whole.values()):
            none = np.zeros(0, np.int64)
            return (none, none, none), 0
        return self._by_keys(block) if self._by_key else self._by_index(block)

    def _takes(self, reads: int, block: Block) -> bool:
        """Return whether a block may read so much."""
        return reads <= self.most_read or len(block) <= 1

    def _by_keys(self, block: Block) -> tuple[Pairs | None, int]:
        """Return a block's pairs whose fields are all equal."""
        old, whole = block.old, block.whole
        left, right = whole[Side.R], whole[Side.S]
        ranks = _ranks(left.places, right.places)
        oldest = len(old[Side.R]) + len(old[Side.S])
        keys, matches = self._equal_fields(left, right)
        chosen = [slice(None) if kept is None else np.flatnonzero(kept) for kept in matches]
        own_keys = [[v[c] for v in side] for side, c in zip(keys, chosen, strict=True)]
        own_ranks = ranks[0][chosen[0]], ranks[1][chosen[1]]
        if not all(len(own) for own in own_ranks):
            none = np.zeros(0, np.int64)
            return (none, none, none), 0
        moments = None
        if self._rows is None:
            times = left.times[chosen[0]], right.times[chosen[1]]
            moments = Moments(*times, self._lifespan)
        found = partners(
            (own_keys[0], own_keys[1]),
            own_ranks,
            oldest,
            lambda later: self._first_met(later, old, whole, ranks),
            moments,
        )
        reads = found.total
        if not self._takes(reads, block):
            return None, reads
        number = np.empty(len(left) + len(right), np.int64)
        for own in ranks:
            number[own] = np.arange(len(own))
        lefts, rights = (number[own] for own in found.pairs())
        if not found.is_exact:
            same = np.ones(len(lefts), np.bool_)
            for mine, theirs in zip(*keys, strict=True):
                same &= mine[lefts] == theirs[rights]
            lefts, rights = lefts[same], rights[same]
        later = np.maximum(left.places[lefts], right.places[rights])
        return (later, left.rows[lefts], right.rows[rights]), reads

    def _equal_fields(
        self, left: Tuples, right: Tuples
    ) -> tuple[list[list[UInt64s]], list[Bools | None]]:
        """Return the fields of both sides, moved to be equal in pairs, and who can match at all."""
        keys: list[list[UInt64s]] = [[], []]
        matches = [left.valid, right.valid]
        for at, bound in self._bounds:
            assert bound.low is not None
            moved, none_above = _moved(left.fields[at], -bound.low, 0, up=True)
            _, none_below = _moved(left.fields[at], -bound.low, _TOP, up=False)
            for none in (none_above, none_below):
                if none is not None:
                    matches[0] = ~none if matches[0] is None else matches[0] & ~none
            keys[0].append(moved)
            keys[1].append(right.fields[at])
        return keys, matches

    def _first_met(
        self,
        later: Int64s,
        old: dict[Side, Tuples],
        whole: dict[Side, Tuples],
        ranks: tuple[Int64s, Int64s],
    ) -> Int64s:
        """Return the rank of the first tuple that each of some arrivals of a block can meet."""
        oldest, count = len(old[Side.R]) + len(old[Side.S]), len(ranks[0]) + len(ranks[1])
        if self._rows is None:
            times = np.empty(count, np.uint64)
            times[ranks[0]], times[ranks[1]] = whole[Side.R].times, whole[Side.S].times
            life, new = np.uint64(self._lifespan), times[later]
            return np.searchsorted(times, new - np.minimum(new, life), side="left")
        begin = np.empty(count - oldest, np.int64)
        for side, mine, theirs in ((Side.R, *ranks), (Side.S, ranks[1], ranks[0])):
            first = len(old[side])
            own = mine[first:]
            before = own - np.arange(first, len(mine))  # tuples of the other side
            met = theirs[np.clip(before - self._rows, 0, max(0, len(theirs) - 1))]
            begin[own - oldest] = np.where(before > 0, met, own)
        return begin[later - oldest]

    def _by_index(self, block: Block) -> tuple[Pairs | None, int]:
        """Return a block's pairs, by sorted indexes of both sides."""
        old, sides, whole = block.old, block.sides, block.whole
        probing = Side.R if len(sides[Side.R]) <= len(sides[Side.S]) else Side.S
        stored = probing.other
        one = self._search(probing, sides, whole[stored], len(old[stored]))
        # Of the others, those whose windows reach back to the old tuples meet them.
        reaching = self._reaching(sides[stored], sides[probing], old[probing])
        back = {probing: sides[probing], stored: sides[stored].part(0, reaching)}
        two = self._search(stored, back, old[probing], len(old[probing]))
        total = one[-1].total + two[-1].total
        if not self._takes(total, block):
            return None, total
        parts = []
        for side, (index, boxes, reads), others in (
            (probing, one, whole[stored]),
            (stored, two, old[probing]),
        ):
            probe, number = index.found(reads, boxes)
            place, other = sides[side].places[probe], others.places[number]
            mine, theirs = sides[side].rows[probe], others.rows[number]
            earlier, later = theirs, other > place
            if later.any():
                earlier = np.where(later, mine, theirs)
                place = np.where(later, other, place)
            left, right = (mine, theirs) if side is Side.R else (theirs, mine)
            parts.append((place, earlier, left, right))
        place, earlier, left, right = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = order_by_both(place, earlier)
        return (place[order], left[order], right[order]), total

    def _reaching(self, tuples: Tuples, others: Tuples, old: Tuples) -> int:
        """Return how many tuples of a block can meet old ones, which come before ``others``."""
        if self._rows is None:
            if not len(old):
                return 0
            last = min(int(old.times[-1]) + self._lifespan, _TOP)
            return int(np.searchsorted(tuples.times, np.uint64(last), side="right"))
        if self._rows > len(others):
            return len(tuples)
        return tuples.before(int(others.places[self._rows - 1]))

    def _search(
        self,
        side: Side,
        sides: dict[Side, Tuples],
        stored: Tuples,
        earlier: int,
        *,
        reducing: bool = False,
        adding: bool = False,
    ) -> tuple[SortedIndex, Box, Reads]:
        """Return an index of stored tuples, the boxes of a side's block in it, and their reads.

        Parameters
        ----------
        side : Side
            The side that probes.
        sides : dict of Side to Tuples
            The block.
        stored : Tuples
            The other side's window, perhaps with the other side's block behind it.
        earlier : int
            Number of tuples in the other side's window.
        reducing, adding : bool
            Whether matches are reduced, and not wanted as pairs; by adding up integers.
        """
        probes = sides[side]
        begin, end = (
            self._within(probes, stored, earlier)
            if self._rows is None
            else self._among(side, sides, stored, earlier)
        )
        if probes.valid is not None:
            end = np.where(probes.valid, end, begin)
        first, last, fields = [], [], []
        for at, bound in self._bounds:
            low, high = bound.low, bound.high
            if side is Side.R:  # s lies within r - high .. r - low
                low, high = None if high is None else -high, None if low is None else -low
            values = probes.fields[at]
            least, none_above = _moved(values, low, 0, up=True)
            most, none_below = _moved(values, high, _TOP, up=False)
            if low == high:
                most = least  # the same array, by which an index knows an equality
            for none in (none_above, none_below):
                if none is not None and none.any():
                    end = np.where(none, begin, end)
            first.append(least)
            last.append(most)
            fields.append(stored.fields[at])
        boxes = Box(first, last, begin, end)
        equal = [bound.low == bound.high for _, bound in self._bounds]
        index = SortedIndex(
            fields, equal, len(stored), boxes, stored.valid, reducing=reducing, adding=adding
        )
        return index, boxes, index.reads(boxes)

    def _within(self, probes: Tuples, stored: Tuples, earlier: int) -> tuple[Int64s, Int64s]:
        """Return which stored tuples are within the lifespan of each probe, before or after it."""
        life = np.uint64(self._lifespan)
        times = probes.times
        first = np.where(times > life, times - life, np.uint64(0))
        begin = np.searchsorted(stored.times, first, side="left")
        if len(stored) == earlier:  # none of the others' block is stored
            return begin, np.full(len(probes), earlier)
        last = np.where(times > np.uint64(_TOP) - life, np.uint64(_TOP), times + life)
        return begin, np.searchsorted(stored.times, last, side="right")

    def _among(
        self,
        side: Side,
        sides: dict[Side, Tuples],
        stored: Tuples,
        earlier: int,
    ) -> tuple[Int64s, Int64s]:
        """Return which stored tuples are so few rows away from each probe, before or after it."""
        assert self._rows is not None
        probes, others = sides[side], sides[side.other]
        before = np.searchsorted(others.places, probes.places) + earlier
        begin = np.maximum(before - self._rows, 0)
        if len(stored) == earlier:  # none of the others' block is stored
            return np.minimum(begin, earlier), np.full(len(probes), earlier)
        # A later tuple meets this probe if at most so many of this side came between.
        own = np.searchsorted(probes.places, others.places)
        met = np.searchsorted(own, np.arange(len(probes)) + self._rows, side="right")
        return begin, np.maximum(met + earlier, before)

    def _expired(self, windows: dict[Side, Tuples]) -> dict[Side, Tuples]:
        """Return the tuples that later ones can meet."""
        kept = {}
        last = max(int(one.times[-1]) for one in windows.values() if len(one))
        for side, tuples in windows.items():
            if self._rows is not None:
                gone = max(0, len(tuples) - self._rows)
            else:
                gone = int(np.searchsorted(tuples.times, np.uint64(max(0, last - self._lifespan))))
            # Parts are views, and a copy lets go of the block.
            kept[side] = tuples.part(gone) if 2 * gone < len(tuples) else tuples.copy_from(gone)
        return kept


def _ranks(left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
    """Return the place of each tuple among the given ones of both sides, by their places."""
    count, first = len(left) + len(right), int(min(left[0], right[0]))
    if int(max(left[-1], right[-1])) - first < count:  # no arrival is left out
        return left - first, right - first
    return merge_places(left.view(np.uint64), right.view(np.uint64))


def _moved(values: UInt64s, by: int | None, end: int, *, up: bool) -> tuple[UInt64s, Bools | None]:
    """Return values moved by a bound, saturated, and where no value is left in the range.

    Parameters
    ----------
    values : array of uint64
        The values.
    by : int or None
        The bound; None for ``end``.
    end : int
        What an open bound stands for.
    up : bool
        Whether values beyond the greatest number leave nothing in the range, else those below the
        least.
    """
    if by is None:
        return np.full(len(values), end, np.uint64), None
    if by == 0:
        return values, None
    if abs(by) > _TOP:
        return np.full(len(values), _TOP if by > 0 else 0, np.uint64), (
            np.full(len(values), (by > 0) is up)
        )
    step = np.uint64(abs(by))
    if by > 0 and len(values) and int(values.max()) <= _TOP - by:
        return values + step, None
    if by < 0 and len(values) and int(values.min()) >= -by:
        return values - step, None
    if by > 0:
        beyond = values > np.uint64(_TOP) - step
        return np.where(beyond, np.uint64(_TOP), values + step), beyond if up else None
    beyond = values < step
    return np.where(beyond, np.uint64(0), values - step), None if up else beyond
