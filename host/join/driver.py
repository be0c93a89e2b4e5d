# SPDX-License-Identifier: Apache-2.0
"""Join two inputs on a device with a graph of execution streams, from Arrow to Arrow.

The graph is: two sources -> accelerator -> materialize. One scheduler drives it, so feeding and
draining the device cannot deadlock, and buffers stay bounded.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.accelerator.device_join import (
    JoinOptions,
    PreparedJoin,
    add_device_join,
    add_tagged_join,
    prepare_join,
)
from host.accelerator.params import Progress
from host.device import Device
from host.encode import Ranges, arrange, plan_tables
from host.errors import UsageError
from host.exchange.watch import Deadline
from host.hardware.capacity import require_capacity, require_pairs, require_room
from host.join.run import JoinResult, JoinRun, Latency
from host.query.join_query import JoinQuery
from host.query.tables import Input, Supply, as_table, is_stream, output_schema
from host.reference.join_type import JoinType
from host.reference.side import Side
from host.runtime import ExecStreamGraph
from host.streams.source import ArrowSource, ArrowSourceParams
from host.tuples.row_store import TableRows
from host.tuples.tagged_intake import TaggedLayout

__all__ = [
    "Deadline",
    "Input",
    "JoinResult",
    "Latency",
    "Progress",
    "TableJoin",
    "TaggedJoin",
    "TaggedLayout",
    "join_batches",
    "join_tables",
    "output_schema",
]

Int64s = npt.NDArray[np.int64]


class TableJoin(JoinRun):
    """One join of two inputs, checked and planned.

    Some types of join also emit rows that come alone, with nulls in the columns of the other side.
    Such a row is kept until it leaves the window.

    Whole tables are inspected before they are planned, so any values that can be encoded are
    accepted. Such a join can be run several times. If the query declares its inputs sorted and one
    of them is a reader or iterator of batches, both inputs are streamed. Memory then depends on the
    window and the buffers, not on the size of the inputs. Values that neither the column types nor
    ``ranges`` vouch for are checked batch by batch.

    Parameters
    ----------
    left, right : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows. An iterable must hold at least one batch, because its schema is that of the
        first; if there may be none, give a reader or a table. Batches of unsorted inputs are
        gathered into a table.
    query : JoinQuery
        The join.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    ranges : tuple of mapping
        For streams: known ranges of columns; see :func:`~host.encode.plan.plan_streams`.
    newest_of : Side, optional
        The side of whose window only the newest match of each row is wanted; see
        :class:`~host.accelerator.device_join.PreparedJoin`. Only for an inner join.
    options
        ``trace``, ``record``, ``deadline``, ``report``, ``batch_rows`` and ``buffer_rows``; see
        :class:`~host.join.run.JoinRun`.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device.
    WindowOverflowError
        If a time-based window holds more rows than the device's capacity; for streams, when the
        first row arrives that finds no room.
    """

    def __init__(
        self,
        left: Input,
        right: Input,
        query: JoinQuery,
        device: Device,
        *,
        ranges: tuple[Ranges, Ranges] = ({}, {}),
        newest_of: Side | None = None,
        **options: Any,
    ) -> None:
        super().__init__(device, **options)
        self.query = query
        if newest_of is not None and query.how is not JoinType.INNER:
            raise UsageError(
                f"A join that wants only newest matches leaves pairs out, so it cannot tell which "
                f"rows have none: how must be 'inner', not {query.how.value!r}."
            )
        if query.sorted and (is_stream(left) or is_stream(right)):
            sources = [Supply(left), Supply(right)]
            schemas = (sources[0].schema, sources[1].schema)
            join = prepare_join(*schemas, query, device, ranges=ranges, options=self._options)
        else:
            tables = (as_table(left), as_table(right))
            join, sources = _tables_join(*tables, query, device, self._options)
        left_rows, right_rows = (
            _source(self._graph, source, name)
            for source, name in zip(sources, ("left", "right"), strict=True)
        )
        join = replace(join, newest_of=newest_of)
        add_device_join(self._graph, left_rows, right_rows, join)
        self._run(join)


class TaggedJoin(JoinRun):
    """Join of one stream that holds the rows of both sides in their order of arrival.

    Memory depends on the window and the buffers, not on the length of the stream. Values are
    checked as in the streams of :class:`TableJoin`.

    Parameters
    ----------
    batches : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows, in the form that ``layout`` describes; on a tie left rows come first.
    layout : TaggedLayout
        Positions of the columns of both sides.
    query : JoinQuery
        The join.
    device : Device
        An open device.
    options
        As for :class:`~host.join.run.JoinRun`.

    Raises
    ------
    UsageError
        If the query does not suit the stream or the device.
    """

    def __init__(
        self,
        batches: Input,
        layout: TaggedLayout,
        query: JoinQuery,
        device: Device,
        *,
        ranges: tuple[Ranges, Ranges] = ({}, {}),
        **options: Any,
    ) -> None:
        super().__init__(device, **options)
        self.query = query
        schemas = (layout.left, layout.right)
        join = prepare_join(*schemas, query, device, ranges=ranges, options=self._options)
        rows = _source(self._graph, Supply(batches), "tagged")
        add_tagged_join(self._graph, rows, join, layout)
        self._run(join)


def _source(graph: ExecStreamGraph, supply: Supply, name: str) -> ArrowSource[pa.RecordBatch]:
    """Add a source of batches to ``graph``."""
    stream: ArrowSource[pa.RecordBatch] = ArrowSource(name)
    graph.add(stream, ArrowSourceParams(supply=supply.batches))
    return stream


def join_tables(
    left: Input, right: Input, query: JoinQuery, device: Device, **options: Any
) -> JoinResult:
    """Join two tables; see :class:`TableJoin` for the parameters and errors."""
    return TableJoin(left, right, query, device, **options).run()


def join_batches(
    left: Input, right: Input, query: JoinQuery, device: Device, **options: Any
) -> Iterator[pa.RecordBatch]:
    """Join two tables and return an iterator of batches, in order; see :class:`TableJoin`.

    Errors in the input's schema or the query are raised here, before the first batch is requested.
    """
    return TableJoin(left, right, query, device, **options).batches()


def _tables_join(
    left: pa.Table, right: pa.Table, query: JoinQuery, device: Device, options: JoinOptions
) -> tuple[PreparedJoin, list[Supply]]:
    """Plan the join of whole tables; return the plan and the columns to send, in order."""
    manifest = device.manifest
    require_pairs(manifest)
    left, right = left.combine_chunks(), right.combine_chunks()
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    plan = plan_tables(left, right, query, manifest)
    require_capacity(plan.window, manifest)
    orders: tuple[Int64s | None, Int64s | None] = (None, None)
    if plan.timed or not query.sorted:
        arranged = arrange(plan, left, right)
        require_room(arranged, plan.window, manifest)
        orders = arranged.orders
    rows = (TableRows(left, orders[0]), TableRows(right, orders[1]))
    supplies = [
        Supply(table.select(plan.columns(side)), order)
        for side, (table, order) in enumerate(zip((left, right), orders, strict=True))
    ]
    join = PreparedJoin(
        plan.arranged(orders),
        device,
        query,
        left.schema,
        right.schema,
        schema,
        options,
        rows,
    )
    return join, supplies
