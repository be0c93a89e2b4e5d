# SPDX-License-Identifier: Apache-2.0
"""The join on a device as a part of a graph, from streams of rows to a stream of joined rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa

from host.columns import EncodingPlan, Ranges, plan_streams
from host.columns.fields import Recheck
from host.devices import Device
from host.devices.waiting import Deadline
from host.protocol.segments import require_capacity, require_pairs
from host.query.cores import Epochs, SegmentSchedule
from host.query.queries import JoinQuery
from host.query.tables import output_schema
from host.reference.arrivals import Side
from host.runtime import Columns, ExecStreamGraph, Stream
from host.session.control import NoteDecision
from host.session.intake import TaggedLayout
from host.session.params import AcceleratorJoinParams, Progress
from host.session.results import Materialize, MaterializeParams
from host.session.rows import Rows, RowStore, SharedRows
from host.session.software_join import SoftwareJoin
from host.session.stream import AcceleratorJoin

__all__ = [
    "JoinOptions",
    "PreparedJoin",
    "add_device_join",
    "add_tagged_join",
    "prepare_join",
]


@dataclass(frozen=True)
class JoinOptions:
    """Options of running a join, as opposed to the query.

    Parameters
    ----------
    trace : bool
        Whether to record the cycles in which tuples and results are transferred.
    deadline : Deadline
        Longest time without progress of the device.
    report : callable, optional
        Called with a :class:`Progress` from time to time.
    batch_rows : int
        Largest number of rows in a result batch.
    observe : callable, optional
        Called with the row numbers of all results: columns ``left`` and ``right``, and with a
        trace also ``latency`` and ``emitted``.
    is_cut : callable, optional
        Called when the input has ended; returns whether another join continues with it. If so, a
        row that the window still holds does not come alone, because a later row could match it.
    segments : SegmentSchedule or sequence of (int, sequence of int)
        Changes of the cores that store: after how many tuples of both sides, which cores. At first
        all cores store. The answer is the same whichever cores do.
    epochs : EpochSchedule or sequence of Epoch or (int, sequence of int)
        Epochs of an elastic join, which make its cores active or not. Either these or segments.
    note_decision : callable, optional
        Called with each decision of an elastic join, and with each change of its cores.
    pace : int, float or Fraction, optional
        Clock cycles that pass while the left order column advances by one of its units. A tuple is
        then offered no earlier than it arrives. By default the device gets the input as fast as it
        takes it. Only for a device with a clock.
    """

    trace: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    report: Callable[[Progress], None] | None = None
    batch_rows: int = 1 << 16
    observe: Callable[[Columns], None] | None = None
    is_cut: Callable[[], bool] | None = None
    segments: SegmentSchedule | Sequence[tuple[int, Sequence[int]]] = ()
    epochs: Epochs = ()
    note_decision: NoteDecision | None = None
    pace: Fraction | float | None = None

    @property
    def uses_cores(self) -> bool:
        """Whether something is asked for that only a device with cores and a clock has."""
        return self.trace or self.pace is not None or self.segments != () or self.epochs != ()


@dataclass(frozen=True)
class PreparedJoin:
    """A join that has been checked and planned for a device, for use in one graph.

    Parameters
    ----------
    plan : EncodingPlan
        Encoding of rows as tuples.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    query : JoinQuery
        The query, which decides which results are wanted and in which order.
    left, right, schema : pa.Schema
        Schemas of the inputs and of the result.
    options : JoinOptions
        Options of running the join.
    rows : tuple of Rows or None
        Stores of the rows, if the rows need not be kept as they pass.
    distinct : tuple of bool
        Whether a probe can match at most one row of the left side, and of the right side.
    newest_of : Side or None
        The side of whose window only the newest match of each row of the other side is wanted. An
        index then sends one match of each core, the core's newest; a scan sends all of them. Older
        matches, and pairs whose later row is one of this side, may be missing from the result.

    Attributes
    ----------
    accelerator : AcceleratorJoin or SoftwareJoin
        The stream that joins; it has the cycles, seconds and counters of an execution.
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
    newest_of: Side | None = None
    accelerator: AcceleratorJoin | SoftwareJoin = field(init=False)

    def __post_init__(self) -> None:
        software = self.device.is_software_engine and not (
            self.options.uses_cores or self.query.elastic or self.query.ordering.hold
        )
        stream = SoftwareJoin() if software else AcceleratorJoin()
        object.__setattr__(self, "accelerator", stream)


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
    """Plan the join of two streams, each sorted by its order column, from their schemas.

    Parameters
    ----------
    left, right : pa.Schema
        Schemas of the streams.
    query : JoinQuery
        The join. The streams must be sorted, whether or not the query declares it.
    device : Device
        An open device.
    ranges : tuple of mapping
        Known ranges of columns; see :func:`~host.columns.encoding.plan_streams`.
    options : JoinOptions, optional
        Options of running the join.
    distinct : tuple of bool
        Whether the caller knows that a probe can match at most one row of the left side, and of
        the right side.

    Raises
    ------
    UsageError
        If the query does not suit the streams or the device.
    """
    require_pairs(device.manifest)
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
        The graph, which both producers must be part of.
    left, right : stream
        Producers of ``pyarrow.RecordBatch`` in the schemas of ``join``, sorted by the order
        columns.
    join : PreparedJoin
        Result of :func:`prepare_join`, which belongs to this graph from now on.

    Returns
    -------
    stream
        Producer of the joined rows as ``pyarrow.RecordBatch``; it has no consumer yet.
    """
    rows = join.rows or (RowStore(), RowStore())
    return _connected(graph, [left, right], join, rows, None)


def add_tagged_join(
    graph: ExecStreamGraph, tagged: Stream, join: PreparedJoin, layout: TaggedLayout
) -> Stream:
    """Add the streams of a join behind one producer of both sides' rows in their order of arrival.

    Parameters
    ----------
    graph : ExecStreamGraph
        The graph, which the producer must be part of.
    tagged : stream
        Producer of ``pyarrow.RecordBatch`` in the form of ``layout``, sorted by time, with left
        rows first on a tie.
    join : PreparedJoin
        Result of :func:`prepare_join`, which belongs to this graph from now on.
    layout : TaggedLayout
        Positions of the columns of both sides.

    Returns
    -------
    stream
        As for :func:`add_device_join`.
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
            on_failure=join.query.on_failure,
            ordering=join.query.ordering,
            # A walk may end at the first match only if every match of the device is a match of the
            # query.
            distinct=(False, False) if join.plan.rough_terms else join.distinct,
            newest_of=None if join.plan.rough_terms else join.newest_of,
            trace=options.trace,
            deadline=options.deadline,
            report=options.report,
            is_cut=options.is_cut,
            segments=options.segments,
            epochs=options.epochs,
            elastic=join.query.elastic,
            note_decision=options.note_decision,
            pace=options.pace,
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
