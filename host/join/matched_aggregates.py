# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of each left row: a join whose pairs nobody needs to see."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.aggregate.values import AggregateStates
from host.device import Device
from host.errors import UsageError
from host.join.driver import TableJoin
from host.query.aggregate_query import Aggregate
from host.query.column_names import require_column
from host.query.join_query import JoinQuery
from host.query.ordering import Ordering
from host.reference.join_type import JoinType
from host.windowed.panes import Cells, cells_of, merge_cells

__all__ = ["aggregate_matches"]

Int64s = npt.NDArray[np.int64]

#: Pairs that are aggregated at a time.
_PIECE = 1 << 18


def aggregate_matches(
    left: pa.Table,
    right: pa.Table,
    query: JoinQuery,
    aggregates: Mapping[str, Aggregate | str | tuple[str, str]],
    device: Device,
    **options: Any,
) -> pa.Table:
    """Return every left row with aggregates of the right rows that it is joined with.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : JoinQuery
        Which rows match, over which window. Its type of join, its ordering and its suffix do not
        matter.
    aggregates : mapping of str to Aggregate, str or (str, str)
        What is computed of the columns of right rows, by the name of its column. A count of no
        match is 0, every other aggregate is null.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    options
        As for :class:`~host.join.run.JoinRun`.

    Returns
    -------
    pa.Table
        The left columns, then the aggregates; the left rows in their order.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device, or an aggregate its column.
    """
    chosen = {name: Aggregate.of(given) for name, given in aggregates.items()}
    taken = [name for name in chosen if name in left.column_names]
    if taken or not chosen:
        raise UsageError(
            f"An aggregate cannot be called {taken[0]!r}, as a left column is; choose another name."
            if taken
            else "Matches need at least one aggregate, such as n=count."
        )
    columns = list(dict.fromkeys(one.column for one in chosen.values() if one.column is not None))
    for name in columns:
        require_column(right.column_names, name, "the right table")
    states = AggregateStates(right.schema, chosen)
    # Pairs come as row numbers, so only columns that are compared travel to the device.
    sides = (
        left.select(list(dict.fromkeys([query.order[0], *(term.left for term in query.terms)]))),
        right.select(list(dict.fromkeys([query.order[1], *(term.right for term in query.terms)]))),
    )
    asked = replace(query, how=JoinType.INNER, ordering=Ordering.none(), suffix="_of_right")
    join = TableJoin(*sides, asked, device, record=True, **options)
    for _ in join.batches():
        pass
    cells = _reduced(join.pairs, right.select(columns), states)
    return _with_aggregates(left, cells, states, chosen)


def _reduced(pairs: tuple[Int64s, Int64s], values: pa.Table, states: AggregateStates) -> Cells:
    """Return the states of left rows, whose numbers are keys, of all their matches."""
    cells = Cells.none(len(states.states))
    for begin in range(0, len(pairs[0]), _PIECE):
        rows, others = (numbers[begin : begin + _PIECE] for numbers in pairs)
        matches = _batch(values, others)
        piece = cells_of(rows, np.zeros_like(rows), states.of_rows(matches), states.combines)
        cells = merge_cells(cells, piece, states.combines)
    return cells


def _batch(values: pa.Table, numbers: Int64s) -> pa.RecordBatch:
    """Return rows by their numbers; without a column, only how many there are matters."""
    if not values.num_columns:
        return pa.RecordBatch.from_arrays([pa.array(numbers)], names=["number"])
    return values.take(pa.array(numbers)).combine_chunks().to_batches()[0]


def _with_aggregates(
    left: pa.Table, cells: Cells, states: AggregateStates, aggregates: Mapping[str, Aggregate]
) -> pa.Table:
    place = np.zeros(left.num_rows, np.int64)
    place[cells.key] = np.arange(len(cells))
    alone = np.ones(left.num_rows, np.bool_)
    alone[cells.key] = False
    places = pa.array(place, mask=alone)
    results = (
        states.results(cells.states)
        if len(cells)
        else [pa.array([], field.type) for field in states.schema]
    )
    for (name, one), column in zip(aggregates.items(), results, strict=True):
        found = column.take(places)
        filled = pc.fill_null(found, 0) if one.function == "count" else found
        left = left.append_column(name, filled)
    return left
