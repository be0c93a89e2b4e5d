# SPDX-License-Identifier: Apache-2.0
"""As-of joins of Arrow rows: as two tables, on a device too, and in pieces as rows are decided."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from host.arrays import Array, Int64s
from host.columns.codes import numbered
from host.columns.encoding import encode
from host.columns.kinds import (
    ColumnType,
    bound_in_ticks,
    column_type,
    common_tick,
    contiguous,
    integer_view,
)
from host.columns.times import OrderCheck, TimePlan, require_temporal
from host.devices import Device
from host.devices.software import SOFTWARE_MANIFEST
from host.engine.asof import AsofSearch, SortedRows, Times, places
from host.errors import AcceleratorLimitError, UsageError
from host.protocol.manifest import Manifest
from host.query.ordering import Ordering
from host.query.queries import AsofQuery, Query
from host.query.tables import output_schema, without_views
from host.reference.arrivals import Side
from host.reference.asof import reference_asof
from host.reference.types import NO_ROW, Direction, JoinType
from host.reference.window import TimeWindow
from host.session.cores import failed_cores
from host.session.join import Join
from host.session.params import Progress

__all__ = [
    "AsofJoin",
    "AsofSides",
    "AsofStream",
    "DeviceRows",
    "encode_sides",
    "joined_rows",
]

#: No time is later.
_END = (1 << 64) - 1

# Put rows of two tables side by side.


def joined_rows(
    tables: tuple[pa.Table, pa.Table], numbers: tuple[Int64s, Int64s], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the given rows of two tables as one batch.

    Parameters
    ----------
    tables : tuple of pa.Table
        The left and the right table.
    numbers : tuple of array of int64
        Row numbers of each; ``NO_ROW`` for nulls.
    schema : pa.Schema
        Schema of the batch: the left columns, then the right ones.
    """
    columns = []
    for table, rows in zip(tables, numbers, strict=True):
        missing = rows == NO_ROW
        places = pa.array(rows, mask=missing if missing.any() else None)
        columns += [contiguous(column) for column in table.take(places).columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# Two tables as the times and keys of an as-of join.


@dataclass(frozen=True, eq=False)
class AsofSides:
    """Two tables as times and keys.

    A row with a null in a key is joined with nothing. Such rows have no key here.

    Parameters
    ----------
    row : array of int64
        Row numbers of the left table, in the order of time.
    keyed : array of int64
        Positions in ``row`` of the rows with a key.
    right_row : array of int64
        Row numbers of the right rows with a key, in the order of time.
    left, right : Times
        Times and keys of ``row[keyed]`` and of ``right_row``.
    latest : int
        The latest time of all rows of both tables; -1 if there are none.
    search : AsofSearch
        What is looked for, with a tolerance in units of the times.
    plan : TimePlan
        How values of the columns become times.
    """

    row: Int64s
    keyed: Int64s
    right_row: Int64s
    left: Times
    right: Times
    latest: int
    search: AsofSearch
    plan: TimePlan

    def joined(self, found: Int64s, first: int = 0) -> tuple[Int64s, Int64s]:
        """Return the rows of the left table up to where these tuples end, and their right rows.

        Rows without a key come before the next row that has one.

        Parameters
        ----------
        found : array of int64
            The tuple of ``right`` for some consecutive tuples of ``left``, ``NO_ROW`` for none.
        first : int
            The first of these tuples. The rows up to it have been returned.
        """
        end = first + len(found)
        begins = int(self.keyed[first]) if first else 0
        ends = int(self.keyed[end]) if end < len(self.keyed) else len(self.row)
        numbers = np.full(ends - begins, NO_ROW, np.int64)
        there = found != NO_ROW
        numbers[self.keyed[first:end][there] - begins] = self.right_row[found[there]]
        return self.row[begins:ends], numbers


def encode_sides(
    left: pa.Table, right: pa.Table, query: AsofQuery, *, backwards: bool = False
) -> AsofSides:
    """Return the times and keys of two tables.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : AsofQuery
        The join.
    backwards : bool
        Whether time runs backwards, in which a search ahead is one that looks back. Rows of one
        time are in the opposite order too.

    Raises
    ------
    UsageError
        If the query does not suit the tables; see :class:`AsofJoin`.
    """
    time = column_type(left.schema, query.time[0], "left")
    require_temporal(time)
    bound_in_ticks(query.within, time, time.tick, "The distance")
    # Key fields of 64 bits hold whatever can be compared.
    encoded = encode(left, right, query.pairs, Manifest.load(SOFTWARE_MANIFEST))
    turn, direction = (-1, Direction.BACKWARD) if backwards else (1, query.direction)
    sides: list[tuple[Any, ...]] = []
    latest = -1
    for side in (encoded.left, encoded.right):
        times = np.uint64(_END) - side.timestamp[::turn] if backwards else side.timestamp
        latest = max(latest, int(times[-1]) if len(times) else -1)
        keyed = np.arange(len(side))
        own = [side.row[::turn], times, *(key[::turn] for key in side.keys.values())]
        if side.valid is not None:
            keyed = np.flatnonzero(side.valid[::turn])
            own = [values[keyed] for values in own]
        sides.append((keyed, *own))
    (keyed, _, times, *fields), (_, right_row, right_times, *right_fields) = sides
    keys: tuple[Int64s | None, Int64s | None] = (None, None)
    if fields:
        codes = numbered(list(zip(fields, right_fields, strict=True)))
        keys = codes.left.view(np.int64), codes.right.view(np.int64)
    return AsofSides(
        encoded.left.row[::turn],
        keyed,
        right_row,
        Times(times, keys[0]),
        Times(right_times, keys[1]),
        latest,
        AsofSearch(
            direction,
            encoded.plan.window.lifespan if isinstance(encoded.plan.window, TimeWindow) else None,
            query.allow_exact_matches,
        ),
        encoded.plan.times,
    )


# The as-of join of rows that come in pieces: each left row leaves when no row can change it.
#
# Between two pieces two things are kept: left rows that a row to come could still be joined with,
# and right rows that a waiting left row or one to come could still be joined with.

#: Rows of a side from which on a piece is joined.
PIECE = 1 << 18


class AsofStream:
    """An as-of join whose rows come in pieces.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of the inputs.
    query : AsofQuery
        The join.
    ordered : bool
        Whether results come in the order of the left rows' times. A row that can still change then
        holds up the later ones.
    backwards : bool
        Whether pieces come from the latest to the earliest, the rows of each in their usual order,
        and results too, the latest row first. This suits a join that looks ahead: in a time that
        runs backwards it looks back, so no row has to wait for a later one.

    Attributes
    ----------
    query : AsofQuery
        The join.
    schema : pa.Schema
        Schema of the results: the left columns, then the right ones.
    waiting : pa.Table
        Left rows whose right row is not decided yet.
    kept : pa.Table
        Right rows that left rows can still be joined with.

    Raises
    ------
    UsageError
        If the query does not suit the columns.
    """

    def __init__(
        self,
        left: pa.Schema,
        right: pa.Schema,
        query: AsofQuery,
        *,
        ordered: bool = True,
        backwards: bool = False,
    ) -> None:
        if backwards and query.direction is not Direction.FORWARD:
            raise UsageError(
                f"Only a join that looks forward takes rows backwards, not {query.direction.value}."
            )
        self.schema = output_schema(left, right, query.suffix, query.how)
        self.waiting = left.empty_table()
        self.kept = right.empty_table()
        self.query = query
        self._ordered = ordered
        self._backwards = backwards
        encode_sides(self.waiting, self.kept, query)  # raises if the columns do not suit

    def batches(
        self, left: Iterable[pa.RecordBatch], right: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Take all rows of both sides, each in the order of time; yield what is decided.

        Raises
        ------
        OrderError
            If a time is null, or earlier than one before it.
        """
        schemas, names = (self.waiting.schema, self.kept.schema), self.query.time
        columns = list(map(column_type, schemas, names, ("left", "right")))
        factors = common_tick(columns[0], columns[1])[1]
        heads = list(map(_Head, (left, right), schemas, columns, factors))
        while True:
            for head in heads:
                head.fill()
            limits = [head.last for head in heads if not head.at_end]
            if not limits:
                break
            # No row to come has an earlier time than the least of the last ones.
            found = self.rows_in_order(*(head.until(min(limits)) for head in heads))
            if found.num_rows:
                yield found
        yield self.last_rows(*(head.rows for head in heads))

    def rows_in_order(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the next rows of inputs in the order of time; return what is decided.

        No row that comes later may have an earlier time than any row of this piece; or a later one,
        backwards.
        """
        return self._decide(left, right, lambda sides: sides.latest)

    def rows_until(self, left: pa.Table, right: pa.Table, time: object) -> pa.RecordBatch:
        """Take more rows in any order; return what is decided.

        No row that comes later may have an earlier time than ``time``, a value of the left column
        of time.
        """

        def reached(sides: AsofSides) -> int:
            # Rounded down, which decides later at worst. A time before all rows decides nothing.
            plan = sides.plan
            return (plan.ticks(time) - (plan.origin or 0)) // plan.divisor

        return self._decide(left, right, reached)

    def last_rows(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the last rows, in any order; return all that is left."""
        return self._decide(left, right, None)

    def _decide(
        self, left: pa.Table, right: pa.Table, reached: Callable[[AsofSides], int] | None
    ) -> pa.RecordBatch:
        """Join all rows at hand; return the decided ones, and keep what is needed of the others."""
        # In input order, which is what counts among rows of one time.
        turn = -1 if self._backwards else 1
        left = pa.concat_tables([self.waiting, left][::turn])
        right = pa.concat_tables([self.kept, right][::turn])
        sides = encode_sides(left, right, self.query, backwards=self._backwards)
        found = sides.search.rows(sides.left, sides.right)
        time = _END if reached is None else min(reached(sides), _END)
        decided = np.ones(len(sides.row), np.bool_)
        if reached is not None:
            decided[sides.keyed] = sides.search.settled(sides.left, sides.right, found, time)
            if self._ordered:
                decided = np.logical_and.accumulate(decided)
        rows, numbers = sides.joined(found)
        given = decided & (numbers != NO_ROW) if self.query.how is JoinType.INNER else decided
        batch = joined_rows((left, right), (rows[given], numbers[given]), self.schema)
        self.waiting = left.take(pa.array(rows[~decided][::turn])).combine_chunks()
        kept = sides.right_row[:0]
        if reached is not None:
            waiting = ~decided[sides.keyed]
            kept = sides.right_row[sides.search.needed(sides.left, sides.right, waiting, time)]
        self.kept = right.take(pa.array(kept[::turn])).combine_chunks()
        return batch


class _Head:
    """The next rows of an input in the order of time, of which a unit has so many ticks."""

    def __init__(
        self, rows: Iterable[pa.RecordBatch], schema: pa.Schema, column: ColumnType, ticks: int
    ) -> None:
        self._batches, self._column, self._ticks = iter(rows), column, ticks
        self._check = OrderCheck(column)
        self.rows, self.at_end = schema.empty_table(), False

    def fill(self) -> None:
        """Read on, until there are enough rows for a piece or no more of them."""
        parts, count = [self.rows], self.rows.num_rows
        while not self.at_end and count < PIECE:
            batch = next(self._batches, None)
            if batch is None:
                self.at_end = True
            else:
                self._check.see(batch)
                parts.append(pa.Table.from_batches([batch], self.rows.schema))
                count += batch.num_rows
        self.rows = pa.concat_tables(parts)

    @property
    def last(self) -> int:
        """The last time, in ticks."""
        return int(self._times()[-1]) * self._ticks

    def until(self, time: int) -> pa.Table:
        """Remove and return the rows up to a time in ticks."""
        times, time = self._times(), time // self._ticks
        info = np.iinfo(times.dtype)
        bound = times.dtype.type(min(time, int(info.max)))
        count = 0 if time < info.min else int(np.searchsorted(times, bound, side="right"))
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        return taken

    def _times(self) -> Array:
        column = contiguous(self.rows.column(self._column.column))
        return integer_view(self._column.comparable(column))


# Find the right row of every left row on a device: one side is stored, the other one probes.
#
# Both sides go through the device in the order of time. The window of the right rows is as large
# as the tolerance needs, and a left row's search ends with the newest row of its key in that
# window. Each core answers with the newest row that it has, and the newest of these is the row
# that is wanted; so as few cores store rows as the window needs. Times themselves stay on the
# host: an order of arrival is all that the device has to know.
#
# Rows ahead are found in the same way, by sending both sides backwards.

#: Keys of left and of right rows, of which either both are there or neither.
Keys: TypeAlias = tuple[Int64s | None, Int64s | None]


class DeviceRows:
    """Finds right rows by a join on a device; see :class:`host.engine.asof.Neighbours`.

    If the rows within the tolerance are more than the device holds, its window is the largest one,
    and the left rows without an answer are looked up on the host. The newest row of the window is
    the newest row of all, so the other answers are right.

    Parameters
    ----------
    left, right : Times
        The rows, both sorted by time; either both sides have keys, or neither.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    tolerance : int, optional
        Largest distance in time. Rows that are farther away need not be found.

    Attributes
    ----------
    device : Device
        The device.
    cycles : int
        Clock cycles that the device has run.
    counters : Counter of str
        Increases of the device's counters.
    window : int
        Right rows in the largest window so far.
    looked_up : int
        Left rows that were looked up on the host, because they had no answer in the device's
        largest window.

    Raises
    ------
    AcceleratorLimitError
        If the device is a chain of cores, in which no core has the newest rows of the window.
    """

    def __init__(
        self, left: Times, right: Times, device: Device, *, tolerance: int | None = None
    ) -> None:
        if device.manifest.chain is not None:
            raise AcceleratorLimitError(
                f"Device {device.uri!r} is a {device.manifest.chain.architecture} join, whose "
                f"tuples meet while they move, and which cannot end a search at the newest match",
                "as-of joins need another bundle, with engine 'index' if they are to be quick",
            )
        self.device = device
        self.cycles = self.window = self.looked_up = 0
        self.counters: Counter[str] = Counter()
        self._left, self._right = left, right
        self._tolerance = None if tolerance is None else np.uint64(min(tolerance, _END))

    def last_before(self, number: Int64s, *, backwards: bool = False) -> Iterator[Int64s]:
        """See :meth:`host.engine.asof.Neighbours.last_before`.

        A part comes when the device has answered its left rows, while it works on later ones.
        """
        left, right = self._left, self._right
        if backwards:
            left, right = left.backwards(), right.backwards()
        first = np.zeros_like(number)  # of the rows within the tolerance
        if self._tolerance is not None:
            earliest = left.time - np.minimum(left.time, self._tolerance)
            first = places(right.time, earliest, after=False)
        needed = int((number - first).max(initial=0))
        parts = self._newest((left.key, right.key), number, needed)
        if needed <= self.device.manifest.capacity:
            yield from parts
            return
        found = np.concatenate(list(parts))
        # The window was smaller than needed: left rows without an answer are looked up here.
        missing = np.flatnonzero(found == NO_ROW)
        self.looked_up += len(missing)
        key = None if left.key is None else left.key[missing]
        rows = SortedRows(Times(left.time[missing], key), right)
        (found[missing],) = rows.last_before(number[missing])
        yield found

    def _newest(self, keys: Keys, number: Int64s, needed: int) -> Iterator[Int64s]:
        """Yield the last row of each left row's key whose number is less than ``number``.

        Parameters
        ----------
        keys : tuple of array of int64 or None
            Keys of the left and of the right rows.
        number : array of int64
            Ascending: how many right rows come before each left row.
        needed : int
            How many of the last ones are wanted in the window; there are fewer if the device
            cannot hold so many.
        """
        found = np.full(len(number), NO_ROW, np.int64)
        if not needed:
            yield found
            return
        window = min(needed, self.device.manifest.capacity)
        # On a tie of places, a stored row comes before a row that probes.
        stored = {"place": np.arange(len(self._right.time))}
        probes = {"place": number - 1}
        on = None
        for columns, key in zip((probes, stored), keys, strict=True):
            if key is not None:
                columns["key"] = key
                on = "key"
        answered = _Answered(number)
        join = Join(
            pa.table(stored),
            pa.table(probes),
            Query(
                on=on, time="place", rows=window,
                ordering=Ordering.none(), sorted=True,
            ),
            self.device,
            newest_of=Side.R,
            epochs=self._epochs(window),
            record=True,
            report=answered.note,
        )  # fmt: skip
        if not join.plan.is_exact:
            count = 1 + max((int(at.max(initial=0)) for at in keys if at is not None), default=0)
            raise AcceleratorLimitError(
                f"The keys have {count} distinct values, which the fields of device "
                f"{self.device.uri!r} do not tell apart, and a search that ends at the newest "
                f"match must",
                f"build a bundle whose first field has {(count - 1).bit_length()} bits, or join "
                f"without a device",
            )
        begin = came = 0
        with closing(join.batches()) as batches:
            for _ in batches:
                row, probe = join.measured.take_pairs()
                came += len(row)
                # The other pairs were found by rows of the right table, which probe as well.
                earlier = row < number[probe]
                np.maximum.at(found, probe[earlier], row[earlier])
                end = answered.left_rows(came)
                if end > begin:
                    yield found[begin:end]
                    begin = end
        self.window = max(self.window, window)
        self.cycles += join.measured.cycles
        self.counters.update(join.counters())
        if begin < len(found):
            yield found[begin:]

    def _epochs(self, window: int) -> list[tuple[int, list[int]]]:
        """Let as few cores store as the window needs, because each that does sends an answer."""
        manifest = self.device.manifest
        live = [n for n in range(manifest.storage.cores) if n not in failed_cores(self.device)]
        fewest = -(-window // manifest.storage.sub_window)
        if fewest >= len(live) or "SEGMENT" not in manifest.operations:
            return []
        return [(0, live[:fewest])]


class _Answered:
    """Tells how many left rows are answered, by what their join reports.

    A report counts pairs that have been decoded, and the reader gets these later.

    Parameters
    ----------
    number : array of int64
        Ascending: how many right rows come before each left row.
    """

    def __init__(self, number: Int64s) -> None:
        # The left rows before it come first as well.
        self._places = number + np.arange(len(number))
        self._reports: deque[Progress] = deque()
        self._arrivals = 0

    def note(self, progress: Progress) -> None:
        """Take a report."""
        self._reports.append(progress)

    def left_rows(self, pairs: int) -> int:
        """Return how many first left rows have all of their pairs among the first ``pairs``."""
        while self._reports and self._reports[0].pairs <= pairs:
            self._arrivals = self._reports.popleft().tuples
        return int(np.searchsorted(self._places, self._arrivals))


# The as-of join of two tables, from Arrow to Arrow.

#: Rows in each batch of the result.
BATCH_ROWS = 1 << 16


class AsofJoin:
    """One as-of join of two tables, checked when it is made.

    Results come in the order of the left rows' times, and in input order where times are equal.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : AsofQuery
        The join.
    device : Device, optional
        An open device that finds the right rows, which nobody else uses meanwhile; it stays open.
        Without one, the host finds them.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the result: the left columns, then the right ones.
    found_by : DeviceRows or None
        What drives the device; it has the cycles and counters once there are :attr:`rows`.

    Raises
    ------
    UsageError
        If a column is missing, has a type that cannot be compared or that gives no order, holds a
        null or a decreasing time where it must not, if the tolerance has the wrong unit, or if the
        device is a chain of cores.
    """

    def __init__(
        self, left: pa.Table, right: pa.Table, query: AsofQuery, device: Device | None = None
    ) -> None:
        self.query = query
        left, right = without_views(left), without_views(right)
        self.schema = output_schema(left.schema, right.schema, query.suffix, query.how)
        self._tables = (left, right)
        self._rows: tuple[Int64s, Int64s] | None = None
        self._sides = sides = encode_sides(left, right, query)
        self.found_by = (
            None
            if device is None
            else DeviceRows(sides.left, sides.right, device, tolerance=sides.search.tolerance)
        )

    @property
    def rows(self) -> tuple[Int64s, Int64s]:
        """Row numbers of both tables in each result; ``NO_ROW`` for a missing right row."""
        for _ in self._parts():
            pass
        assert self._rows is not None
        return self._rows

    def reference_rows(self) -> tuple[Int64s, Int64s]:
        """Return what :attr:`rows` should be, by the reference, which takes a row at a time."""
        left, right = (
            list(zip(at.time.tolist(), _keys_of(at), strict=True))
            for at in (self._sides.left, self._sides.right)
        )
        tolerance, exact = self._sides.search.tolerance, self.query.allow_exact_matches
        found = reference_asof(left, right, self.query.direction, tolerance=tolerance, exact=exact)
        return self._wanted(*self._sides.joined(np.array(found, np.int64)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result as it is found; a device works on meanwhile."""
        for left, right in self._parts():
            for begin in range(0, len(left), BATCH_ROWS):
                part = slice(begin, begin + BATCH_ROWS)
                yield joined_rows(self._tables, (left[part], right[part]), self.schema)

    def table(self) -> pa.Table:
        """Return the result as a table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _parts(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield the row numbers of consecutive results; a second call need not find them again."""
        if self._rows is not None:
            yield self._rows
            return
        parts = []
        first = 0  # of the left tuples of the next part
        sides = self._sides
        for found in sides.search.parts(sides.left, sides.right, self.found_by):
            parts.append(self._wanted(*sides.joined(found, first)))
            yield parts[-1]
            first += len(found)
        left, right = (np.concatenate(side) for side in zip(*parts, strict=True))
        self._rows = left, right

    def _wanted(self, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
        """Return the rows that are results."""
        wanted = (right != NO_ROW) | (self.query.how is not JoinType.INNER)
        return left[wanted], right[wanted]


def _keys_of(side: Times) -> list[int]:
    return [0] * len(side.time) if side.key is None else side.key.tolist()
