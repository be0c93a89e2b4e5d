# SPDX-License-Identifier: Apache-2.0
"""The kept rows of a group in Spark's state store, and which of them have matched."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.reference.arrivals import Side
from spark_offload.stream.reduction import GroupParts, KeptPart, identity_of
from spark_offload.stream.task import (
    MapStore,
    StreamTask,
    Timers,
    ValueStore,
    from_blob,
    microseconds,
    to_blob,
    whole_table,
)

__all__ = [
    "MatchedBits",
    "WindowState",
    "move_timer",
]

# Which kept rows have matched: a bit each, in the state beside the slices of rows.
#
# The bits of a slice are a value of their own, so that marking a row does not rewrite the rows.

Bools = npt.NDArray[np.bool_]
Slice = tuple[int, int]

_SIDES = 2
"""Added to the side in the keys of bits, which stand in the map of the rows."""


class MatchedBits:
    """The bits of a group, read when they are needed and written by :meth:`save`.

    Parameters
    ----------
    store : MapStore
        By side, number of the slice and number of the part, as that of the rows; bits have one
        part.
    """

    def __init__(self, store: MapStore) -> None:
        self._store = store
        self._bits: dict[Slice, Bools] = {}
        self._changed: set[Slice] = set()

    def of(self, place: Slice, count: int) -> Bools:
        """Return the bits of a slice of ``count`` rows."""
        if place not in self._bits:
            self._bits[place] = self._read(place, count)
        return self._bits[place]

    def mark(self, place: Slice, matched: Bools) -> None:
        """Some rows of a slice have matched."""
        bits = self.of(place, len(matched))
        if (matched & ~bits).any():
            self._bits[place] = bits | matched
            self._changed.add(place)

    def add(self, place: Slice, before: int, matched: Bools) -> None:
        """A slice of ``before`` rows has got more."""
        old = self.of(place, before) if before else np.zeros(0, np.bool_)
        self._bits[place] = np.concatenate([old, matched])
        self._changed.add(place)

    def remove(self, place: Slice) -> None:
        """A slice has gone."""
        self._store.removeKey(_key(place))
        self._bits.pop(place, None)
        self._changed.discard(place)

    def save(self) -> None:
        """Write what has changed."""
        for place in sorted(self._changed):
            self._store.updateValue(_key(place), (np.packbits(self._bits[place]).tobytes(),))
        self._changed.clear()

    def _read(self, place: Slice, count: int) -> Bools:
        value = self._store.getValue(_key(place))
        if value is None:
            raise RuntimeError(f"The state store has lost the bits of slice {place} of a group")
        blob = value[0]
        assert isinstance(blob, (bytes, bytearray))
        packed = np.frombuffer(bytes(blob), np.uint8)
        return np.unpackbits(packed, count=count).astype(np.bool_)


def _key(place: Slice) -> tuple[int, int, int]:
    return place[0] + _SIDES, place[1], 0


# The kept rows of a group in Spark's state store: a directory, and the blobs of slices of time.
#
# A micro-batch reads the slices that its rows can meet, appends its rows to the slices that they
# fall into, and removes the slices that no row can meet any more; the others are not touched. A
# slice has parts, a blob each. Rows are appended as a new part, unless the last part is small:
# that one is rewritten, so that small micro-batches do not leave many small blobs. Where rows
# come alone, the rows of a slice are needed again when it goes. Parts that the worker holds are
# not read (:mod:`~spark_offload.stream.reduction`).


def move_timer(timers: Timers, before: int, timer: int, fired: int | None) -> None:
    """Set the timer of a group, zero for none, where there was another one or none.

    Parameters
    ----------
    fired : int, optional
        The timer that has just gone off, which Spark removes by itself.
    """
    if timer == before:
        return
    if before not in (0, fired):
        timers.deleteTimer(before)
    if timer:
        timers.registerTimer(timer)


PART_ROWS = 4096
"""Rows of a part from which on it is not rewritten any more."""


class _Listed(NamedTuple):
    """What the directory tells of a part."""

    rows: int
    identity: int


class WindowState:
    """The kept rows of the group that Spark is calling for; to be made anew for every call.

    Parameters
    ----------
    task : StreamTask
        What is joined.
    directory : ValueStore
        ``length, timer, slices``: microseconds of a slice, the timer that is set (0: none), and
        side, number of the slice, rows and identity of every part, the parts of a slice in their
        order.
    rows : MapStore
        The blobs by side, number of the slice and number of the part.
    timers : Timers
        Where the timer is set that removes rows although none come.
    held : GroupParts, optional
        Parts that the worker holds; those of this state are added, and others are removed.

    Attributes
    ----------
    stored, expired : int
        Rows added and removed so far.
    read_rows : int
        Rows read from the store so far.
    alone : list of (int, Table)
        Side and rows, removed so far, that come alone by the type of the join.
    """

    def __init__(
        self,
        task: StreamTask,
        directory: ValueStore,
        rows: MapStore,
        timers: Timers,
        held: GroupParts | None = None,
    ) -> None:
        self._task = task
        self._directory = directory
        self._rows = rows
        self._timers = timers
        self._held = {} if held is None else held
        self._slices: dict[Slice, list[_Listed]] = {}
        self._length, self._timer = task.slice_length, 0
        found = directory.get()
        if found is not None:
            length, timer, slices = found
            assert isinstance(length, int)
            assert isinstance(timer, int)
            assert isinstance(slices, (bytes, bytearray))
            self._length, self._timer = length, timer
            for side, number, *listed in np.frombuffer(slices, np.int64).reshape(-1, 4).tolist():
                self._slices.setdefault((side, number), []).append(_Listed(*listed))
        self._bits = MatchedBits(rows)
        self._near: dict[int, list[Slice]] = {}
        self.stored = 0
        self.expired = 0
        self.read_rows = 0
        self.alone: list[tuple[int, pa.Table]] = []

    def near(self, side: int, span: tuple[int, int] | None) -> list[KeptPart]:
        """Return the parts of all slices that overlap a span of microseconds."""
        near: list[Slice] = []
        self._near[side] = near
        if span is not None:
            first, last = span[0] // self._length, span[1] // self._length
            for of_side, number in sorted(self._slices):
                if of_side == side and first <= number <= last:
                    near.append((side, number))
        return [part for place in near for part in self._parts(place)]

    def mark(self, side: int, matched: Bools) -> None:
        """Of the rows that :meth:`near` returned, some have matched."""
        if not self._tracks(side):
            return
        begin = 0
        for place in self._near[side]:
            end = begin + self._count(place)
            self._bits.mark(place, matched[begin:end])
            begin = end

    def add(self, side: int, rows: pa.Table, matched: Bools) -> None:
        """Keep rows of one side, of which some have matched."""
        if not rows.num_rows:
            return
        numbers = microseconds(rows, self._task.order(side)) // self._length
        order = np.argsort(numbers, kind="stable")
        rows, matched = rows.take(pa.array(order)).combine_chunks(), matched[order]
        found, begins = np.unique(numbers[order], return_index=True)
        ends = [*begins[1:].tolist(), len(numbers)]
        for number, begin, end in zip(found.tolist(), begins.tolist(), ends, strict=True):
            place = (side, number)
            parts = self._slices.setdefault(place, [])
            if self._tracks(side):
                self._bits.add(place, self._count(place), matched[begin:end])
            added = rows.slice(begin, end - begin)
            if parts and parts[-1].rows < PART_ROWS:
                added = pa.concat_tables([self._part(place, len(parts) - 1).rows, added])
                parts.pop()
            self._append(place, added.combine_chunks())
        self.stored += rows.num_rows

    def _append(self, place: Slice, rows: pa.Table) -> None:
        """Write rows as the last part of a slice."""
        parts = self._slices[place]
        blob = to_blob(rows.to_batches(), self._task.schema(place[0]))
        self._rows.updateValue((*place, len(parts)), (blob,))
        parts.append(_Listed(rows.num_rows, identity_of(blob)))
        # From the bytes: a slice of the rows would keep all rows of the micro-batch.
        self._hold(place[0], parts[-1], blob)

    def expire(self, watermark: int) -> None:
        """Remove the slices whose rows are all older than ``watermark - width``, microseconds."""
        for place in [place for place in self._slices if self._end(place) <= watermark]:
            parts = self._slices[place]
            if self._tracks(place[0]):
                self._leave(place)
            for part in range(len(parts)):
                self._rows.removeKey((*place, part))
            del self._slices[place]
            self.expired += sum(part.rows for part in parts)

    def _tracks(self, side: int) -> bool:
        return self._task.query.how.tracks(Side(side))

    def _leave(self, place: Slice) -> None:
        """Find the rows of a slice that come alone, now that nothing can match them."""
        wanted = self._bits.of(place, self._count(place)) == self._task.query.how.wants_matched
        self._bits.remove(place)
        if wanted.any():
            rows = pa.concat_tables([part.rows for part in self._parts(place)])
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
        move_timer(self._timers, self._timer, timer, fired)
        if self._slices:
            table = [
                [*place, *part] for place, parts in sorted(self._slices.items()) for part in parts
            ]
            slices = np.array(table, np.int64).tobytes()
            self._directory.update((self._length, timer, slices))
        else:
            self._directory.clear()
        self._timer = timer
        listed = {
            (side, part.identity) for (side, _), parts in self._slices.items() for part in parts
        }
        for key in self._held.keys() - listed:
            del self._held[key]

    def _end(self, place: Slice) -> int:
        """Return the watermark from which on no row can meet one of this slice."""
        return (place[1] + 1) * self._length + self._task.width

    def _count(self, place: Slice) -> int:
        return sum(part.rows for part in self._slices[place])

    def _parts(self, place: Slice) -> list[KeptPart]:
        return [self._part(place, number) for number in range(len(self._slices[place]))]

    def _part(self, place: Slice, number: int) -> KeptPart:
        """Return a part, read from the store unless the worker holds it."""
        side, listed = place[0], self._slices[place][number]
        held = self._held.get((side, listed.identity))
        if held is not None:
            return held
        value = self._rows.getValue((*place, number))
        if value is None:
            raise RuntimeError(
                f"The state store has lost part {number} of slice {place} of a group"
            )
        blob = value[0]
        assert isinstance(blob, (bytes, bytearray))
        self.read_rows += listed.rows
        return self._hold(side, listed, bytes(blob))

    def _hold(self, side: int, listed: _Listed, blob: bytes) -> KeptPart:
        """Return the rows of a part, which the worker holds from now on."""
        schema = self._task.schema(side)
        part = KeptPart(whole_table(from_blob(blob, schema), schema))
        self._held[side, listed.identity] = part
        return part
