# SPDX-License-Identifier: Apache-2.0
"""Plan how rows become tuples, from whole tables or from the schemas of streams."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.fields import FieldPlan, TermTypes, assigned, rough_terms
from host.encode.kinds import Column, ColumnType, column_type, read_column
from host.encode.ranges import Ranges
from host.encode.scale import require_same_kind
from host.encode.spread import Spread
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
from host.query.join_query import JoinQuery
from host.reference.predicate import Bounds
from host.reference.window import CountWindow, Window

__all__ = ["EncodingPlan", "plan_streams", "plan_tables"]

#: Positions of rows in their order of arrival; None if that is the order of the table.
Order = npt.NDArray[np.int64] | None


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
    """

    times: TimePlan
    terms: tuple[TermTypes, ...]
    fields: tuple[FieldPlan, ...]
    window: Window
    checked: bool

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
        return rough_terms(self.fields)

    @property
    def timed(self) -> bool:
        """Whether the window is time-based."""
        return not isinstance(self.window, CountWindow)

    def columns(self, side: int) -> tuple[str, ...]:
        """Return the columns of one side's table that the encoding reads."""
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
    """Plan the encoding of two whole tables, from all of their values.

    Raises
    ------
    UsageError
        If a column is missing or has a type that cannot be compared, if an order column holds a
        null or a decreasing value, or if a value does not fit.
    """
    tables = (left, right)
    order = tuple(
        read_column(table, column_type(table.schema, name, side))
        for table, name, side in zip(tables, query.order, ("left", "right"), strict=True)
    )
    types = _types((left.schema, right.schema), query)
    columns: dict[ColumnType, Column] = {column.type: column for column in order}
    for term in types:
        for table, column in zip(tables, term.columns, strict=True):
            if column not in columns:
                columns[column] = read_column(table, column)
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
    """Plan the encoding of two sorted streams from their schemas.

    Text, and integers of a type that is narrow enough for the field, need no further knowledge. For
    other columns, a range may be given. Without a range that fits, the first values determine the
    origin, and values far from them are allowed: an equality gives them codes, and the pairs of a
    band are checked on the host.

    Parameters
    ----------
    left, right : pa.Schema
        Schemas of the streams.
    query : JoinQuery
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
