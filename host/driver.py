# SPDX-License-Identifier: Apache-2.0
"""The join of two inputs on a device: a graph of execution streams from Arrow to Arrow.

Two sources -> accelerator -> materialize. The graph is driven by one scheduler, so feeding the
device and draining it cannot deadlock, and buffers stay bounded.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.capacity import require_capacity, require_room
from host.device import Device
from host.encode import Ranges, arrange, plan_tables
from host.join_run import JoinResult, JoinRun, Latency
from host.query import JoinQuery
from host.runtime import ExecStreamGraph
from host.streams.accelerator_params import Progress
from host.streams.device_join import (
    JoinOptions,
    PreparedJoin,
    add_device_join,
    add_tagged_join,
    prepare_join,
)
from host.streams.row_store import TableRows
from host.streams.source import ArrowSource, ArrowSourceParams
from host.streams.tagged_intake import TaggedLayout
from host.streams.watch import Deadline
from host.tables import Input, Supply, as_table, is_stream, output_schema

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

    By the type of the query rows may come alone: the columns of the other side are null then. Such
    a row is kept until it leaves the window.

    Whole tables are looked at first, so that any values that can be encoded are; such a join can be
    run several times. If the query declares its inputs sorted, and one is a reader or iterator of
    batches, both are streamed: memory follows the window and the buffers, not the inputs. What
    neither the types of the columns nor ``ranges`` settle is then checked batch by batch.

    Parameters
    ----------
    left, right : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows. An iterable without any batch has no schema, so give a reader or a table if there
        may be none. Unless sorted, batches are gathered into a table.
    query : JoinQuery
        What to join.
    device : Device
        An open device, used by nobody else meanwhile; it stays open.
    ranges : tuple of mapping
        For streams: what is known of columns, see :func:`~host.encode.plan.plan_streams`.
    options
        ``trace``, ``record``, ``deadline``, ``report``, ``batch_rows`` and ``buffer_rows``, see
        :class:`~host.join_run.JoinRun`.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device.
    WindowOverflowError
        If a time-based window holds more rows than the device's capacity; for streams, when the
        row that overflows it comes.
    """

    def __init__(
        self,
        left: Input,
        right: Input,
        query: JoinQuery,
        device: Device,
        *,
        ranges: tuple[Ranges, Ranges] = ({}, {}),
        **options: Any,
    ) -> None:
        super().__init__(device, **options)
        self.query = query
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
        add_device_join(self._graph, left_rows, right_rows, join)
        self._run(join)


class TaggedJoin(JoinRun):
    """One join of one stream that holds the rows of both sides, in their order of arrival.

    Memory follows the window and the buffers, not the stream; see :class:`TableJoin` for values.

    Parameters
    ----------
    batches : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows, as ``layout`` says; on a tie left rows first.
    layout : TaggedLayout
        Where the columns of both sides stand.
    query : JoinQuery
        What to join.
    device : Device
        An open device.
    options
        As for :class:`~host.join_run.JoinRun`.

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
    """Join two tables, yielding batches in order; see :class:`TableJoin`.

    Bad input raises here, before the first batch is asked for.
    """
    return TableJoin(left, right, query, device, **options).batches()


def _tables_join(
    left: pa.Table, right: pa.Table, query: JoinQuery, device: Device, options: JoinOptions
) -> tuple[PreparedJoin, list[Supply]]:
    """Plan the join of whole tables; return it with the columns that are sent, in order."""
    manifest = device.manifest
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
