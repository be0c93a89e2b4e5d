# SPDX-License-Identifier: Apache-2.0
"""Plan how rows become tuples, and encode tables and batches by the plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from host.arrays import Array, Bools, Int64s, UInt64s
from host.columns.codes import FieldValues
from host.columns.fields import FieldPlan, TermTypes, assigned, rough_terms
from host.columns.key_fields import plan_field
from host.columns.kinds import (
    ColumnType,
    Ranges,
    column_type,
    integer_view,
    one_batch,
    require_same_kind,
    seen_ranges,
    validity,
)
from host.columns.times import (
    OrderCheck,
    TimePlan,
    plan_times,
    require_temporal,
)
from host.protocol.manifest import Manifest
from host.protocol.spread import Spread
from host.query.queries import BOUNDARIES, Query
from host.query.tables import output_schema
from host.reference.predicate import Bounds
from host.reference.types import JoinType
from host.reference.window import CountWindow, Window

if TYPE_CHECKING:
    from host.columns.conditions import BoundCondition
    from host.columns.decided import Decided
    from host.query.conditions import Condition

__all__ = [
    "Arrangement",
    "BatchEncoder",
    "EncodedBatch",
    "EncodedJoin",
    "EncodedSide",
    "EncodingPlan",
    "arrange",
    "encode",
    "joined_schema",
    "plan_streams",
    "plan_tables",
]

# Plan how rows become tuples, from whole tables or from the schemas of streams.


@dataclass(frozen=True)
class EncodingPlan:
    """A query in the terms of one accelerator, and the encoding of the rows of either side.

    Parameters
    ----------
    times : TimePlan
        Encoding of the order columns.
    terms : tuple of TermTypes
        Terms of the query, in its order.
    fields : tuple of FieldPlan
        Encoding of each key field that is used.
    window : CountWindow or TimeWindow
        Window in units of the timestamps, the same for both sides.
    checked : bool
        Whether it is already known that no time is null and that declared orders hold.
    unassigned : tuple of TermTypes
        Terms that no field stands for.
    condition : BoundCondition or None
        What pairs with all terms must fulfil besides, which is found out from their rows.
    decided : Decided or None
        What the predicate of the accelerator decides, if it has one of its own.
    """

    times: TimePlan
    terms: tuple[TermTypes, ...]
    fields: tuple[FieldPlan, ...]
    window: Window
    checked: bool
    unassigned: tuple[TermTypes, ...] = ()
    condition: "BoundCondition | None" = None
    decided: "Decided | None" = None

    @property
    def bounds(self) -> Mapping[str, Bounds]:
        """Bounds by key field; other fields are not bounded."""
        return {field.name: field.bounds for field in self.fields}

    @property
    def spreads(self) -> Mapping[str, Spread]:
        """Known facts about the values, by key field."""
        return {field.name: field.spread for field in self.fields if field.spread is not None}

    @property
    def rough_terms(self) -> tuple[TermTypes, ...]:
        """Terms for which the accelerator may also find pairs that do not satisfy them."""
        return (*rough_terms(self.fields), *self.unassigned)

    @property
    def is_exact(self) -> bool:
        """Whether the pairs with all fields within the bounds are those of the query."""
        return not self.rough_terms and self.condition is None

    @property
    def timed(self) -> bool:
        """Whether the window is time-based."""
        return not isinstance(self.window, CountWindow)

    def columns(self, side: int) -> tuple[str, ...]:
        """Return the columns of one side's table that the encoding reads."""
        named = [self.times.columns[side], *(term.columns[side] for term in self.terms)]
        names = [column.column for column in named]
        if self.decided is not None:
            names += [name for (at, _), name in self.decided.columns.items() if at == side]
        return tuple(dict.fromkeys(names))


