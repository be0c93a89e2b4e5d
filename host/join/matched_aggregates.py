# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of each left row: a join whose pairs nobody needs to see.

Pairs are reduced as they come, so what is kept is a state for each left row that has a match.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.aggregate.values import ROWS, AggregateStates, State
from host.device import Device
from host.encode.contiguous import contiguous
from host.errors import UsageError
from host.join.device_matches import DeviceMatches
from host.join.driver import TableJoin
from host.manifest import JoinAggregateManifest
from host.query.aggregate_query import Aggregate
from host.query.column_names import require_column
from host.query.join_query import JoinQuery
from host.query.ordering import Ordering
from host.reference.join_type import JoinType
from host.windowed.panes import Cells, cells_of, merge_cells

__all__ = ["aggregate_matches"]

Int64s = npt.NDArray[np.int64]

#: Pairs that are aggregated at a time, about.
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

    The device sends the pairs, which are reduced here. A device with a
    :class:`~host.manifest.JoinAggregateManifest` reduces them itself, exactly or not at all: it
    takes integers, times and the like, and terms that need no second look at a pair.

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
        As for :class:`~host.join.run.JoinRun`; for a join aggregate, those of
        :class:`~host.join.device_matches.DeviceMatches`.

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
    # Only columns that are compared travel to the device, and pairs come back as row numbers.
    sides = (
        _numbered(left, [query.order[0], *(term.left for term in query.terms)]),
        _numbered(right, [query.order[1], *(term.right for term in query.terms)]),
    )
    asked = replace(query, how=JoinType.INNER, ordering=Ordering.none(), suffix="_of_right")
    if isinstance(device.manifest, JoinAggregateManifest):
        matches = DeviceMatches(*sides, asked, device, **options)
        return _with_aggregates(left, _reduced(matches, right, columns, states), states, chosen)
    join = TableJoin(*sides, asked, device, **options)
    places = (sides[0].num_columns - 1, sides[0].num_columns + sides[1].num_columns - 1)
    cells, values = Cells.none(len(states.states)), right.select(columns)
    for rows, others in _pieces(join.batches(), places):
        matches = _batch(values, others)
        piece = cells_of(rows, np.zeros_like(rows), states.of_rows(matches), states.combines)
        cells = merge_cells(cells, piece, states.combines)
    return _with_aggregates(left, cells, states, chosen)


def _reduced(
    matches: DeviceMatches, right: pa.Table, columns: Sequence[str], states: AggregateStates
) -> Cells:
    """Return the states of all left rows that have a match, as a device has reduced them."""
    arrays = [contiguous(right.column(name)) for name in columns]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    found: dict[State, npt.NDArray[Any]] = {}
    for name in columns:
        values, valid = states.integers(batch, name)
        reduced = matches.values(values, valid, name)
        names = ("count", "sum", "min", "max")
        parts = (reduced.count, reduced.total, reduced.least, reduced.most)
        found |= {(function, name): part for function, part in zip(names, parts, strict=True)}
        if valid is None:
            found[ROWS] = reduced.count
    if ROWS not in found:
        found[ROWS] = matches.values(np.zeros(right.num_rows, np.int64), None, "*").count
    rows = np.flatnonzero(found[ROWS])
    return Cells(rows, np.zeros_like(rows), tuple(found[state][rows] for state in states.states))


def _numbered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of a table, each once, and the numbers of its rows as the last one."""
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int64))
    name = "row"
    while name in names:
        name += "_"
    return table.select(list(dict.fromkeys(names))).append_column(name, numbers)


def _pieces(
    batches: Iterator[pa.RecordBatch], places: tuple[int, int]
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the row numbers of pairs, which stand in two columns, many at a time."""
    gathered: list[tuple[Int64s, ...]] = []
    count = 0
    for batch in batches:
        gathered.append(tuple(batch.column(place).to_numpy() for place in places))
        count += batch.num_rows
        if count >= _PIECE:
            yield _one(gathered)
            gathered, count = [], 0
    if gathered:
        yield _one(gathered)


def _one(pairs: list[tuple[Int64s, ...]]) -> tuple[Int64s, Int64s]:
    rows, others = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return rows, others


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
