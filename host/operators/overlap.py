# SPDX-License-Identifier: Apache-2.0
"""Intervals that overlap, as the terms and the window of a join."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from host.columns.codes import FieldValues
from host.columns.kinds import (
    DAY,
    Kind,
    column_type,
    common_tick,
    contiguous,
    integer_view,
    require_same_kind,
    row_at,
    seen_ranges,
    span_of,
    validity,
)
from host.columns.times import require_temporal
from host.errors import UsageError
from host.query.quantities import Duration
from host.query.queries import Query, Term
from host.query.words import Equalities, Span

__all__ = [
    "longest_interval",
    "overlap_query",
    "overlap_terms",
]

# What is required of the intervals of a table, and how long the longest one is.


def longest_interval(table: pa.Table, interval: tuple[str, str], side: str) -> int | Duration:
    """Return the length of the longest interval of a table; intervals without an end do not count.

    Parameters
    ----------
    table : pa.Table
        The rows.
    interval : (str, str)
        Columns with the start and the end.
    side : str
        What messages call the table, ``"left"`` or ``"right"``.

    Returns
    -------
    int or Duration
        A duration if the columns are temporal.

    Raises
    ------
    UsageError
        If a column is missing, the two columns cannot be compared, or an interval ends before it
        starts.
    """
    types = [column_type(table.schema, name, side) for name in interval]
    for column in types:
        require_temporal(column)
    start, end = types
    require_same_kind(start, end)
    tick, factors = common_tick(start, end)
    seen = seen_ranges(types, lambda names: table.select(names).to_batches())
    span = span_of((start, end), factors, (seen, seen))
    if span.high - span.low >= 1 << 64:
        raise UsageError(
            f"The values of columns {start.name!r} and {end.name!r} lie 2**64 units or more apart; "
            f"cast both to a coarser unit."
        )
    columns = [column.comparable(contiguous(table.column(column.column))) for column in types]
    begins, ends = (
        FieldValues(integer_view(column), factor, span.low).block(slice(None))
        for column, factor in zip(columns, factors, strict=True)
    )
    known = np.ones(len(begins), np.bool_)
    for column in columns:
        if (valid := validity(column)) is not None:
            known &= valid
    inverted = known & (ends < begins)
    if inverted.any():
        at = int(np.argmax(inverted))
        row = row_at(table.select(list(dict.fromkeys(interval))), at)
        raise UsageError(
            f"The interval in row {at} (the first is 0) of the {side} table ends before it starts: "
            f"{interval[0]}={row[interval[0]]}, {interval[1]}={row[interval[1]]}; swap the two, or "
            f"leave the row out."
        )
    longest = int((ends - begins)[known].max(initial=0))
    return Duration(longest * tick) if start.kind.is_temporal else longest


# Intervals that overlap, as the terms and the window of a join.
#
# A left and a right interval overlap if the left one starts before the right one ends and the
# other way round: two bounded differences. The row that starts later then starts within the other
# one, so the starts differ by no more than the longest interval: that is the window.


def overlap_query(
    tables: tuple[pa.Table, pa.Table],
    left: tuple[str, str],
    right: tuple[str, str],
    *,
    on: Equalities = None,
    touching: bool = True,
    **options: Any,
) -> Query:
    """Return the join of all pairs of rows whose intervals overlap.

    The meaning is that of :func:`host.reference.asof.reference_overlap`. The window is as wide
    as the longest interval of these two tables.

    Parameters
    ----------
    tables : tuple of pa.Table
        The left and the right rows.
    left, right : (str, str)
        Columns with the start and the end of each interval.
    on : str or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.
    options
        Further parameters of the query, such as ``how``.

    Raises
    ------
    UsageError
        If a column will not do, or an interval ends before it starts.
    """
    for word in ("time", "band", "within", "rows", "advance", "per_window"):
        if word in options:
            raise UsageError(f"An overlap join has no {word}: the intervals say what meets.")
    terms = overlap_terms((tables[0].schema, tables[1].schema), left, right, touching=touching)
    lengths = [
        longest_interval(table, interval, side)
        for table, interval, side in zip(tables, (left, right), ("left", "right"), strict=True)
    ]
    return Query(
        time=(left[0], right[0]),
        on=on,
        band=terms,
        within=_longest(lengths),
        **options,
    )


def overlap_terms(
    schemas: tuple[pa.Schema, pa.Schema],
    left: tuple[str, str],
    right: tuple[str, str],
    *,
    touching: bool = True,
) -> tuple[Term, Term]:
    """Return the terms of intervals that overlap.

    Parameters
    ----------
    schemas : tuple of pa.Schema
        Columns of the left and of the right table.
    left, right : (str, str)
        Columns with the start and the end of each interval.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.

    Raises
    ------
    UsageError
        If a column is missing, or a start is of a type that gives no order of arrival, as floats.
    """
    kinds = set()
    for schema, names, side in zip(schemas, (left, right), ("left", "right"), strict=True):
        start, end = (column_type(schema, name, side) for name in names)
        require_temporal(start)
        require_same_kind(start, end)
        kinds.add(start.kind)
    step = 0 if touching else _step(kinds)
    # A bound that is no whole number of units is rounded inwards, so a step may be too small.
    return Term(left[0], right[1], None, -step), Term(left[1], right[0], step, None)


def _longest(lengths: Sequence[Span]) -> Span:
    """Return the longest of the intervals of both sides."""
    if len({isinstance(length, Duration) for length in lengths}) > 1:
        raise UsageError(
            "The intervals of one side are temporal and those of the other are not; cast one of "
            "them."
        )
    return max(lengths)


def _step(kinds: set[Kind]) -> int | Duration:
    """Return a difference that no two different values are nearer than, or an even smaller one."""
    if kinds == {Kind.DATE}:
        return Duration(DAY)
    return Duration(1) if any(kind.is_temporal for kind in kinds) else 1