def plan_tables(
    left: pa.Table, right: pa.Table, query: Query, manifest: Manifest, *, strict: bool = False
) -> EncodingPlan:
    """Plan the encoding of two whole tables, from the ranges of all of their values.

    Parameters
    ----------
    left, right, query, manifest
        The rows, the join, and that of the accelerator.
    strict : bool
        Whether equalities are exact, so that no pair must be looked at again; too many distinct
        values are then an error.

    Raises
    ------
    UsageError
        If a column is missing or has a type that cannot be compared, if an order column holds a
        null or a decreasing value, or if a time does not fit.
    """
    tables, schemas = (left, right), (left.schema, right.schema)
    types, order = _types(schemas, query), _order(schemas, query)
    ranges = []
    for side, table in enumerate(tables):
        check = OrderCheck(order[side], is_sorted=bool(query.sorted))
        for batch in table.to_batches():
            check.see(batch)
        columns = [order[side], *(term.columns[side] for term in types)]
        ranges.append(seen_ranges(columns, lambda names: table.select(names).to_batches()))
    return _planned(
        schemas, types, query, manifest, (ranges[0], ranges[1]), seen=True, strict=strict
    )


def plan_streams(
    left: pa.Schema,
    right: pa.Schema,
    query: Query,
    manifest: Manifest,
    *,
    ranges: tuple[Ranges, Ranges] = ({}, {}),
) -> EncodingPlan:
    """Plan the encoding of two sorted streams from their schemas.

    Text, and integers of a type that is narrow enough for the field, need no further knowledge. For
    other columns, a range may be given. Without a range that fits, the first values determine the
    origin, and values far from them are allowed: an equality gives them codes, and the pairs of a
    band are checked on the host.

    Parameters
    ----------
    left, right : pa.Schema
        Schemas of the streams.
    query : Query
        The join.
    manifest : Manifest
        Manifest of the accelerator.
    ranges : tuple of mapping of str to ColumnRange or (low, high)
        Ranges of columns of the left and of the right stream; a later value outside is an error.

    Raises
    ------
    UsageError
        If a column is missing or has a type that cannot be compared, or the range of a time does
        not fit.
    """
    schemas = (left, right)
    return _planned(schemas, _types(schemas, query), query, manifest, ranges)


def _planned(
    schemas: tuple[pa.Schema, pa.Schema],
    types: tuple[TermTypes, ...],
    query: Query,
    manifest: Manifest,
    ranges: tuple[Ranges, Ranges],
    *,
    seen: bool = False,
    strict: bool = False,
) -> EncodingPlan:
    """Return the plan from what is known of the columns; see :func:`plan_field`."""
    order = _order(schemas, query)
    require_same_kind(*order)
    times, window = plan_times(order, query, manifest, ranges, seen=seen)
    decided, condition = None, query.rest
    if manifest.is_fixed:  # as few are
        from host.columns.decided import decided_by, plan_decided_fields

        decided = decided_by(manifest, query)
        fields = plan_decided_fields(decided, manifest, schemas)
        _condition(schemas, query.where)  # its types must go together all the same
        others = [term for term in types if term.term in decided.terms]
        condition = query.with_shared(decided.rest)
    else:
        groups = assigned(types, manifest, len(query.where_terms))
        fields = [
            plan_field(field, terms, ranges, seen=seen, strict=strict) for field, terms in groups
        ]
        known = [term for _, terms in groups for term in terms]
        others = [term for term in types if term not in known]
    return EncodingPlan(
        times, types, tuple(fields), window, seen, tuple(others), _condition(schemas, condition),
        decided,
    )  # fmt: skip


def _order(schemas: tuple[pa.Schema, pa.Schema], query: Query) -> tuple[ColumnType, ColumnType]:
    """Return the types of the order columns."""
    left, right = (
        column_type(schema, name, side)
        for schema, name, side in zip(schemas, query.time, ("left", "right"), strict=True)
    )
    require_temporal(left)
    require_temporal(right)
    return left, right


def _types(schemas: tuple[pa.Schema, pa.Schema], query: Query) -> tuple[TermTypes, ...]:
    """Return all terms with the types of their columns."""
    left, right = schemas
    return tuple(
        TermTypes.of(
            term,
            column_type(left, term.left, "left"),
            column_type(right, term.right, "right"),
        )
        for term in query.terms
    )


def _condition(
    schemas: tuple[pa.Schema, pa.Schema], rest: "Condition | None"
) -> "BoundCondition | None":
    """Return what the rows of pairs must fulfil beside the terms."""
    if rest is None:
        return None
    from host.columns.conditions import BoundCondition

    return BoundCondition.of(rest, *schemas)


# Encode the rows of both sides as tuples, batch by batch, with a plan.


