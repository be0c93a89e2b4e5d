# SPDX-License-Identifier: Apache-2.0
"""The kept rows of a group: in Spark's state store, held by workers, and which have matched."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

from host.arrays import Bools
from host.reference.arrivals import Side
from spark_offload.stream.task import StreamTask, from_blob, microseconds, to_blob, whole_table

__all__ = [
    "GroupParts",
    "HELD",
    "HeldParts",
    "KeptPart",
    "MatchedBits",
    "WindowState",
    "move_timer",
]

# Parts of kept rows that a Python worker still holds from an earlier micro-batch.
#
# The state store is what counts, and this is a cache of it. The directory of a group lists an
# identity for each part, a digest of its bytes. A part that is held is believed only if the
# directory, as Spark has just read it, lists its identity. So a task that runs again after a
# failure, moves to another worker, or goes back to an earlier version of the state has the same
# rows: it reads the parts that its worker does not hold.

MOST_BYTES = 1 << 28
"""Bytes of rows that a worker holds from one micro-batch to the next, at most."""


def identity_of(blob: bytes) -> int:
    """Return the identity of a part: 64 bits of a digest of its bytes, as a signed number."""
    return int.from_bytes(blake2b(blob, digest_size=8).digest(), "little", signed=True)


class KeptPart:
    """Rows of one side, in the order in which they came, and what is found out of them once.

    Parameters
    ----------
    rows : Table
        The rows, which are not changed.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.bytes = rows.nbytes
        self._found: list[Any] = []

    def once(self, find: Callable[[pa.Table], Any]) -> Any:
        """Return what a function finds of the rows, which is always the same one."""
        if not self._found:
            self._found.append(find(self.rows))
        return self._found[0]


GroupParts: TypeAlias = dict[tuple[int, int], KeptPart]
"""Parts of a group by their side and identity; both sides may have the same bytes."""


