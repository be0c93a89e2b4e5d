# SPDX-License-Identifier: Apache-2.0
"""As-of joins of Arrow rows: as two tables, and as pieces whose left rows leave when decided."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.columns import EncodedSide, encode
from host.columns.codes import numbered
from host.columns.kinds import ColumnType, column_type, contiguous, integer_view
from host.columns.scale import bound_in_ticks, common_tick
from host.columns.times import OrderCheck, TimePlan, require_temporal
from host.devices.software import SOFTWARE_MANIFEST
from host.engine.asof import AsofSearch, Times
from host.errors import UsageError
from host.protocol.manifest import Manifest
from host.query.queries import AsofQuery
from host.query.tables import output_schema
from host.reference.asof import Direction
from host.reference.types import NO_ROW, JoinType
from host.reference.window import TimeWindow

__all__ = [
    "AsofSides",
    "AsofStream",
    "encode_sides",
    "joined_rows",
    "require_tolerance",
]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

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

_LAST = np.uint64((1 << 64) - 1)


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
    all_times : tuple of array of uint64
        Times of all rows of either table, in the order of time.
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
    all_times: tuple[UInt64s, UInt64s]
    search: AsofSearch
    plan: TimePlan

    def mirrored(self) -> "AsofSides":
        """Return a search ahead as one that looks back, in a time that runs backwards.

        Rows of one time are in the opposite order too.
        """

        def turned(times: Times) -> Times:
            keys = None if times.key is None else times.key[::-1]
            return Times(_LAST - times.time[::-1], keys)

        return replace(
            self,
            row=self.row[::-1],
            keyed=(len(self.row) - 1 - self.keyed)[::-1],
            right_row=self.right_row[::-1],
            left=turned(self.left),
            right=turned(self.right),
            all_times=(_LAST - self.all_times[0][::-1], _LAST - self.all_times[1][::-1]),
            search=replace(self.search, direction=Direction.BACKWARD),
        )

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


def encode_sides(left: pa.Table, right: pa.Table, query: AsofQuery) -> AsofSides:
    """Return the times and keys of two tables.

    Raises
    ------
    UsageError
        If the query does not suit the tables; see :class:`host.operators.asof_tables.AsofJoin`.
    """
    # Key fields of 64 bits hold whatever can be compared.
    encoded = encode(left, right, query.pairs, Manifest.load(SOFTWARE_MANIFEST))
    keyed = _with_keys(encoded.left), _with_keys(encoded.right)
    fields = [
        (encoded.left.keys[name][keyed[0]], encoded.right.keys[name][keyed[1]])
        for name in encoded.left.keys
    ]
    keys: tuple[Int64s | None, Int64s | None] = (None, None)
    if fields:
        codes = numbered(fields)
        keys = codes.left.astype(np.int64), codes.right.astype(np.int64)
    times = encoded.left.timestamp, encoded.right.timestamp
    return AsofSides(
        encoded.left.row,
        keyed[0],
        encoded.right.row[keyed[1]],
        Times(times[0][keyed[0]], keys[0]),
        Times(times[1][keyed[1]], keys[1]),
        times,
        AsofSearch(
            query.direction,
            encoded.plan.window.lifespan if isinstance(encoded.plan.window, TimeWindow) else None,
            query.allow_exact_matches,
        ),
        encoded.plan.times,
    )


def require_tolerance(left: pa.Schema, query: AsofQuery) -> None:
    """Raise if the tolerance is no length of the left column of time.

    Raises
    ------
    UsageError
        If a number is given for a temporal column, or a duration for another one.
    """
    time = column_type(left, query.time[0], "left")
    require_temporal(time)
    bound_in_ticks(query.within, time, time.tick, "The distance")


def _with_keys(side: EncodedSide) -> Int64s:
    """Return which tuples of a side have no null in a key."""
    if side.valid is None:
        return np.arange(len(side))
    return np.flatnonzero(side.valid)


# The as-of join of rows that come in pieces: each left row leaves when no row can change it.
#
# Between two pieces two things are kept: left rows that a row to come could still be joined with,
# and right rows that a waiting left row or one to come could still be joined with.

#: Rows of a side from which on a piece is joined.
PIECE = 1 << 18
#: No time is later.
_END = (1 << 64) - 1


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
        require_tolerance(left, query)
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
        NullOrderError, DisorderError
            If a time is null, or earlier than one before it.
        """
        columns = [
            column_type(schema, name, side)
            for schema, name, side in zip(
                (self.waiting.schema, self.kept.schema), self.query.time, ("left", "right"),
                strict=True,
            )
        ]  # fmt: skip
        heads = [
            _Head(rows, schema, column)
            for rows, schema, column in zip(
                (left, right), (self.waiting.schema, self.kept.schema), columns, strict=True
            )
        ]
        factors = common_tick(columns[0], columns[1])[1]
        while True:
            for head in heads:
                head.fill()
            limits = [
                head.last * factor
                for head, factor in zip(heads, factors, strict=True)
                if not head.at_end
            ]
            if not limits:
                break
            # No row to come has an earlier time than the least of the last ones.
            pieces = [
                head.until(min(limits) // factor)
                for head, factor in zip(heads, factors, strict=True)
            ]
            found = self.rows_in_order(*pieces)
            if found.num_rows:
                yield found
        yield self.last_rows(*(head.rows for head in heads))

    def rows_in_order(self, left: pa.Table, right: pa.Table) -> pa.RecordBatch:
        """Take the next rows of inputs in the order of time; return what is decided.

        No row that comes later may have an earlier time than any row of this piece; or a later one,
        backwards.
        """
        return self._decide(left, right, lambda sides: max(map(_latest, sides.all_times)))

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
        sides = encode_sides(left, right, self.query)
        if self._backwards:
            sides = sides.mirrored()
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
    """The next rows of an input in the order of time."""

    def __init__(
        self, rows: Iterable[pa.RecordBatch], schema: pa.Schema, column: ColumnType
    ) -> None:
        self._batches, self._column = iter(rows), column
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
        """The last time."""
        return int(self._times()[-1])

    def until(self, time: int) -> pa.Table:
        """Remove and return the rows up to a time."""
        times = self._times()
        info = np.iinfo(times.dtype)
        bound = times.dtype.type(min(time, int(info.max)))
        count = 0 if time < info.min else int(np.searchsorted(times, bound, side="right"))
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        return taken

    def _times(self) -> npt.NDArray[Any]:
        column = contiguous(self.rows.column(self._column.column))
        return integer_view(self._column.comparable(column))


def _latest(times: UInt64s) -> int:
    """Return the latest time, -1 if there is none."""
    return int(times[-1]) if len(times) else -1
