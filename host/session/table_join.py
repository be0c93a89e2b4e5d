# SPDX-License-Identifier: Apache-2.0
"""Join two inputs on a device, from Arrow to Arrow, and measure the run."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.columns import Arrangement, Ranges, arrange, plan_tables
from host.devices import Device
from host.devices.waiting import Deadline
from host.errors import UsageError, WindowOverflowError
from host.protocol.manifest import Manifest
from host.protocol.segments import largest_window, require_capacity, require_pairs, side_label
from host.query.cores import Epoch, Epochs, Segment, SegmentSchedule
from host.query.queries import JoinQuery
from host.query.tables import Input, Supply, as_table, is_stream, output_schema
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.reference.window import CountWindow, Window
from host.runtime import Columns, ExecStreamGraph, Quantum, Scheduler
from host.runtime.source import ArrowSource, ArrowSourceParams
from host.session.control import NoteDecision
from host.session.device_join import (
    JoinOptions,
    PreparedJoin,
    add_device_join,
    add_tagged_join,
    prepare_join,
)
from host.session.intake import TaggedLayout
from host.session.params import Progress
from host.session.records import ElasticRecord, FailureRecord, PrecisionRecord, StagingCounters
from host.session.rows import TableRows

__all__ = [
    "JoinResult",
    "JoinRun",
    "Latency",
    "TableJoin",
    "TaggedJoin",
    "join_batches",
    "join_tables",
    "require_room",
]

# Check before any tuple is sent whether the windows over two whole tables fit.


def require_room(arranged: Arrangement, window: Window, manifest: Manifest) -> None:
    """Raise unless the accelerator can always hold a time-based window over two whole tables.

    Raises
    ------
    WindowOverflowError
        If the window outgrows the capacity. The error names the first row that finds no room.
    """
    if isinstance(window, CountWindow):
        return
    cores, capacity = manifest.storage.cores, manifest.capacity
    needs = []
    for side, times, rows in zip(Side, arranged.times, arranged.rows, strict=True):
        needed, first = largest_window(times, int(window.lifespan), capacity)
        if first is not None:
            needs.append((int(times[first]), side, int(rows[first]), needed))
    if needs:
        _, side, row, _ = min(needs)
        needed = max(need[3] for need in needs)
        raise WindowOverflowError(
            side_label(side), capacity, row, needed=needed, cores=cores, engine=manifest.engine
        )


# A join that can be run: its graph of execution streams, and measurements of the last run.

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Latency:
    """Latencies from a trace, in clock cycles of the device.

    Parameters
    ----------
    processing : array of int64
        For each tuple that is no halo row, in the order of arrival: cycles from its acceptance to
        the star behind its results.
    visiting : array of int64
        For each pair: cycles from the acceptance of the later tuple to the emission of the pair.
    emitted : array of int64
        For each pair: cycle of its emission, counted since the device was opened.
    """

    processing: Int64s
    visiting: Int64s
    emitted: Int64s


@dataclass(frozen=True)
class JoinResult:
    """Result of a join.

    Parameters
    ----------
    table : pa.Table
        The left columns, then the right columns.
    pairs : tuple of array of int64
        Row numbers in the left and in the right table, for every result; -1 where there is no row.
    counters : mapping of str to int
        Increase of the device's counters.
    cycles, device_seconds : int, float
        Clock cycles and seconds that the device has worked.
    latency : Latency or None
        Latencies, if the join was traced.
    """

    table: pa.Table
    pairs: tuple[Int64s, Int64s]
    counters: Mapping[str, int]
    cycles: int
    device_seconds: float
    latency: Latency | None = None


class JoinRun:
    """Base of joins that run on a device; a derived class makes and prepares the graph.

    Parameters
    ----------
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    trace : bool
        Whether to record the cycles in which tuples and results are transferred; implies
        ``record``.
    record : bool
        Whether to keep the row numbers of all results for :attr:`pairs`.
    deadline : Deadline, optional
        Longest time without progress of the device.
    report : callable, optional
        Called with a :class:`Progress` from time to time.
    batch_rows : int
        Largest number of rows in a result batch.
    buffer_rows : int
        Capacity of each buffer between two streams, in rows.
    is_cut : callable, optional
        Returns whether another join continues with the input; see
        :class:`~host.session.device_join.JoinOptions`.
    segments : SegmentSchedule or sequence of (int, sequence of int)
        Changes of the cores that store: after how many tuples of both sides, which cores.
    epochs : EpochSchedule or sequence of Epoch or (int, sequence of int)
        Epochs of an elastic join; a pair is the place and the active cores. A join has either
        epochs or segments. What is wrong with listed epochs is told before any row is taken. If an
        epoch is refused later, the results of all tuples before it are handed on, and then its
        :exc:`~host.errors.EpochError` is raised.
    note_decision : callable, optional
        Called with each decision of an elastic join, and with each change of its cores; see
        :mod:`host.session.records`.
    pace : int, float or Fraction, optional
        Clock cycles for a unit of the left order column, by which the input arrives; see
        :class:`~host.session.device_join.JoinOptions`.
    """

    #: Schema of the results.
    schema: pa.Schema

    def __init__(
        self,
        device: Device,
        *,
        trace: bool = False,
        record: bool = False,
        deadline: Deadline | None = None,
        report: Callable[[Progress], None] | None = None,
        batch_rows: int = 1 << 16,
        buffer_rows: int = 1 << 17,
        is_cut: Callable[[], bool] | None = None,
        segments: SegmentSchedule | Sequence[tuple[int, Sequence[int]]] = (),
        epochs: Epochs = (),
        note_decision: NoteDecision | None = None,
        pace: Fraction | float | None = None,
    ) -> None:
        self.device = device
        self._before: dict[str, int] = {}
        self._visits: list[Columns] = []
        self._recording = record or trace
        self._quantum = Quantum(batch_rows)
        self._options = JoinOptions(
            trace=trace,
            deadline=Deadline() if deadline is None else deadline,
            report=report,
            batch_rows=batch_rows,
            observe=self._visit,
            is_cut=is_cut,
            segments=segments,
            epochs=epochs,
            note_decision=note_decision,
            pace=pace,
        )
        self._graph = ExecStreamGraph(buffer_rows)

    def _run(self, join: PreparedJoin) -> None:
        """Prepare the graph, which contains ``join``."""
        self.schema = join.schema
        self.encoded = join.plan
        self._accelerator = join.accelerator
        self._graph.prepare()

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Run the join and yield the results in order as they arrive.

        A consumer that stops early only needs to close the iterator; the device can then be used
        again.

        Raises
        ------
        EpochError
            Behind the last result, if an epoch was refused while the join ran.
        """
        self._before = self.device.counters()
        self._visits.clear()
        yield from Scheduler(self._graph, self._quantum).read()
        if self._accelerator.refused is not None:
            raise self._accelerator.refused

    @property
    def staged(self) -> StagingCounters:
        """Counters of the last join's staging of batches into input words."""
        return self._accelerator.staged

    def describe(self) -> str:
        """Return a description of the streams and buffers, one buffer per line."""
        return self._graph.plan()

    @property
    def cycles(self) -> int:
        """Clock cycles that the device has run for the last join."""
        return 0 if self._accelerator.watch is None else self._accelerator.watch.cycles

    @property
    def device_seconds(self) -> float:
        """Seconds that the device has worked for the last join, mostly in parallel to the host."""
        return 0.0 if self._accelerator.watch is None else self._accelerator.watch.seconds

    @property
    def waited_seconds(self) -> float:
        """Seconds in which the host had nothing to do but wait for the device."""
        return 0.0 if self._accelerator.watch is None else self._accelerator.watch.waited

    @property
    def precision(self) -> PrecisionRecord | None:
        """Decisions of an adaptive ordering in the last join; None for any other ordering."""
        return self._accelerator.precision

    @property
    def segments(self) -> list[Segment]:
        """The changes of the cores that store in the last join, with the places where they came."""
        return self._accelerator.segments

    @property
    def epochs(self) -> list[Epoch]:
        """The epochs that took effect in the last join; ``after`` is the place of each."""
        return self._accelerator.epochs

    @property
    def superseded(self) -> list[Epoch]:
        """Epochs of the last join that a later one replaced before they took effect."""
        return self._accelerator.superseded

    @property
    def longest_wait(self) -> int | None:
        """Most cycles from a tuple's arrival to its answer in the last join; None without a pace.

        Arrivals and answers are seen between exchanges, so it is up to two of them too long.
        """
        return self._accelerator.longest_wait

    @property
    def elastic(self) -> ElasticRecord | None:
        """Decisions of an elastic join in its last run; None for any other join."""
        return self._accelerator.elastic

    @property
    def failures(self) -> FailureRecord | None:
        """Cores that failed in the last join; None if a failure ends the join."""
        return self._accelerator.failures

    @property
    def hash_note(self) -> str:
        """Note that an index read too many entries in the last join; empty if it did not."""
        return "" if self._accelerator.hashing is None else self._accelerator.hashing.note

    def counters(self) -> dict[str, int]:
        """Return the increase of the device's counters since the last join began."""
        now = self.device.counters()
        return {name: value - self._before.get(name, 0) for name, value in now.items()}

    @property
    def pairs(self) -> tuple[Int64s, Int64s]:
        """Row numbers of every result in the left and in the right input, if they were recorded.

        For a row that comes alone, the other row number is -1.
        """
        return self._visited("left"), self._visited("right")

    def take_pairs(self) -> tuple[Int64s, Int64s]:
        """Return the :attr:`pairs` recorded since the last call, and forget them."""
        taken = self.pairs
        self._visits.clear()
        return taken

    @property
    def latency(self) -> Latency | None:
        """Latencies of the last join; None if it was not traced."""
        trace = self._accelerator.trace
        if trace is None:
            return None
        processing = trace.processing[self.staged.halo_tuples :]
        emitted = self._visited("emitted")
        pairs = emitted >= 0  # rows that come alone are not emitted by the device
        return Latency(processing, self._visited("latency")[pairs], emitted[pairs])

    def _visit(self, pairs: Columns) -> None:
        if self._recording:
            self._visits.append(pairs)

    def _visited(self, name: str) -> Int64s:
        parts = [pairs[name] for pairs in self._visits if name in pairs.arrays]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def run(self) -> JoinResult:
        """Run the join and gather all results."""
        self._recording = True
        table = pa.Table.from_batches(list(self.batches()), schema=self.schema)
        return JoinResult(
            table, self.pairs, self.counters(), self.cycles, self.device_seconds, self.latency
        )


# Join two inputs on a device with a graph of execution streams, from Arrow to Arrow.
#
# The graph is: two sources -> accelerator -> materialize. One scheduler drives it, so feeding and
# draining the device cannot deadlock, and buffers stay bounded.


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
        For streams: known ranges of columns; see :func:`~host.columns.encoding.plan_streams`.
    newest_of : Side, optional
        The side of whose window only the newest match of each row is wanted; see
        :class:`~host.session.device_join.PreparedJoin`. Only for an inner join.
    options
        ``trace``, ``record``, ``deadline``, ``report``, ``batch_rows`` and ``buffer_rows``; see
        :class:`JoinRun`.

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
        As for :class:`JoinRun`.

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
