# SPDX-License-Identifier: Apache-2.0
"""How rows become tuples: planned from whole tables, or from the schemas of streams."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.fields import FieldPlan, TermTypes, assigned, rough_terms
from host.encode.kinds import Column, ColumnType, column_type, read_column
from host.encode.ranges import Ranges
from host.encode.scale import require_same_kind
from host.encode.stream_fields import plan_stream_field
from host.encode.table_fields import CodedTableField, plan_table_field
from host.encode.times import (
    TimePlan,
    plan_stream_times,
    plan_table_times,
    require_order,
    require_temporal,
)
from host.manifest import Manifest
from host.predicate import Bounds
from host.query import JoinQuery
from host.spread import Spread
from host.window import CountWindow, Window

__all__ = ["EncodingPlan", "plan_streams", "plan_tables"]

#: Positions of rows, in the order in which they arrive; None: as they stand.
Order = npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class EncodingPlan:
    """A query in the terms of one accelerator, and how rows of either side become its tuples.

    Parameters
    ----------
    times : TimePlan
        Of the order columns.
    terms : tuple of TermTypes
        Of the query, in its order.
    fields : tuple of FieldPlan
        Of the key fields that are used.
    window : CountWindow or TimeWindow
        In units of the timestamps; the same for both sides.
    checked : bool
        Whether it is known that no time is null and, if declared, that none goes backwards.
    """

    times: TimePlan
    terms: tuple[TermTypes, ...]
    fields: tuple[FieldPlan, ...]
    window: Window
    checked: bool

    @property
    def bounds(self) -> Mapping[str, Bounds]:
        """By key field; fields that are absent are open."""
        return {field.name: field.bounds for field in self.fields}

    @property
    def spreads(self) -> Mapping[str, Spread]:
        """What is known of values, by key field."""
        return {field.name: field.spread for field in self.fields if field.spread is not None}

    @property
    def rough_terms(self) -> tuple[TermTypes, ...]:
        """Terms that do not hold for all pairs which the accelerator finds."""
        return rough_terms(self.fields)

    @property
    def timed(self) -> bool:
        """Whether the window is time-based."""
        return not isinstance(self.window, CountWindow)

    def columns(self, side: int) -> tuple[str, ...]:
        """Columns of one side's table that the encoding reads."""
        named = [self.times.columns[side], *(term.columns[side] for term in self.terms)]
        return tuple(dict.fromkeys(column.column for column in named))

    def arranged(self, orders: tuple[Order, Order]) -> "EncodingPlan":
        """Return the plan for the same tables with their rows in other orders."""
        fields = tuple(
            field.arranged(orders) if isinstance(field, CodedTableField) else field
            for field in self.fields
        )
        return replace(self, fields=fields)


def plan_tables(
    left: pa.Table, right: pa.Table, query: JoinQuery, manifest: Manifest
) -> EncodingPlan:
    """Plan the encoding of two tables, looking at all that they hold.

    Raises
    ------
    UsageError
        If a column is missing, has a type that cannot be compared, holds a null or goes backwards
        where it gives the order, or if a value does not fit.
    """
    tables = (left, right)
    order = tuple(
        read_column(table, name, side)
        for table, name, side in zip(tables, query.order, ("left", "right"), strict=True)
    )
    types = _types((left.schema, right.schema), query)
    columns: dict[ColumnType, Column] = {column.type: column for column in order}
    for term in types:
        for table, column in zip(tables, term.columns, strict=True):
            if column not in columns:
                columns[column] = read_column(table, column.column, column.name.split(".")[0])
    for given, table in zip(order, tables, strict=True):
        require_order(given, query.sorted, table)
    require_same_kind(order[0].type, order[1].type)
    times, window = plan_table_times((order[0], order[1]), query, manifest)
    fields = [plan_table_field(field, terms, columns) for field, terms in assigned(types, manifest)]
    return EncodingPlan(times, types, tuple(fields), window, True)


def plan_streams(
    left: pa.Schema,
    right: pa.Schema,
    query: JoinQuery,
    manifest: Manifest,
    *,
    ranges: tuple[Ranges, Ranges] = ({}, {}),
) -> EncodingPlan:
    """Plan the encoding of two sorted streams, of which only the schemas are known.

    An integer type that is narrow enough for its field needs no knowledge, nor does text. For
    other columns a range may be given; without one, the first values settle the origin, and every
    batch is checked. Values far from the first ones are no harm to an equality.

    Parameters
    ----------
    left, right : pa.Schema
        Of the streams.
    query : JoinQuery
        What to join.
    manifest : Manifest
        Of the accelerator.
    ranges : tuple of mapping of str to ColumnRange or (low, high)
        Of columns of the left and of the right stream; a value outside is an error later.

    Raises
    ------
    UsageError
        If a column is missing or has a type that cannot be compared, or a range does not fit.
    """
    schemas = (left, right)
    order = (
        column_type(left, query.order[0], "left"),
        column_type(right, query.order[1], "right"),
    )
    types = _types(schemas, query)
    for column in order:
        require_temporal(column)
    require_same_kind(*order)
    times, window = plan_stream_times(order, query, manifest, ranges)
    fields = [plan_stream_field(field, terms, ranges) for field, terms in assigned(types, manifest)]
    return EncodingPlan(times, types, tuple(fields), window, False)


def _types(schemas: tuple[pa.Schema, pa.Schema], query: JoinQuery) -> tuple[TermTypes, ...]:
    """Return all terms with what their columns are."""
    left, right = schemas
    return tuple(
        TermTypes(
            term,
            column_type(left, term.left, "left"),
            column_type(right, term.right, "right"),
        )
        for term in query.terms
    )