@dataclass(frozen=True)
class EncodedBatch:
    """Tuples of one side in their order of arrival.

    Parameters
    ----------
    first : int
        Row number of the first tuple if no row was left out.
    rows : array of int64 or None
        Row number of each tuple if rows were left out.
    times : array of uint64
        Timestamps, which never decrease.
    keys : mapping of str to FieldValues
        Key fields; the value at the place of a null is undefined.
    valid : array of bool or None
        Whether each tuple can match at all, because it has no null; None if all can.
    all_times : array of uint64
        Timestamps of all rows, including those that were left out.
    """

    first: int
    rows: Int64s | None
    times: UInt64s
    keys: Mapping[str, FieldValues]
    valid: Bools | None
    all_times: UInt64s

    def __len__(self) -> int:
        return len(self.times)

    def row_numbers(self, begin: int, end: int) -> Int64s:
        """Return the row numbers of some tuples, counted from the beginning of the stream."""
        if self.rows is None:
            return np.arange(self.first + begin, self.first + end)
        return self.rows[begin:end]


class BatchEncoder:
    """Encoder of the batches of one execution.

    Parameters
    ----------
    plan : EncodingPlan
        Plan of the encoding.
    whole : bool
        Whether rows that cannot match are encoded even if no window depends on them.
    firsts : tuple of int
        Numbers of the first row of either side.
    """

    def __init__(
        self, plan: EncodingPlan, *, whole: bool = False, firsts: tuple[int, int] = (0, 0)
    ) -> None:
        self._plan = plan
        self._whole = whole or not plan.timed
        self._times = plan.times.start()
        self._fields = {field.name: field.start() for field in plan.fields}
        self._rows = list(firsts)  # numbers of the next rows
        self._orders = [
            OrderCheck(column, first)
            for column, first in zip(plan.times.columns, firsts, strict=True)
        ]

    def settle(self, batches: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        """Learn from the first batches, given with their sides, before any of them is encoded.

        The first batches of both sides must be given, unless a side has no rows at all.
        """
        self._times.settle([(side, self._order(side, batch)) for side, batch in batches])
        for field in self._fields.values():
            field.settle(batches)

    def floor(self, ticks: int) -> int:
        """Return the greatest timestamp that is not later than a time; see
        :meth:`host.columns.times.TimeEncoder.floor`.

        The encoder must be settled.
        """
        return self._times.floor(ticks)

    def encode(self, side: int, batch: pa.RecordBatch) -> EncodedBatch:
        """Encode the next rows of one side.

        Raises
        ------
        UsageError
            If a value does not fit, or a time is null or decreases; the error names the row.
        """
        first = self._rows[side]
        values = self._order(side, batch)
        if not self._plan.checked:
            self._orders[side].see(batch)
        times = self._times.encode(side, values, first)
        keys = {name: field.encode(side, batch, first) for name, field in self._fields.items()}
        valid = self._valid(side, batch)
        self._rows[side] += batch.num_rows
        if valid is None or self._whole:
            return EncodedBatch(first, None, times, keys, valid, times)
        # These rows can neither match nor push a tuple out of a time-based window, so they are not
        # sent.
        kept = np.flatnonzero(valid)
        keys = {name: field.of_rows(kept) for name, field in keys.items()}
        return EncodedBatch(first, kept + first, times[kept], keys, None, times)

    def times(self, side: int, batch: pa.RecordBatch) -> tuple[UInt64s, Bools | None]:
        """Return the timestamps of all rows of a table, and which can match; None if all can."""
        return self._times.encode(side, self._order(side, batch), 0), self._valid(side, batch)

    def _order(self, side: int, batch: pa.RecordBatch) -> Array:
        return integer_view(self._plan.times.columns[side].read(batch))

    def _valid(self, side: int, batch: pa.RecordBatch) -> Bools | None:
        masks = [validity(term.columns[side].read(batch)) for term in self._plan.terms]
        if self._plan.decided is not None:
            masks += [validity(batch.column(name)) for name in self._plan.decided.required[side]]
        present = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(present) if present else None


# Encode two tables as two sequences of tuples: sorted, and with the row number of each tuple.


@dataclass(frozen=True)
class EncodedSide:
    """Tuples of one table in their order of arrival.

    Parameters
    ----------
    row : array of int64
        Row number in the table.
    timestamp : array of uint64
        Timestamps, which never decrease.
    keys : mapping of str to array
        Key fields.
    valid : array of bool or None
        Whether each tuple can match at all, because it has no null; None if all can.
    """

    row: Int64s
    timestamp: UInt64s
    keys: Mapping[str, Array]
    valid: Bools | None

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class EncodedJoin:
    """A query and its tables in the terms of one accelerator.

    Parameters
    ----------
    left, right : EncodedSide
        Tuples of R and of S.
    plan : EncodingPlan
        How they were encoded, with the bounds and the window.
    """

    left: EncodedSide
    right: EncodedSide
    plan: EncodingPlan


def encode(left: pa.Table, right: pa.Table, query: Query, manifest: Manifest) -> EncodedJoin:
    """Encode two whole tables for the accelerator that ``manifest`` describes.

    Equalities are exact. For an inner join over a time-based window, rows that cannot match are
    left out.

    Raises
    ------
    UsageError
        As for :func:`plan_tables`.
    """
    plan = plan_tables(left, right, query, manifest, strict=True)
    encoder = BatchEncoder(plan, whole=query.how is not JoinType.INNER)
    signed = {key.name: key.signed for key in manifest.keys}
    batches = [
        (side, one_batch(table.select(plan.columns(side))))
        for side, table in enumerate((left, right))
    ]
    encoder.settle(batches)
    sides = [_arranged(encoder.encode(side, batch), signed) for side, batch in batches]
    return EncodedJoin(sides[0], sides[1], plan)


@dataclass(frozen=True)
class Arrangement:
    """The order and the times in which the rows of two tables arrive.

    Parameters
    ----------
    orders : tuple of (array of int64 or None)
        Row numbers in the order of arrival; None if that is the order of the table.
    times, rows : tuple of array
        Timestamps, ascending, and row numbers of the tuples that are sent.
    """

    orders: tuple[Int64s | None, Int64s | None]
    times: tuple[UInt64s, UInt64s]
    rows: tuple[Int64s, Int64s]


def arrange(plan: EncodingPlan, left: pa.Table, right: pa.Table) -> Arrangement:
    """Return the order in which the rows of two tables arrive."""
    encoder = BatchEncoder(plan)
    orders: list[Int64s | None] = []
    all_times, all_rows = [], []
    for side, table in enumerate((left, right)):
        times, valid = encoder.times(side, one_batch(table.select(plan.columns(side))))
        rows: Int64s = np.arange(len(times))
        order: Int64s | None = None
        if (times[1:] < times[:-1]).any():
            rows = order = np.argsort(times, kind="stable")
            times = times[order]
        if valid is not None and plan.timed:
            sent = valid[rows]
            rows, times = rows[sent], times[sent]
        orders.append(order)
        all_times.append(times)
        all_rows.append(rows)
    return Arrangement(
        (orders[0], orders[1]), (all_times[0], all_times[1]), (all_rows[0], all_rows[1])
    )


def _arranged(batch: EncodedBatch, signed: Mapping[str, bool]) -> EncodedSide:
    """Return a batch with all fields computed, sorted by time."""
    keys: dict[str, Array] = {}
    for name, values in batch.keys.items():
        column = values.block(slice(None))
        keys[name] = column.view(np.int64) if signed[name] else column
    rows, times, valid = batch.row_numbers(0, len(batch)), batch.times, batch.valid
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        rows, times = rows[order], times[order]
        keys = {name: column[order] for name, column in keys.items()}
        valid = None if valid is None else valid[order]
    return EncodedSide(rows, times, keys, valid)


# The columns of what a join gives.


def joined_schema(left: pa.Schema, right: pa.Schema, query: Query) -> pa.Schema:
    """Return the schema of the result of a join.

    Raises
    ------
    UsageError
        As :func:`~host.query.tables.output_schema`, or if windows do not suit the columns of time.
    """
    names = BOUNDARIES if query.per_window else ()
    schema = output_schema(left, right, query.suffix, query.how, names)
    if not query.per_window:
        return schema
    from host.columns.windows import PairWindows

    boundary = PairWindows(query, left, right).type
    return pa.schema([*schema, *(pa.field(name, boundary, False) for name in names)])
