# SPDX-License-Identifier: Apache-2.0
"""The join on a device as a part of a graph: streams of rows in, a stream of joined rows out."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from host.capacity import require_capacity
from host.device import Device
from host.encode import EncodingPlan, Ranges, plan_streams
from host.encode.recheck import Recheck
from host.query import JoinQuery
from host.runtime import Columns, ExecStreamGraph, Stream
from host.streams.accelerator import AcceleratorJoin
from host.streams.accelerator_params import AcceleratorJoinParams, Progress
from host.streams.materialize import Materialize, MaterializeParams
from host.streams.row_store import Rows, RowStore, SharedRows
from host.streams.tagged_intake import TaggedLayout
from host.streams.watch import Deadline
from host.tables import output_schema

__all__ = ["JoinOptions", "PreparedJoin", "add_device_join", "add_tagged_join", "prepare_join"]


@dataclass(frozen=True)
class JoinOptions:
    """How a join is run, as opposed to what is joined.

    Parameters
    ----------
    trace : bool
        Whether to take the cycles in which tuples and results come and go.
    deadline : Deadline
        How long the device may make no progress.
    report : callable, optional
        Is called with a :class:`Progress` now and then.
    batch_rows : int
        Most rows of a result batch.
    observe : callable, optional
        Is given the row numbers of all results: columns ``left`` and ``right``, and with a trace
        ``latency`` and ``emitted``.
    is_cut : callable, optional
        Is asked when the input has ended whether another join goes on with it. Then a row that the
        window still holds, which a later row could match, does not come alone.
    """

    trace: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    report: Callable[[Progress], None] | None = None
    batch_rows: int = 1 << 16
    observe: Callable[[Columns], None] | None = None
    is_cut: Callable[[], bool] | None = None


@dataclass(frozen=True)
class PreparedJoin:
    """A join that has been checked and planned for a device, and can be part of one graph.

    Parameters
    ----------
    plan : EncodingPlan
        How rows become tuples.
    device : Device
        An open device, used by nobody else meanwhile; it stays open.
    query : JoinQuery
        Says which results are wanted, and in which order.
    left, right, schema : pa.Schema
        Of the inputs and of the result.
    options : JoinOptions
        How it is run.
    rows : tuple of Rows or None
        Where the rows are, if they need not be kept as they pass.
    distinct : tuple of bool
        Whether a probe can match one row at most of the left side, and of the right side.
    accelerator : AcceleratorJoin
        The stream that drives the device; tells cycles, seconds and counters of an execution.
    """

    plan: EncodingPlan
    device: Device
    query: JoinQuery
    left: pa.Schema
    right: pa.Schema
    schema: pa.Schema
    options: JoinOptions = field(default_factory=JoinOptions)
    rows: tuple[Rows, Rows] | None = None
    distinct: tuple[bool, bool] = (False, False)
    accelerator: AcceleratorJoin = field(default_factory=AcceleratorJoin)


def prepare_join(
    left: pa.Schema,
    right: pa.Schema,
    query: JoinQuery,
    device: Device,
    *,
    ranges: tuple[Ranges, Ranges] = ({}, {}),
    options: JoinOptions | None = None,
    distinct: tuple[bool, bool] = (False, False),
) -> PreparedJoin:
    """Plan the join of two streams, each sorted by its order column, of which there are schemas.

    Parameters
    ----------
    left, right : pa.Schema
        Of the streams.
    query : JoinQuery
        What to join; whether it declares the streams sorted does not matter, they must be.
    device : Device
        An open device.
    ranges : tuple of mapping
        What is known of columns, see :func:`~host.encode.plan.plan_streams`.
    options : JoinOptions, optional
        How it is run.
    distinct : tuple of bool
        Whether the caller knows that a probe can match one row at most of the left side, and of
        the right side.

    Raises
    ------
    UsageError
        If the query does not suit the streams or the device.
    """
    plan = plan_streams(left, right, query, device.manifest, ranges=ranges)
    require_capacity(plan.window, device.manifest)
    schema = output_schema(left, right, query.suffix, query.how)
    chosen = JoinOptions() if options is None else options
    return PreparedJoin(plan, device, query, left, right, schema, chosen, distinct=distinct)


def add_device_join(
    graph: ExecStreamGraph, left: Stream, right: Stream, join: PreparedJoin
) -> Stream:
    """Add the streams of a join behind two producers of record batches.

    Parameters
    ----------
    graph : ExecStreamGraph
        A graph that both producers are part of.
    left, right : stream
        Produce ``pyarrow.RecordBatch`` of the schemas of ``join``, sorted by the order columns.
    join : PreparedJoin
        From :func:`prepare_join`; it belongs to this graph from now on.

    Returns
    -------
    stream
        Produces the joined rows, as ``pyarrow.RecordBatch``; nobody consumes them yet.
    """
    rows = join.rows or (RowStore(), RowStore())
    return _connected(graph, [left, right], join, rows, None)


def add_tagged_join(
    graph: ExecStreamGraph, tagged: Stream, join: PreparedJoin, layout: TaggedLayout
) -> Stream:
    """Add the streams of a join behind one producer of both sides' rows, in order of arrival.

    Parameters
    ----------
    graph : ExecStreamGraph
        A graph that the producer is part of.
    tagged : stream
        Produces ``pyarrow.RecordBatch`` as ``layout`` says, sorted by time, on a tie left rows
        first.
    join : PreparedJoin
        From :func:`prepare_join`; it belongs to this graph from now on.
    layout : TaggedLayout
        Where the columns of both sides stand.

    Returns
    -------
    stream
        As :func:`add_device_join`.
    """
    rows = SharedRows.pair(RowStore(), *layout.slices)
    return _connected(graph, [tagged], join, rows, layout)


def _connected(
    graph: ExecStreamGraph,
    inputs: list[Stream],
    join: PreparedJoin,
    rows: tuple[Rows, Rows],
    layout: TaggedLayout | None,
) -> Stream:
    options = join.options
    accelerator, materialize = join.accelerator, Materialize()
    graph.add(
        accelerator,
        AcceleratorJoinParams(
            device=join.device,
            plan=join.plan,
            rows=rows,
            rechecks=tuple(
                Recheck.of(term, join.left, join.right) for term in join.plan.rough_terms
            ),
            layout=layout,
            how=join.query.how,
            ordering=join.query.ordering,
            # A walk may end at the first match only if that is one.
            distinct=(False, False) if join.plan.rough_terms else join.distinct,
            trace=options.trace,
            deadline=options.deadline,
            report=options.report,
            is_cut=options.is_cut,
        ),
    )
    graph.add(
        materialize,
        MaterializeParams(
            store=rows,
            schema=join.schema,
            widths=(len(join.left), len(join.schema) - len(join.left)),
            rows=options.batch_rows,
            observe=options.observe,
        ),
    )
    for stream in inputs:
        graph.connect(stream, accelerator)
    graph.connect(accelerator, materialize)
    return materialize
