# SPDX-License-Identifier: Apache-2.0
"""The sorted index of the software engine: find the stored tuples that lie in each probe's box.

A *box* bounds every key field of a stored tuple, and its number. An index sorts the tuples by one
packed number each. From its most significant digit down it holds: the fields that are compared for
equality, the cells of some other fields, the value of one more field, and the tuple's number. A
probe then reads one stretch of the sorted numbers for each cell that its box touches. Which fields
get cells, how wide those are, and which field is the sorted one, is chosen for each index by the
number of tuples that a sample of the probes would read.

Intervals that overlap bound their starts from above and their ends from below. Neither bound leaves
out much, and no window does as long as some interval is very long. Such tuples get a digit for the
class of their length, by powers of four: in each class, the bound of the end bounds the start too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from host.arrays import Bools, Int64s, UInt64s
from host.engine.equal_keys import BITS, hashed

__all__ = [
    "Box",
    "Reads",
    "SortedIndex",
]


#: Costs by which a layout is chosen, in units of one candidate tuple that is read and compared.
_VISIT_COST = 2.0
#: Widths of cells that are tried, in multiples of the power of two that holds the widest box: a box
#: touches two cells at most, and fewer the wider they are.
_WIDTHS = (1, 2, 4)
#: Cost of a query of sums over two ranges for each bit of the second coordinate, in the same units.
_SUM_COST = 2.5
#: Most fields that get cells: each of them doubles the stretches that a probe reads.
_MOST_CELLS = 2
#: Stored tuples and probes by which layouts are compared.
_SAMPLE, _SAMPLED_PROBES = 2048, 256


@dataclass(frozen=True)
class Box:
    """Range of each field in which the matches of a probe lie; both ends are inclusive.

    Parameters
    ----------
    first, last : sequence of array of uint64
        Least and greatest value of each field, one entry per probe. The values are those of the
        index. For a field that is compared for equality both are the same array.
    begin, end : array of int64
        Range of the stored tuples' numbers: from ``begin`` up to, but not including, ``end``.
    """

    first: Sequence[UInt64s]
    last: Sequence[UInt64s]
    begin: Int64s
    end: Int64s

    def __len__(self) -> int:
        return len(self.begin)

    def of(self, probes: Int64s) -> "Box":
        """Return the boxes of only these probes."""
        first = [values[probes] for values in self.first]
        last = [
            mine if values is theirs else values[probes]
            for mine, values, theirs in zip(first, self.last, self.first, strict=True)
        ]
        return Box(first, last, self.begin[probes], self.end[probes])


@dataclass(frozen=True)
class _Digit:
    """A digit of the packed number: ``(value - least) >> shift``, of so many bits.

    Parameters
    ----------
    field : int
        The field; -1 is the tuple's number.
    least, most : int
        Least and greatest value that is stored.
    width : int
        How many values share a digit.
    """

    field: int
    least: int
    most: int
    width: int

    @property
    def bits(self) -> int:
        return ((self.most - self.least) // self.width).bit_length()

    def of(self, values: UInt64s) -> Int64s:
        """Return the digits of values within ``least .. most``."""
        moved = values - np.uint64(self.least)
        if self.width & (self.width - 1) == 0:
            moved >>= np.uint64(self.width.bit_length() - 1)
        else:
            moved //= np.uint64(self.width)
        return moved.view(np.int64)

    def span(self, first: UInt64s, last: UInt64s) -> tuple[Int64s, Int64s]:
        """Return the first and the last digit of each range, and an empty range where none is.

        A range that holds no stored value has a last digit below its first one.
        """
        least, most = np.uint64(self.least), np.uint64(self.most)
        empty = (first > most) | (last < least) | (first > last)
        low, high = self.of(np.clip(first, least, most)), self.of(np.clip(last, least, most))
        if empty.any():
            low[empty], high[empty] = 1, 0
        return low, high


@dataclass(frozen=True)
class Reads:
    """Stretches of a sorted index that probes read.

    Parameters
    ----------
    probe : array of int64
        The probe of each stretch.
    start, count : array of int64
        Where each stretch begins, and how many tuples it has: at least one.
    """

    probe: Int64s
    start: Int64s
    count: Int64s

    @property
    def total(self) -> int:
        """Number of tuples that are read."""
        return int(self.count.sum())

    def by_probe(self) -> "Reads":
        """Return the same stretches in the order of their probes."""
        order = _nearly_ascending(self.probe) if len(self.probe) else self.probe
        return Reads(self.probe[order], self.start[order], self.count[order])

    def pieces(self, most: int) -> Iterator["Reads"]:
        """Yield the stretches in pieces of about ``most`` tuples, and of one stretch at least."""
        ends = np.cumsum(self.count)
        begin = 0
        while begin < len(ends):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
            piece = slice(begin, end)
            yield Reads(self.probe[piece], self.start[piece], self.count[piece])
            begin = end

    def expanded(self) -> tuple[Int64s, Int64s]:
        """Return the probe and the place of each tuple that is read."""
        offsets = np.cumsum(self.count)
        total = int(offsets[-1]) if len(offsets) else 0
        offsets -= self.count
        places = np.arange(total) + np.repeat(self.start - offsets, self.count)
        return np.repeat(self.probe, self.count), places


@dataclass(frozen=True)
class _Lengths:
    """Classes of stored intervals by their length.

    Parameters
    ----------
    start, end : int
        The fields of the start, which boxes bound from above, and of the end, bounded from below.
    ranks : array of int64
        Class of each stored tuple.
    longest : array of int64
        Largest difference of end and start in each class.
    """

    start: int
    end: int
    ranks: Int64s
    longest: Int64s

    @property
    def bits(self) -> int:
        return (len(self.longest) - 1).bit_length()

    @classmethod
    def of(
        cls, fields: Sequence[UInt64s], others: Sequence[int], numbers: Int64s, boxes: Box
    ) -> "_Lengths | None":
        """Return the classes of the stored tuples; None if boxes do not bound two ends so."""
        top = np.uint64((1 << 64) - 1)
        start = next((f for f in others if not boxes.first[f].any()), None)
        end = next((f for f in others if f != start and (boxes.last[f] == top).all()), None)
        if start is None or end is None:
            return None
        starts, ends = fields[start][numbers], fields[end][numbers]
        furthest = max(int(ends.max()) - int(starts.min()), int(starts.max()) - int(ends.min()))
        if furthest >= 1 << 62:
            return None
        lengths = (ends - starts).view(np.int64)
        _, exponents = np.frexp((lengths - lengths.min()).astype(np.float64))
        found, ranks = np.unique((exponents + 1) // 2, return_inverse=True)
        longest = np.array([lengths[ranks == rank].max() for rank in range(len(found))])
        return cls(start, end, ranks.astype(np.int64), longest)

    def first(self, ends: UInt64s, ranks: Int64s) -> UInt64s:
        """Return the least start of an interval of a class that ends at ``ends`` or later."""
        longest = self.longest[ranks]
        ahead = np.maximum(-longest, 0).view(np.uint64)  # an end may be encoded below its start
        moved = np.maximum(longest, 0).view(np.uint64)
        beyond = ends > ~ahead
        low = np.where(ends > moved, ends - moved, np.uint64(0)) + np.where(beyond, 0, ahead)
        return np.where(beyond, ~np.uint64(0), low)


class SortedIndex:
    """Stored tuples of one side, sorted for the boxes of the other side's tuples.

    Building it sorts one number per tuple. A probe costs two binary searches for each cell that its
    box touches, and reads the tuples between them.

    Parameters
    ----------
    fields : sequence of array of uint64
        Fields of the stored tuples.
    equal : sequence of bool
        Which fields every box bounds to a single value.
    count : int
        Number of stored tuples; they are numbered from zero.
    boxes : Box
        Boxes of the probes to come; a sample of them decides the layout.
    valid : array of bool, optional
        Which tuples can match at all; by default all.
    reducing : bool
        Whether stretches are to be reduced as they are: a layout in which they hold nothing but
        what lies in the boxes is taken wherever there is one, however long the stretches are.
    adding : bool
        Whether they are reduced by adding up integers. A second range is then left to
        :meth:`sums` where stretches would be long.

    Attributes
    ----------
    has_sums : bool
        Whether :meth:`sums` gives the sums over the boxes.
    """

    def __init__(
        self,
        fields: Sequence[UInt64s],
        equal: Sequence[bool],
        count: int,
        boxes: Box,
        valid: Bools | None = None,
        *,
        reducing: bool = False,
        adding: bool = False,
    ) -> None:
        numbers = np.arange(count) if valid is None else np.flatnonzero(valid)
        self._fields = fields
        self._count = count
        self._number_bits = max(1, (count - 1).bit_length())
        self._equal: list[_Digit] = []
        self._cells: list[_Digit] = []
        self._sorted: _Digit | None = None
        self._lengths: _Lengths | None = None
        self._by_number = False
        self._hash_bits = 0
        self._rest: list[int] = []
        self._second: int | None = None  # what `sums` bounds besides the stretches
        self._sorted_numbers = numbers
        if not len(numbers) or not len(boxes):
            self._sorted_numbers = numbers[:0]
            return
        constant = [self._digit(place, numbers).bits == 0 for place in range(len(fields))]
        # A field that has one value only takes no bits of the packed number, bounded or equal.
        single = [at for at in range(len(fields)) if equal[at] or constant[at]]
        self._lay_out(numbers, single, boxes, reducing=reducing, adding=adding)
        self._sorted_numbers = np.sort(self._packed(numbers))

    def reads(self, boxes: Box) -> Reads:
        """Return the stretches that hold all tuples in the boxes, and perhaps others."""
        none = np.zeros(0, np.int64)
        if not len(self._sorted_numbers):
            return Reads(none, none, none)
        probes, visited, heads, spans = self._visits(boxes)
        if not len(visited):
            return Reads(none, none, none)
        low, high = heads.copy(), heads
        bits = self._number_bits
        if self._sorted is not None:
            width = self._sorted.bits
            low = (low << width | spans[0]) << bits
            high = (high << width | spans[1]) << bits
            high |= (1 << bits) - 1
        elif self._by_number:
            low = low << bits | boxes.begin[probes[visited]]
            high = high << bits | boxes.end[probes[visited]] - 1
        else:
            low <<= bits
            high = high << bits | (1 << bits) - 1
        # Ascending needles are searched for in what the processor's caches hold.
        order = _nearly_ascending(low)
        stored, high = self._sorted_numbers, high[order]
        start = np.searchsorted(stored, low[order], side="left")
        some = np.flatnonzero(stored[np.minimum(start, len(stored) - 1)] <= high)
        some = some[start[some] < len(stored)]
        start = start[some]
        count = np.searchsorted(stored, high[some], side="right") - start
        return Reads(probes[visited[order[some]]], start, count)

    def found(self, reads: Reads, boxes: Box, *, piece: int = 1 << 20) -> tuple[Int64s, Int64s]:
        """Return the pairs of a probe and a stored tuple's number in its box, in any order.

        Parameters
        ----------
        reads : Reads
            Result of :meth:`reads` for the same boxes.
        boxes : Box
            The boxes.
        piece : int
            Number of tuples that are compared at a time, which bounds the memory.
        """
        none = np.zeros(0, np.int64)
        parts = [(none, none), *self.pieces(reads, boxes, piece)]
        probes, numbers = zip(*parts, strict=True)
        return np.concatenate(probes), np.concatenate(numbers)

    def pieces(
        self, reads: Reads, boxes: Box, piece: int = 1 << 20
    ) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield what :meth:`found` returns, in the order of the stretches, piece by piece."""
        mask = (1 << self._number_bits) - 1
        for part in reads.pieces(piece):
            probe, place = part.expanded()
            number = self._sorted_numbers[place] & mask
            if not self._by_number:
                kept = (number >= boxes.begin[probe]) & (number < boxes.end[probe])
                probe, number = probe[kept], number[kept]
            for field in self._rest:
                values = self._fields[field][number]
                kept = values >= boxes.first[field][probe]
                kept &= values <= boxes.last[field][probe]
                probe, number = probe[kept], number[kept]
            yield probe, number

    def order(self) -> Int64s:
        """Return the numbers of the stored tuples in the order of the index."""
        return self._sorted_numbers & (1 << self._number_bits) - 1

    def is_exact(self, boxes: Box) -> bool:
        """Return whether each box has one stretch at most, and holds every tuple of it."""
        if self._rest or self._cells or self._second is not None:
            return False
        return self._by_number or self._is_whole(boxes)

    def _is_whole(self, boxes: Box) -> bool:
        """Return whether no box leaves out a stored tuple by its number."""
        alive = boxes.begin < boxes.end
        begin, end = boxes.begin[alive], boxes.end[alive]
        return not len(begin) or (int(begin.max()) == 0 and int(end.min()) == self._count)

    @property
    def has_sums(self) -> bool:
        """Whether :meth:`sums` gives the sums over the boxes."""
        return self._second is not None

    def sums(self, reads: Reads, boxes: Box, columns: Sequence[Int64s]) -> list[Int64s]:
        """Return the sums of columns over the box of each stretch's probe, modulo 2 ** 64.

        Parameters
        ----------
        reads : Reads
            Result of :meth:`reads` for the same boxes.
        boxes : Box
            The boxes.
        columns : sequence of array of int64
            What is added up, by the number of the stored tuple.
        """
        assert self._second is not None
        order = self.order()
        coordinate, bounds = order, (boxes.begin[reads.probe], boxes.end[reads.probe])
        if self._second != _NUMBER:
            values = self._fields[self._second][order]
            distinct, coordinate = np.unique(values, return_inverse=True)
            low = np.searchsorted(distinct, boxes.first[self._second][reads.probe])
            last = boxes.last[self._second][reads.probe]
            bounds = low, np.maximum(low, np.searchsorted(distinct, last, side="right"))
        places = reads.start, reads.start + reads.count
        return sums_in_ranges(coordinate, [column[order] for column in columns], places, bounds)

    def _lay_out(
        self, numbers: Int64s, equal: list[int], boxes: Box, *, reducing: bool, adding: bool
    ) -> None:
        """Choose the digits of the packed number."""
        others = [place for place in range(len(self._fields)) if place not in equal]
        sample = _Sample.of(self._fields, numbers, boxes)
        room = BITS - self._number_bits
        reserve = min(room // 2, 24) if others else 0
        digits = [self._digit(place, numbers) for place in equal]
        if sum(digit.bits for digit in digits) <= room - reserve:
            self._equal = digits
            room -= sum(digit.bits for digit in digits)
        else:
            self._equal = [digit for digit in digits if not digit.bits]
            self._hash_bits = min(room - reserve, self._number_bits + 12)
            self._hashed = [digit.field for digit in digits if digit.bits]
            self._rest += self._hashed
            room -= self._hash_bits
        ranges = [*others, *([] if self._is_whole(boxes) else [_NUMBER])]
        exact_by = [
            at for at in others if not self._hash_bits and self._digit(at, numbers).bits <= room
        ]
        chosen, cost = sample.cheapest(equal, others)
        if reducing and len(ranges) == 1 and others:
            chosen = _Layout((), others[0])
        elif adding and len(ranges) == 2 and exact_by and cost > _SUM_COST * self._number_bits:
            chosen = _Layout((), exact_by[0])
            self._second = next(at for at in ranges if at != chosen.by)
        else:
            lengths = _Lengths.of(self._fields, others, numbers, boxes)
            if lengths is not None and sample.cost_of(lengths, equal) < cost:
                self._lengths, chosen = lengths, _Layout((), lengths.start)
                room -= lengths.bits
        for field, width in chosen.cells:
            cell = self._digit(field, numbers, width)
            while cell.bits > max(1, room // 2):
                cell = self._digit(field, numbers, 2 * cell.width)
            room -= cell.bits
            self._cells.append(cell)
        self._by_number = chosen.by == _NUMBER
        exact = {digit.field for digit in self._equal}
        if chosen.by != _NUMBER:
            digit = self._digit(chosen.by, numbers)
            if digit.bits <= room:
                exact.add(chosen.by)
            else:
                digit = self._digit(chosen.by, numbers, 1 << (digit.bits - room))
            self._sorted = digit
        self._rest += [place for place in others if place not in exact]

    def _digit(self, field: int, numbers: Int64s, width: int = 1) -> _Digit:
        if field == _NUMBER:
            return _Digit(field, 0, int(numbers[-1]), width)
        values = self._fields[field]
        if len(numbers) < len(values):
            values = values[numbers]
        return _Digit(field, int(values.min()), int(values.max()), width)

    def _values(self, field: int, numbers: Int64s) -> UInt64s:
        if field == _NUMBER:
            return numbers.view(np.uint64)
        values = self._fields[field]
        return values if len(numbers) == len(values) else values[numbers]

    def _packed(self, numbers: Int64s) -> Int64s:
        """Return the packed numbers of the stored tuples."""
        packed = np.zeros(len(numbers), np.int64)
        if self._hash_bits:
            packed = hashed([self._values(f, numbers) for f in self._hashed], self._hash_bits)
        for digit in [*self._equal, *self._cells]:
            packed <<= digit.bits
            packed |= digit.of(self._values(digit.field, numbers))
        if self._lengths is not None:
            packed <<= self._lengths.bits
            packed |= self._lengths.ranks
        if self._sorted is not None:
            packed <<= self._sorted.bits
            packed |= self._sorted.of(self._values(self._sorted.field, numbers))
        packed <<= self._number_bits
        packed |= numbers
        return packed

    def _visits(self, boxes: Box) -> tuple[Int64s, Int64s, Int64s, tuple[Int64s, Int64s]]:
        """Return what the probes visit.

        Returns
        -------
        probes : array of int64
            The probes that may find something.
        visited : array of int64
            For each visit, its place in ``probes``.
        heads : array of int64
            For each visit, the digits before the sorted field.
        spans : tuple of array of int64
            For each visit, the first and the last digit of the sorted field.
        """
        alive = boxes.begin < boxes.end
        spans: dict[int, tuple[Int64s, Int64s]] = {}
        for digit in [*self._equal, *self._cells, *([self._sorted] if self._sorted else [])]:
            if digit.field == _NUMBER:
                first, last = boxes.begin.view(np.uint64), (boxes.end - 1).view(np.uint64)
                first = np.where(alive, first, np.uint64(1))
                last = np.where(alive, last, np.uint64(0))
            else:
                first, last = boxes.first[digit.field], boxes.last[digit.field]
            spans[digit.field] = low, high = digit.span(first, last)
            alive &= low <= high
        probes = np.flatnonzero(alive)
        heads = np.zeros(len(probes), np.int64)
        if self._hash_bits:
            heads = hashed([boxes.first[f][probes] for f in self._hashed], self._hash_bits)
        for digit in self._equal:
            heads <<= digit.bits
            heads |= spans[digit.field][0][probes]
        visited = np.arange(len(probes))
        for digit in self._cells:
            low, high = (ends[probes[visited]] for ends in spans[digit.field])
            each, cells = Reads(np.arange(len(visited)), low, high - low + 1).expanded()
            visited = visited[each]
            heads = heads[each] << digit.bits | cells
        if self._sorted is None:
            return probes, visited, heads, (visited, visited)
        if self._lengths is not None:
            lengths, classes = self._lengths, len(self._lengths.longest)
            ranks = np.tile(np.arange(classes), len(visited))
            visited = np.repeat(visited, classes)
            heads = np.repeat(heads, classes) << lengths.bits | ranks
            first = lengths.first(boxes.first[lengths.end][probes[visited]], ranks)
            last = boxes.last[lengths.start][probes[visited]]
            return probes, visited, heads, self._sorted.span(first, last)
        low, high = (ends[probes[visited]] for ends in spans[self._sorted.field])
        return probes, visited, heads, (low, high)


#: Stands for the number of a tuple where a field is meant.
_NUMBER = -1


@dataclass(frozen=True)
class _Layout:
    """A layout: the fields that get cells, each with a width, and the one that is sorted."""

    cells: tuple[tuple[int, int], ...]
    by: int


@dataclass(frozen=True)
class _Sample:
    """Some stored tuples and some boxes, by which layouts are compared.

    Parameters
    ----------
    fields : sequence of array of uint64
        Fields of the tuples.
    stored : int
        Number of all stored tuples.
    boxes : Box
        The boxes.
    widths : sequence of int
        Largest distance between the ends of any box, by field, also of those not in the sample. No
        box then touches more than two cells of this width.
    longest : int
        Most numbers in any box.
    """

    fields: Sequence[UInt64s]
    stored: int
    boxes: Box
    widths: Sequence[int]
    longest: int

    @classmethod
    def of(cls, fields: Sequence[UInt64s], numbers: Int64s, boxes: Box) -> "_Sample":
        some = numbers[:: max(1, len(numbers) // _SAMPLE)]
        alive = np.flatnonzero(boxes.begin < boxes.end)
        return cls(
            [values[some] for values in fields],
            len(numbers),
            boxes.of(alive[:: max(1, len(alive) // _SAMPLED_PROBES)]),
            [
                0 if first is last else int((last - np.minimum(first, last)).max())
                for first, last in zip(boxes.first, boxes.last, strict=True)
            ],
            int((boxes.end - boxes.begin).max()),
        )

    def cost_of(self, lengths: _Lengths, equal: Sequence[int]) -> float:
        """Return the cost of the sampled boxes if stored tuples are told apart by their length."""
        read, classes = 0.0, len(lengths.longest)
        counts = np.bincount(lengths.ranks, minlength=classes) / max(1, len(lengths.ranks))
        for rank in range(classes):
            ranks = np.full(len(self.boxes), rank)
            first = lengths.first(self.boxes.first[lengths.end], ranks)
            read += counts[rank] * self._share(lengths.start, first, self.boxes.last[lengths.start])
        return _VISIT_COST * classes + self._candidates(equal) * read

    def _candidates(self, equal: Sequence[int]) -> float:
        """Return how many stored tuples a box has in the fields that are compared for equality."""
        candidates = float(self.stored)
        for field in equal:
            candidates *= self._share(field, self.boxes.first[field], self.boxes.last[field])
        return candidates

    def cheapest(self, equal: Sequence[int], others: Sequence[int]) -> tuple[_Layout, float]:
        """Return the layout with the least cost of the sampled boxes, and the cost."""
        candidates = self._candidates(equal)
        by = {field: self._sorted_share(field) for field in (*others, _NUMBER)}
        cells = [
            (field, *found)
            for field in (*others, _NUMBER)
            if by[field] < 0.5
            for found in self._cell_shares(field)
        ]
        best, least = _Layout((), _NUMBER), float("inf")
        for size in range(_MOST_CELLS + 1):
            for chosen in combinations(cells, size):
                fields = {one[0] for one in chosen}
                if len(fields) < size:
                    continue
                for field, share in by.items():
                    if field in fields:
                        continue
                    visits, read = 1.0, candidates * share
                    for _, _, touched, held in chosen:
                        visits *= touched
                        read *= held
                    if visits * _VISIT_COST + read < least:
                        least = visits * _VISIT_COST + read
                        best = _Layout(tuple((at, width) for at, width, *_ in chosen), field)
        return best, least

    def _share(self, field: int, first: UInt64s, last: UInt64s) -> float:
        """Return the mean share of the stored tuples that lie in ranges of a field."""
        values = np.sort(self.fields[field])
        counts = np.searchsorted(values, last, side="right").astype(np.float64)
        counts -= np.searchsorted(values, first, side="left")
        return float((np.maximum(counts, 0).mean() if len(counts) else 0) + 0.5) / len(values)

    def _ranges(self, field: int) -> tuple[UInt64s, UInt64s]:
        if field == _NUMBER:
            return self.boxes.begin.view(np.uint64), (self.boxes.end - 1).view(np.uint64)
        return self.boxes.first[field], self.boxes.last[field]

    def _sorted_share(self, field: int) -> float:
        first, last = self._ranges(field)
        if field == _NUMBER:
            width = (last - first).astype(np.float64) + 1
            return float(width.mean() if len(width) else 1) / max(1, self.stored)
        return self._share(field, first, last)

    def _cell_shares(self, field: int) -> Iterator[tuple[int, float, float]]:
        """Yield widths of cells, how many of them a box touches, and their share of the tuples."""
        first, last = self._ranges(field)
        if not len(first):
            return
        if field == _NUMBER:
            least, most = 0, self.stored - 1
            widths = [1 << max(int(np.median(last - first)), self.longest // 8).bit_length()]
        else:
            least, most = int(self.fields[field].min()), int(self.fields[field].max())
            widths = [times << self.widths[field].bit_length() for times in _WIDTHS]
        for width in widths:
            if width > (most - least) // 2:
                return
            low, high = _Digit(field, least, most, width).span(first, last)
            visits = float(np.maximum(high - low + 1, 0).mean())
            if field == _NUMBER:
                yield width, visits, min(1.0, visits * width / self.stored)
                continue
            begin = np.uint64(least) + low.view(np.uint64) * np.uint64(width)
            end = np.uint64(least) + high.view(np.uint64) * np.uint64(width) + np.uint64(width - 1)
            there = low <= high
            yield width, visits, self._share(field, begin[there], end[there])


def _nearly_ascending(values: Int64s) -> Int64s:
    """Return an order in which values that are not negative ascend, but for their last bits.

    Packed with their places and sorted as numbers, they take a fifth of the time of `argsort`.
    """
    bits = max(1, (len(values) - 1).bit_length())
    excess = max(0, int(values.max()).bit_length() + bits - BITS)
    packed = np.sort(values >> excess << bits | np.arange(len(values)))
    packed &= (1 << bits) - 1
    return packed


# Sums over two ranges at once: of places in an order, and of a second coordinate. The places are
# sorted by the bits of the coordinate, from the highest on, as in a wavelet matrix (Claude,
# Navarro, 2012): a query follows its two bounds through the bits and takes what lies below them
# from running sums. So a query costs as many steps as the coordinate has bits, however many places
# its ranges hold.


def sums_in_ranges(
    coordinate: Int64s,
    columns: Sequence[Int64s],
    places: tuple[Int64s, Int64s],
    bounds: tuple[Int64s, Int64s],
) -> list[Int64s]:
    """Return the sums of some columns for each query, modulo 2 ** 64.

    Parameters
    ----------
    coordinate : array of int64
        The coordinate of each place, not negative.
    columns : sequence of array of int64
        What is added up, by place.
    places : tuple of array of int64
        For each query, its first place, and the one behind its last.
    bounds : tuple of array of int64
        For each query, the least coordinate that counts, and the least above it that does not.
    """
    queries = len(places[0])
    # The sums below the upper bounds, and those below the lower ones, which are taken off.
    start, end = (np.concatenate([ends, ends]) for ends in places)
    limit = np.concatenate([bounds[1], bounds[0]])
    sums = [np.zeros(2 * queries, np.int64) for _ in columns]
    most = max(int(limit.max(initial=0)), int(coordinate.max(initial=0)))
    for bit in reversed(range(most.bit_length())):
        ones = coordinate >> bit & 1
        before = np.concatenate([[0], np.cumsum(ones)])  # places with the bit before each one
        order = np.concatenate([np.flatnonzero(ones == 0), np.flatnonzero(ones)])
        coordinate, columns = coordinate[order], [column[order] for column in columns]
        first, last = before[start], before[end]
        start, end = start - first, end - last
        above = np.flatnonzero(limit >> bit & 1)  # all that have no such bit are below the bound
        low, high = start[above], end[above]
        for total, column in zip(sums, columns, strict=True):
            running = np.concatenate([[0], np.cumsum(column)])
            total[above] += running[high] - running[low]
        zeros = len(ones) - int(before[-1])
        start[above], end[above] = first[above] + zeros, last[above] + zeros
    return [total[:queries] - total[queries:] for total in sums]