class HeldParts:
    """The parts that a worker holds, by query and group.

    Parameters
    ----------
    most_bytes : int
        Bytes of rows that are held, at most, between two groups.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._groups: OrderedDict[tuple[str, int], GroupParts] = OrderedDict()

    def of(self, query: str, group: int) -> GroupParts:
        """Return the parts of a group, to be changed in place."""
        parts = self._groups.setdefault((query, group), {})
        self._groups.move_to_end((query, group))
        return parts

    def trim(self) -> None:
        """Let go of the groups that have not been used for the longest time, if there is need."""
        sizes = {
            place: sum(part.bytes for part in parts.values())
            for place, parts in self._groups.items()
        }
        total = sum(sizes.values())
        for place, size in sizes.items():
            if total <= self._most_bytes and size:
                break
            total -= size
            del self._groups[place]


HELD = HeldParts()
"""What the Python worker at hand holds."""


# Which kept rows have matched: a bit each, in the state beside the slices of rows.
#
# The bits of a slice are a value of their own, so that marking a row does not rewrite the rows.

Slice = tuple[int, int]

_SIDES = 2
"""Added to the side in the keys of bits, which stand in the map of the rows."""


class MatchedBits:
    """The bits of a group, read when they are needed and written by :meth:`save`.

    Parameters
    ----------
    store : MapState
        By side, number of the slice and number of the part, as that of the rows; bits have one
        part.
    """

    def __init__(self, store: MapState) -> None:
        self._store = store
        self._bits: dict[Slice, Bools] = {}
        self._changed: set[Slice] = set()

    def of(self, place: Slice, count: int) -> Bools:
        """Return the bits of a slice of ``count`` rows."""
        if place not in self._bits:
            value = self._store.getValue(_key(place))
            if value is None:
                raise RuntimeError(f"The state store has lost the bits of slice {place} of a group")
            packed = np.frombuffer(bytes(value[0]), np.uint8)
            self._bits[place] = np.unpackbits(packed, count=count).astype(np.bool_)
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


def _key(place: Slice) -> tuple[int, int, int]:
    return place[0] + _SIDES, place[1], 0


# The kept rows of a group in Spark's state store: a directory, and the blobs of slices of time.
#
# A micro-batch reads the slices that its rows can meet, appends its rows to the slices that they
# fall into, and removes the slices that no row can meet any more; the others are not touched. A
# slice has parts, a blob each. Rows are appended as a new part, unless the last part is small:
# that one is rewritten, so that small micro-batches do not leave many small blobs. Where rows
# come alone, the rows of a slice are needed again when it goes. Parts that the worker holds are
# not read.


def move_timer(timers: StatefulProcessorHandle, before: int, timer: int, fired: int | None) -> None:
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


@dataclass(eq=False)
class WindowState:
    """The kept rows of the group that Spark is calling for; to be made anew for every call.

    Parameters
    ----------
    task : StreamTask
        What is joined.
    directory : ValueState
        ``length, timer, slices``: microseconds of a slice, the timer that is set (0: none), and
        side, number of the slice, rows and identity of every part, the parts of a slice in their
        order.
    rows : MapState
        The blobs by side, number of the slice and number of the part.
    timers : StatefulProcessorHandle
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

    task: StreamTask
    directory: ValueState
    rows: MapState
    timers: StatefulProcessorHandle
    held: GroupParts = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._slices: dict[Slice, list[_Listed]] = {}
        self._length, self._timer = self.task.slice_length, 0
        found = self.directory.get()
        if found is not None:
            length, timer, slices = found
            self._length, self._timer = length, timer
            for side, number, *listed in np.frombuffer(slices, np.int64).reshape(-1, 4).tolist():
                self._slices.setdefault((side, number), []).append(_Listed(*listed))
        self._bits = MatchedBits(self.rows)
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
        numbers = microseconds(rows, self.task.times[side]) // self._length
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
        blob = to_blob(rows.to_batches(), self.task.schema(place[0]))
        self.rows.updateValue((*place, len(parts)), (blob,))
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
                self.rows.removeKey((*place, part))
            del self._slices[place]
            self.expired += sum(part.rows for part in parts)

    def _tracks(self, side: int) -> bool:
        return self.task.query.how.tracks(Side(side))

    def _leave(self, place: Slice) -> None:
        """Find the rows of a slice that come alone, now that nothing can match them."""
        wanted = self._bits.of(place, self._count(place)) == self.task.query.how.wants_matched
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
        move_timer(self.timers, self._timer, timer, fired)
        if self._slices:
            table = [
                [*place, *part] for place, parts in sorted(self._slices.items()) for part in parts
            ]
            slices = np.array(table, np.int64).tobytes()
            self.directory.update((self._length, timer, slices))
        else:
            self.directory.clear()
        self._timer = timer
        listed = {
            (side, part.identity) for (side, _), parts in self._slices.items() for part in parts
        }
        for key in self.held.keys() - listed:
            del self.held[key]

    def _end(self, place: Slice) -> int:
        """Return the watermark from which on no row can meet one of this slice."""
        return (place[1] + 1) * self._length + self.task.width

    def _count(self, place: Slice) -> int:
        return sum(part.rows for part in self._slices[place])

    def _parts(self, place: Slice) -> list[KeptPart]:
        return [self._part(place, number) for number in range(len(self._slices[place]))]

    def _part(self, place: Slice, number: int) -> KeptPart:
        """Return a part, read from the store unless the worker holds it."""
        side, listed = place[0], self._slices[place][number]
        held = self.held.get((side, listed.identity))
        if held is not None:
            return held
        value = self.rows.getValue((*place, number))
        if value is None:
            raise RuntimeError(
                f"The state store has lost part {number} of slice {place} of a group"
            )
        blob = value[0]
        self.read_rows += listed.rows
        return self._hold(side, listed, bytes(blob))

    def _hold(self, side: int, listed: _Listed, blob: bytes) -> KeptPart:
        """Return the rows of a part, which the worker holds from now on."""
        schema = self.task.schema(side)
        part = KeptPart(whole_table(from_blob(blob, schema), schema))
        self.held[side, listed.identity] = part
        return part
