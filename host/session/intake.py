# SPDX-License-Identifier: Apache-2.0
"""Encode batches of rows as tuples, from one input or from two, in their order of arrival."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from host.arrays import Bools, Int64s, UInt64s
from host.columns.encoding import BatchEncoder, EncodedBatch, EncodingPlan
from host.columns.kinds import integer_view, shown
from host.engine.equal_keys import merge_places
from host.errors import OrderError, UsageError
from host.protocol.manifest import Manifest
from host.protocol.segments import outgrown, side_label
from host.reference.arrivals import Side
from host.reference.window import TimeWindow
from host.runtime import Buffer, ColumnLog, Columns
from host.session.records import StagingCounters
from host.session.rows import Rows, joined

__all__ = [
    "Arrived",
    "Intake",
    "PairedIntake",
    "SideTuples",
    "TaggedIntake",
    "TaggedLayout",
    "TakeRows",
    "WindowGauge",
    "settled",
]

# Notice that a time-based window of a stream outgrows the accelerator before it happens.


class WindowGauge:
    """Watches the window of one side, whose tuples arrive batch by batch.

    Parameters
    ----------
    side : Side
        Side, for the error message.
    lifespan : int
        Lifespan of the window, in units of the timestamps.
    manifest : Manifest
        Manifest of the accelerator.
    """

    def __init__(self, side: Side, lifespan: int, manifest: Manifest) -> None:
        self._side = side
        self._lifespan = np.uint64(min(lifespan, (1 << 64) - 1))
        self._manifest, self._capacity = manifest, manifest.capacity
        self._log = ColumnLog()

    def see(self, times: UInt64s, row_of: Callable[[int], int]) -> None:
        """Take the next timestamps; ``row_of`` maps an index in them to a row number.

        Raises
        ------
        CapacityError
            If a tuple finds no room; the error names its row.
        """
        at = self.overflow(times)
        if at is not None:
            raise outgrown(self._manifest, side_label(self._side), ordinal=row_of(at))

    def overflow(self, times: UInt64s) -> int | None:
        """Take the next timestamps; return the index of the first without room, or None."""
        log = self._log
        first = max(0, self._capacity - log.count)  # index of the first that can find no room
        base = log.count + first - self._capacity
        gone = max(0, log.kept - base)  # tuples that have expired are not in the log any more
        first, base = first + gone, base + gone
        log.append(Columns({"time": times}))
        found = None
        if first < len(times):
            # A tuple finds no room if the tuple `capacity` places before it has not expired.
            earlier = log.part("time", base, base + len(times) - first)
            full = times[first:] - earlier <= self._lifespan
            if full.any():
                found = first + int(np.argmax(full))
        if len(times) and times[-1] > self._lifespan:
            held = log.part("time", log.kept, log.count)
            log.forget(log.kept + int(np.searchsorted(held, times[-1] - self._lifespan)))
        return found

    @property
    def held(self) -> int:
        """Number of timestamps that are kept: those of the window."""
        return self._log.count - self._log.kept


# Compute the places of two sorted inputs' tuples in their common order of arrival.


def settled(left: UInt64s, right: UInt64s) -> tuple[int, int]:
    """Return how many tuples of either side cannot be preceded by a later one.

    More tuples follow on both sides, with timestamps no less than the last ones. On a tie, the left
    side arrives first.

    Parameters
    ----------
    left, right : array of uint64
        Timestamps, ascending; at least one per side.
    """
    if left[-1] <= right[-1]:
        # A later tuple of the left side may tie with its last one, and precedes the right side's
        # tuples.
        return len(left), int(np.searchsorted(right, left[-1], side="left"))
    return int(np.searchsorted(left, right[-1], side="right")), len(right)


# Encode batches of rows as tuples, with their places in the order of arrival.

#: Called with the numbers and times of all rows of a side, in order, including rows that are not
#: encoded as tuples, and perhaps with those that may be in the result alone.
TakeRows = Callable[..., None]

#: A time later than any timestamp.
NEVER = (1 << 64) - 1

#: Largest number of rows that are encoded at once. Longer batches are cut to bound memory.
MOST_ROWS = 1 << 15
#: If several batches wait, those with fewer than `SMALL_ROWS` rows are joined, up to `ENOUGH_ROWS`
#: rows. The fixed cost of a batch equals that of some hundred rows.
SMALL_ROWS, ENOUGH_ROWS = 1 << 9, 1 << 13


@dataclass(frozen=True)
class SideTuples:
    """Tuples of one side that will be sent.

    Parameters
    ----------
    batch : EncodedBatch
        Batch that contains the tuples.
    begin, end : int
        Range of the tuples in the batch.
    places : array of int64
        Places of the tuples among all tuples that are sent together.
    """

    batch: EncodedBatch
    begin: int
    end: int
    places: Int64s

    @property
    def times(self) -> UInt64s:
        """Timestamps of the tuples."""
        return self.batch.times[self.begin : self.end]


@dataclass(frozen=True)
class Arrived:
    """Tuples of both sides that are sent together.

    Parameters
    ----------
    count : int
        Number of tuples.
    sides : mapping of Side to SideTuples
        Tuples of each side.
    """

    count: int
    sides: dict[Side, SideTuples]

    @property
    def times(self) -> UInt64s:
        """Timestamps of all tuples, in the order in which these are sent."""
        times = np.empty(self.count, np.uint64)
        for tuples in self.sides.values():
            times[tuples.places] = tuples.times
        return times

    def split(self, count: int) -> tuple["Arrived", "Arrived"]:
        """Return the first ``count`` tuples, and those behind them."""
        first, rest = {}, {}
        for side, tuples in self.sides.items():
            mine = int(np.searchsorted(tuples.places, count))
            middle = tuples.begin + mine
            first[side] = SideTuples(tuples.batch, tuples.begin, middle, tuples.places[:mine])
            later = tuples.places[mine:] - count
            rest[side] = SideTuples(tuples.batch, middle, tuples.end, later)
        return Arrived(count, first), Arrived(self.count - count, rest)


class Intake(ABC):
    """Takes batches from input buffers, stores their rows, and encodes them, for one execution.

    Parameters
    ----------
    inputs : sequence of Buffer
        Buffers that the batches come from.
    plan : EncodingPlan
        Encoding of rows as tuples.
    rows : tuple of Rows
        Stores of the rows of either side.
    manifest : Manifest
        Manifest of the accelerator.
    tell : callable, optional
        Called with all rows as they are taken. If given, :meth:`take` also returns when none of
        the new rows became a tuple.

    Attributes
    ----------
    counters : StagingCounters
        What was taken and copied.
    most_rows : int
        Most rows that are encoded at once, of one batch or of small ones that are joined.
    """

    def __init__(
        self,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        plan: EncodingPlan,
        rows: tuple[Rows, Rows],
        manifest: Manifest,
        tell: TakeRows | None = None,
    ) -> None:
        self._tell = tell
        self._inputs = inputs
        self._plan = plan
        self._rows = rows
        self._encoder = BatchEncoder(plan, firsts=(rows[0].first, rows[1].first))
        self._settled = False
        self.most_rows = MOST_ROWS
        self.counters = StagingCounters()
        # Whole tables have been measured before: their plan is marked as checked.
        self._gauges = (
            {side: WindowGauge(side, int(plan.window.lifespan), manifest) for side in Side}
            if isinstance(plan.window, TimeWindow) and not plan.checked
            else {}
        )

    @property
    @abstractmethod
    def at_end(self) -> bool:
        """Whether all tuples have been handed out."""

    @abstractmethod
    def take(self) -> Arrived | None:
        """Return the next tuples; None, after a demand for input, if more input must come first."""

    @property
    @abstractmethod
    def reached(self) -> int:
        """Lower bound of the timestamps of all tuples that are handed out later."""

    @abstractmethod
    def next_row(self, side: Side) -> int:
        """Return the lower bound of the rows of ``side`` whose tuples are handed out later."""

    def floor(self, ticks: int) -> int:
        """Return the greatest timestamp that is not later than a time, once tuples have come.

        Parameters
        ----------
        ticks : int
            The time, as from :meth:`host.columns.times.TimePlan.ticks`.
        """
        return self._encoder.floor(ticks)

    def owned(self, pairs: Columns) -> Columns:
        """Return the pairs that belong to the result; by default all of them."""
        return pairs

    def _receive(self, buffer: Buffer[pa.RecordBatch]) -> pa.RecordBatch:
        """Consume a batch, the beginning of a long batch, or several small batches that wait."""
        parts: list[pa.RecordBatch] = []
        rows = 0
        while buffer.rows and rows < min(ENOUGH_ROWS, self.most_rows):
            batch = buffer.access()
            if parts and batch.num_rows >= SMALL_ROWS:
                break
            batch = batch.slice(0, self.most_rows - rows)
            buffer.consume(batch.num_rows)
            parts.append(batch)
            rows += batch.num_rows
            if batch.num_rows >= SMALL_ROWS:
                break
        self.counters.batches += len(parts)
        self.counters.rows += rows
        if len(parts) == 1:
            return parts[0]
        self.counters.copied_batches += len(parts)
        together = joined(parts)
        self.counters.copied_bytes += together.nbytes
        return together

    def _settle(self, batches: Sequence[tuple[Side, pa.RecordBatch]]) -> None:
        """Use the first batches of both sides to settle what the plan leaves open."""
        if not self._settled:
            self._encoder.settle(batches)
            self._settled = True

    def _encode(self, side: Side, batch: pa.RecordBatch) -> EncodedBatch:
        encoded = self._encoder.encode(side, batch)
        if side in self._gauges:
            numbers = encoded.row_numbers(0, len(encoded))
            self._gauges[side].see(encoded.times, lambda index: int(numbers[index]))
        copied = _copied_bytes(batch, encoded)
        if copied:
            self.counters.copied_batches += 1
            self.counters.copied_bytes += copied
        self.counters.tuples += len(encoded)
        return encoded


def _copied_bytes(batch: pa.RecordBatch, encoded: EncodedBatch) -> int:
    """Return the bytes of encoded fields that do not lie in the buffers of the batch."""
    buffers = [column.buffers()[1] for column in batch.columns if len(column.buffers()) > 1]
    spans = [(buffer.address, buffer.address + buffer.size) for buffer in buffers if buffer]
    copied = 0
    for field in encoded.keys.values():
        address = field.values.ctypes.data
        if not any(begin <= address < end for begin, end in spans):
            copied += field.values.nbytes
    return copied


# Merge two inputs, each sorted by time, into their common order of arrival.


class _Head:
    """The rows of one side that have arrived and were not handed out."""

    def __init__(self, first: int) -> None:
        self.raw: pa.RecordBatch | None = None  # not encoded yet
        self.batch: EncodedBatch | None = None
        self.begin = 0
        self.rows = first  # number of the next row that is encoded
        self.latest = 0  # timestamp of the last encoded row


class PairedIntake(Intake):
    """Merges input 0 (side R) and input 1 (side S) by time; on a tie, R comes first.

    A batch of one side waits until the other side has a batch or has ended. Pairs of rows below
    ``answered`` on both sides are not in the result.
    """

    def __init__(
        self,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        plan: EncodingPlan,
        rows: tuple[Rows, Rows],
        manifest: Manifest,
        tell: TakeRows | None = None,
        *,
        answered: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(inputs, plan, rows, manifest, tell)
        self._answered = answered
        self._heads = {side: _Head(rows[side].first) for side in Side}

    @property
    def at_end(self) -> bool:
        return all(buffer.at_end for buffer in self._inputs) and all(
            head.raw is None and head.batch is None for head in self._heads.values()
        )

    @property
    def reached(self) -> int:
        return min(self._reached(side) for side in Side)

    def _reached(self, side: Side) -> int:
        head = self._heads[side]
        if head.batch is not None:
            return int(head.batch.times[head.begin])
        return NEVER if self._inputs[side].at_end and head.raw is None else head.latest

    def next_row(self, side: Side) -> int:
        head = self._heads[side]
        if head.batch is None:
            return head.rows
        return int(head.batch.row_numbers(head.begin, head.begin + 1)[0])

    def owned(self, pairs: Columns) -> Columns:
        left, right = self._answered
        if not left or not right:
            return pairs
        return pairs.take(np.flatnonzero((pairs["left"] >= left) | (pairs["right"] >= right)))

    def take(self) -> Arrived | None:
        while self._fill():
            batches = {side: head.batch for side, head in self._heads.items() if head.batch}
            if any(side not in batches and not self._inputs[side].at_end for side in Side):
                if self._tell is not None:
                    return Arrived(0, {})
                continue  # the new batch has no row that is sent
            return self._merge(batches) if batches else None
        return None

    def _fill(self) -> bool:
        """Get an encoded batch for each side that has not ended; False if input is missing."""
        waits = False
        for side, head in self._heads.items():
            buffer = self._inputs[side]
            if head.raw is None and head.batch is None and not buffer.at_end:
                if buffer.demand():
                    head.raw = self._receive(buffer)
                    self._rows[side].append(head.raw)
                else:
                    waits = True
        if waits:
            return False
        fresh = [(side, head.raw) for side, head in self._heads.items() if head.raw is not None]
        if fresh:
            self._settle(fresh)
        for side, raw in fresh:
            head = self._heads[side]
            encoded = self._encode(side, raw)
            if self._tell is not None:
                rows = np.arange(head.rows, head.rows + raw.num_rows)
                self._tell(side, rows, encoded.all_times)
            if raw.num_rows:
                head.latest = int(encoded.all_times[-1])
            head.rows += raw.num_rows
            head.raw, head.batch, head.begin = None, encoded if len(encoded) else None, 0
        return True

    def _merge(self, batches: dict[Side, EncodedBatch]) -> Arrived:
        """Hand out those tuples of the first batches that no later row can precede."""
        begins = {side: self._heads[side].begin for side in batches}
        times = {side: batch.times[begins[side] :] for side, batch in batches.items()}
        takes = {side: len(of_side) for side, of_side in times.items()}
        if len(batches) == 2:
            takes[Side.R], takes[Side.S] = settled(times[Side.R], times[Side.S])
        empty = times[next(iter(times))][:0]
        left, right = (
            times[side][: takes[side]] if side in times else empty for side in (Side.R, Side.S)
        )
        places = dict(zip(Side, merge_places(left, right), strict=True))
        sides = {}
        for side, batch in batches.items():
            if takes[side]:
                end = begins[side] + takes[side]
                sides[side] = SideTuples(batch, begins[side], end, places[side])
                head = self._heads[side]
                head.begin = end
                if end == len(batch):
                    head.batch = None
        return Arrived(len(left) + len(right), sides)


# Take one input that holds the rows of both sides in their order of arrival.


@dataclass(frozen=True)
class TaggedLayout:
    """Positions of the columns of both sides in tagged batches.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of the sides, by the names that the query uses; the left columns come first. In a
        row of one side, the columns of the other side may hold anything.
    first : int
        Position of the first left column.
    shared : bool
        Whether the right columns have the positions of the left ones; the types are then the same.
    side : str
        Name of an int8 column: 0 in a left row, 1 in a right row.
    halo : str, optional
        Name of a boolean column, true in halo rows. Halo rows are there only for later rows to
        meet, and precede all other rows. A pair whose later row is a halo row is not in the result.
    alone : str, optional
        Name of a boolean column, true in rows that may be in the result alone, if the type of the
        join has such rows. By default, all rows may.
    """

    left: pa.Schema
    right: pa.Schema
    first: int
    shared: bool = False
    side: str = "side"
    halo: str | None = None
    alone: str | None = None

    @property
    def slices(self) -> tuple[slice, slice]:
        """Positions of the columns of either side."""
        end = self.first + len(self.left)
        begin = self.first if self.shared else end
        return slice(self.first, end), slice(begin, begin + len(self.right))


class TaggedIntake(Intake):
    """Separates the sides of a tagged input, whose order is the order of arrival.

    Rows are numbered over both sides, as in :class:`~host.session.rows.SharedRows`.
    """

    def __init__(
        self,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        plan: EncodingPlan,
        rows: tuple[Rows, Rows],
        manifest: Manifest,
        layout: TaggedLayout,
        tell: TakeRows | None = None,
    ) -> None:
        super().__init__(inputs, plan, rows, manifest, tell)
        self._tag = layout.side
        self._halo = layout.halo
        self._alone = layout.alone
        self._reached = 0
        self._number = rows[0].first  # of the next row of both sides
        self._halos = rows[0].first  # of the first row behind the halo rows, which come first
        self._last: tuple[int, object] = (0, None)  # last timestamp, encoded and original
        # Per side: positions and names of the columns that are encoded.
        self._wanted: list[tuple[list[int], list[str]]] = []
        for side, schema, columns in zip(
            Side, (layout.left, layout.right), layout.slices, strict=True
        ):
            names = list(plan.columns(side))
            self._wanted.append(
                ([columns.start + schema.get_field_index(name) for name in names], names)
            )

    @property
    def at_end(self) -> bool:
        return self._inputs[0].at_end

    @property
    def reached(self) -> int:
        return self._reached

    def next_row(self, side: Side) -> int:
        del side  # rows are numbered over both sides
        return self._number

    def take(self) -> Arrived | None:
        buffer = self._inputs[0]
        while not buffer.at_end and buffer.demand():
            batch = self._receive(buffer)
            self._rows[Side.R].append(batch)
            halos = self._halo_rows(batch)
            arrived = self._taken_apart(batch, halos)
            self._number += batch.num_rows
            self._halos += halos
            if arrived.count or self._tell is not None:
                return arrived
        return None

    def owned(self, pairs: Columns) -> Columns:
        if not self._halos:
            return pairs
        later = np.maximum(pairs["left"], pairs["right"])
        return pairs.take(np.flatnonzero(later >= self._halos))

    def _halo_rows(self, batch: pa.RecordBatch) -> int:
        """Return how many rows of ``batch`` are halo rows, which must be the first ones."""
        if self._halo is None:
            return 0
        count: int = batch.column(self._halo).true_count
        misplaced = count and (
            self._halos < self._number or batch.column(self._halo)[:count].true_count < count
        )
        if misplaced:
            raise UsageError(
                f"Halo rows come before all others, but one follows in the batch of row "
                f"{self._number}; sort the rows by time, those of column {self._halo!r} first."
            )
        return count

    def _answered(self, batch: pa.RecordBatch, at: Int64s) -> Bools | None:
        """Return which of the rows at the places ``at`` are in the result if they come alone."""
        if self._alone is None:
            return None
        flags: Bools = batch.column(self._alone).to_numpy(zero_copy_only=False)
        return flags[at]

    def _taken_apart(self, batch: pa.RecordBatch, halos: int) -> Arrived:
        tags = integer_view(batch.column(self._tag))
        members = {side: np.flatnonzero(tags == side) for side in Side}
        parts = [(side, self._part(batch, side, at)) for side, at in members.items() if len(at)]
        self._settle(parts)
        encoded: dict[Side, EncodedBatch] = {}
        places: dict[Side, Int64s] = {}
        own: dict[Side, EncodedBatch] = {}  # with row numbers of the side itself
        for side, part in parts:
            tuples = own[side] = self._encode(side, part)
            at = members[side]
            self._reached = max(self._reached, int(tuples.all_times[-1]))
            if self._tell is not None:
                answered = self._answered(batch, at)
                self._tell(side, at + self._number, tuples.all_times, answered)
            if tuples.rows is not None:
                at = at[tuples.rows - tuples.first]
            encoded[side] = replace(tuples, rows=at + self._number)
            self.counters.halo_tuples += int(np.count_nonzero(at < halos))
            places[side] = at
        count = sum(len(at) for at in places.values())
        if count < batch.num_rows:  # rows that are left out take no place
            sent = np.zeros(batch.num_rows, np.bool_)
            for at in places.values():
                sent[at] = True
            number = np.cumsum(sent) - 1
            places = {side: number[at] for side, at in places.items()}
        self._require_order(count, own, places, dict(parts))
        return Arrived(
            count,
            {
                side: SideTuples(tuples, 0, len(tuples), places[side])
                for side, tuples in encoded.items()
                if len(tuples)
            },
        )

    def _require_order(
        self,
        count: int,
        encoded: dict[Side, EncodedBatch],
        places: dict[Side, Int64s],
        parts: dict[Side, pa.RecordBatch],
    ) -> None:
        """Raise unless the rows of both sides together are in the order of time."""
        times = np.empty(count + 1, np.uint64)
        times[0] = self._last[0]
        for side, at in places.items():
            times[1 + at] = encoded[side].times
        falls = times[1:] < times[:-1]

        def value(place: int) -> tuple[Side, int, object]:
            """Return side, row number and time of the tuple at a place."""
            for side, at in places.items():
                index = int(np.searchsorted(at, place))
                if index < len(at) and at[index] == place:
                    row = int(encoded[side].row_numbers(index, index + 1)[0])
                    time = self._plan.times.columns[side].read(parts[side])
                    return side, row, shown(time[row - encoded[side].first])
            return Side.R, 0, self._last[1]

        if falls.any():
            fall = int(np.argmax(falls))
            side, row, time = value(fall)
            label = self._plan.times.columns[side].name
            raise OrderError.disorder(label, row, value(fall - 1)[2], time)
        if count:
            self._last = int(times[-1]), value(count - 1)[2]

    def _part(self, batch: pa.RecordBatch, side: Side, at: Int64s) -> pa.RecordBatch:
        """Return the rows of one side, with only those columns that are encoded."""
        positions, names = self._wanted[side]
        columns = [batch.column(position) for position in positions]
        if len(at) < batch.num_rows:
            indices = pa.array(at)
            columns = [column.take(indices) for column in columns]
            self.counters.copied_batches += 1
            self.counters.copied_bytes += sum(column.nbytes for column in columns)
        return pa.RecordBatch.from_arrays(columns, names=names)
