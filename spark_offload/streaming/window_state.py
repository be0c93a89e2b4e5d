# SPDX-License-Identifier: Apache-2.0
"""The kept rows of a group in Spark's state store: a directory, and a blob for each slice of time.

A micro-batch reads the slices that its rows can meet, rewrites those that its rows fall into, and
removes those that no row can meet any more; the others are not touched. Where rows come alone, a
slice is read again when it goes.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.reference.side import Side
from spark_offload.streaming.blobs import from_blob, microseconds, to_blob, whole_table
from spark_offload.streaming.matched import MatchedBits
from spark_offload.streaming.state_protocols import MapStore, Timers, ValueStore
from spark_offload.streaming.task import StreamTask

__all__ = ["WindowState"]

Bools = npt.NDArray[np.bool_]
Slice = tuple[int, int]


class WindowState:
    """The kept rows of the group that Spark is calling for; to be made anew for every call.

    Parameters
    ----------
    task : StreamTask
        What is joined.
    directory : ValueStore
        ``length, timer, slices``: microseconds of a slice, the timer that is set (0: none), and
        side, number and rows of every slice.
    rows : MapStore
        The blobs by side and number of the slice.
    timers : Timers
        Where the timer is set that removes rows although none come.

    Attributes
    ----------
    stored, expired : int
        Rows added and removed so far.
    alone : list of (int, Table)
        Side and rows, removed so far, that come alone by the type of the join.
    """

    def __init__(
        self, task: StreamTask, directory: ValueStore, rows: MapStore, timers: Timers
    ) -> None:
        self._task = task
        self._directory = directory
        self._rows = rows
        self._timers = timers
        self._slices: dict[Slice, int] = {}
        self._length, self._timer = task.slice_length, 0
        found = directory.get()
        if found is not None:
            length, timer, slices = found
            assert isinstance(length, int)
            assert isinstance(timer, int)
            assert isinstance(slices, (bytes, bytearray))
            self._length, self._timer = length, timer
            for side, number, count in np.frombuffer(slices, np.int64).reshape(-1, 3).tolist():
                self._slices[side, number] = count
        self._bits = MatchedBits(rows)
        self._near: dict[int, list[Slice]] = {}
        self.stored = 0
        self.expired = 0
        self.alone: list[tuple[int, pa.Table]] = []

    def near(self, side: int, span: tuple[int, int] | None) -> pa.Table:
        """Return the rows of all slices that overlap a span of microseconds."""
        schema = self._task.schema(side)
        batches: list[pa.RecordBatch] = []
        near: list[Slice] = []
        self._near[side] = near
        if span is not None:
            first, last = span[0] // self._length, span[1] // self._length
            for of_side, number in sorted(self._slices):
                if of_side == side and first <= number <= last:
                    batches.extend(self._read((side, number)))
                    near.append((side, number))
        return whole_table(batches, schema)

    def mark(self, side: int, matched: Bools) -> None:
        """Of the rows that :meth:`near` returned, some have matched."""
        if not self._tracks(side):
            return
        begin = 0
        for place in self._near[side]:
            end = begin + self._slices[place]
            self._bits.mark(place, matched[begin:end])
            begin = end

    def add(self, side: int, rows: pa.Table, matched: Bools) -> None:
        """Keep rows of one side, of which some have matched."""
        if not rows.num_rows:
            return
        schema = self._task.schema(side)
        numbers = microseconds(rows, self._task.order(side)) // self._length
        order = np.argsort(numbers, kind="stable")
        rows, matched = rows.take(pa.array(order)).combine_chunks(), matched[order]
        found, begins = np.unique(numbers[order], return_index=True)
        ends = [*begins[1:].tolist(), len(numbers)]
        for number, begin, end in zip(found.tolist(), begins.tolist(), ends, strict=True):
            place = (side, number)
            old = list(self._read(place)) if place in self._slices else []
            blob = to_blob([*old, *rows.slice(begin, end - begin).to_batches()], schema)
            self._rows.updateValue(place, (blob,))
            before = self._slices.get(place, 0)
            if self._tracks(side):
                self._bits.add(place, before, matched[begin:end])
            self._slices[place] = before + end - begin
        self.stored += rows.num_rows

    def expire(self, watermark: int) -> None:
        """Remove the slices whose rows are all older than ``watermark - width``, microseconds."""
        for place in [place for place in self._slices if self._end(place) <= watermark]:
            count = self._slices.pop(place)
            if self._tracks(place[0]):
                self._leave(place, count)
            self._rows.removeKey(place)
            self.expired += count

    def _tracks(self, side: int) -> bool:
        return self._task.query.how.tracks(Side(side))

    def _leave(self, place: Slice, count: int) -> None:
        """Find the rows of a slice that come alone, now that nothing can match them."""
        wanted = self._bits.of(place, count) == self._task.query.how.wants_matched
        self._bits.remove(place)
        if wanted.any():
            rows = whole_table(self._read(place), self._task.schema(place[0]))
            self.alone.append((place[0], rows.filter(pa.array(wanted))))

    def save(self, fired: int | None = None) -> None:
        """Write the directory, and set the timer for the next slice that will expire.

        Parameters
        ----------
        fired : int, optional
            The timer that has just gone off, which Spark removes by itself.
        """
        self._bits.save()
        timer = 0
        if self._slices:
            # Milliseconds, rounded up: when the watermark is there, the slice has expired.
            timer = max(1, -(-min(map(self._end, self._slices)) // 1000))
        if timer != self._timer:
            if self._timer not in (0, fired):
                self._timers.deleteTimer(self._timer)
            if timer:
                self._timers.registerTimer(timer)
        if self._slices:
            table = [[*place, count] for place, count in sorted(self._slices.items())]
            slices = np.array(table, np.int64).tobytes()
            self._directory.update((self._length, timer, slices))
        else:
            self._directory.clear()
        self._timer = timer

    def _end(self, place: Slice) -> int:
        """Return the watermark from which on no row can meet one of this slice."""
        return (place[1] + 1) * self._length + self._task.width

    def _read(self, place: Slice) -> Iterator[pa.RecordBatch]:
        value = self._rows.getValue(place)
        if value is None:
            raise RuntimeError(f"The state store has lost slice {place} of a group")
        blob = value[0]
        assert isinstance(blob, (bytes, bytearray))
        yield from from_blob(bytes(blob), self._task.schema(place[0]))
