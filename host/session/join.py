# SPDX-License-Identifier: Apache-2.0
"""A join on a device, from Arrow to Arrow: as a stream of a graph, and as an object that runs."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from host.arrays import Int64s
from host.columns.encoding import EncodingPlan
from host.columns.kinds import Ranges
from host.devices import Device
from host.query.queries import Query
from host.query.tables import Input, Supply, as_table, is_stream
from host.reference.types import NO_ROW
from host.runtime import (
    BUFFER_BYTES,
    Broadcast,
    Columns,
    ConfluenceExecStream,
    ExecStreamGraph,
    GraphError,
    Quantity,
    Quantum,
    Requirements,
    Scheduler,
    Stream,
    StreamParams,
    StreamResult,
)
from host.runtime.source import ArrowSource, ArrowSourceParams
from host.session.intake import TaggedLayout
from host.session.params import (
    AREAS,
    ROOMS,
    JoinOptions,
    JoinParams,
    plan_join,
    plan_join_of_tables,
)
from host.session.records import Latency, Measured
from host.session.results import Delivery, materialized
from host.session.rows import Rows
from host.session.run import Run, SoftwareRun

__all__ = [
    "Join",
    "JoinResult",
    "JoinStream",
    "add_join",
    "join_tables",
]

LEAST_RESULT_WORDS = 1 << 12
"""Result words of an exchange for which no buffer has to be granted."""

LEAST_STAGED_WORDS = 3 << 12
"""Input words of an area for which no buffer has to be granted."""


class JoinStream(ConfluenceExecStream[JoinParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream from batches of rows to joined rows, found by a device or in software.

    The inputs are side R (input 0) and side S (input 1), each sorted by time, or a single input of
    tagged batches. A pair of row numbers takes the values of its columns as it leaves, batches of
    both sides being Arrow arrays, which are immutable. Results leave as they are found; only the
    window and the open groups are kept.

    A device is fed and drained while words are prepared and decoded. The governor is asked for the
    rooms that result words arrive in and for the areas that input words wait in; with fewer buffers
    an exchange moves fewer of either, and a batch is staged in shorter pieces.

    Attributes
    ----------
    measured : Measured
        What was measured in the last execution.
    recording : bool
        Whether the row numbers of results are kept in ``measured``.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._run: Run | None = None
        self.measured = Measured()
        self.recording = False

    def prepare(self, params: JoinParams) -> None:
        needed = 2 if params.layout is None else 1
        if len(self.inputs) != needed:
            raise GraphError(
                f"Stream {self.name!r} needs {needed} input(s), not {len(self.inputs)}"
            )
        params.require_cores()
        super().prepare(params)
        self.recording = self.recording or params.options.record

    def requirements(self) -> Requirements:
        if self.params.in_software:
            return Requirements()
        return Requirements(optimum=Quantity(buffers=sum(self._wanted)))

    @property
    def _bytes_of_words(self) -> tuple[int, int]:
        """Bytes in all rooms for a result word, and in all areas for an input word."""
        manifest = self.params.device.manifest
        return 8 * ROOMS * manifest.result_word.columns, 8 * AREAS * manifest.input_word.columns

    @property
    def _wanted(self) -> tuple[int, int]:
        """Buffers for result words, and for input words."""
        (results, inputs), options = self._bytes_of_words, self.params.options
        return (
            -(-options.result_words * results // BUFFER_BYTES),
            -(-options.staged_words * inputs // BUFFER_BYTES),
        )

    @property
    def result_words(self) -> int:
        """Most result words of an exchange, by the buffers that were granted; these come first."""
        granted = self.allocation.buffers * BUFFER_BYTES // self._bytes_of_words[0]
        return min(self.params.options.result_words, max(LEAST_RESULT_WORDS, granted))

    @property
    def staged_words(self) -> int:
        """Input words of an area, by the buffers that result words leave."""
        buffers = max(0, self.allocation.buffers - self._wanted[0])
        granted = buffers * BUFFER_BYTES // self._bytes_of_words[1]
        return min(self.params.options.staged_words, max(LEAST_STAGED_WORDS, granted))

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        params = self.params
        for rows in params.rows:
            rows.clear()
        if params.in_software:
            self._run = SoftwareRun(params, self.inputs)
        else:
            from host.session.execution import Execution  # of a device, which few joins have

            self._run = Execution(params, self.inputs, self.result_words, self.staged_words)
        self.measured = self._run.measured

    @property
    def stores(self) -> tuple[Rows, Rows]:
        """The stores of the rows of both sides."""
        return self.params.rows

    def execute(self, quantum: Quantum) -> StreamResult:
        run = self._run
        assert run is not None
        moved = 0
        while moved < quantum.rows:
            if not self._hand_on(run.delivery):
                return StreamResult.BUF_OVERFLOW
            if run.done:
                return self.finish()
            took = run.advance()
            if took is None:
                return StreamResult.BUF_UNDERFLOW
            moved += took
        return StreamResult.QUANTUM_EXPIRED

    def reached(self) -> tuple[tuple[int, int], ...]:
        """See :meth:`~host.session.execution.Run.reached`; of an execution that is open."""
        assert self._run is not None
        return self._run.reached()

    def _hand_on(self, delivery: Delivery) -> bool:
        """Put results into the output; return whether it had room for all of them."""
        params = self.params
        while delivery.ready:
            room = min(self.output.provide(), params.options.batch_rows)
            if not room:
                return False
            most = room if params.windows is None else max(1, room // params.windows.most)
            rows, pairs = materialized(params, delivery.take(most))
            self.output.produce(rows)
            self._note(pairs)
        delivery.forget()
        return True

    def _note(self, pairs: Columns) -> None:
        """Keep the numbers of pairs that leave, by which the user knows the rows."""
        if self.recording:
            numbers = {
                name: _original(rows, pairs[name])
                for rows, name in zip(self.stores, ("left", "right"), strict=True)
            }
            self.measured.visits.append(Columns({**pairs.arrays, **numbers}))

    def close_impl(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.abandon()


def _original(rows: Rows, numbers: Int64s) -> Int64s:
    known = numbers.copy()
    there = numbers != NO_ROW
    known[there] = rows.original(numbers[there])
    return known


def add_join(graph: ExecStreamGraph, inputs: list[Stream], params: JoinParams) -> JoinStream:
    """Add the stream of a join behind its inputs, and return it; it has no consumer yet.

    Parameters
    ----------
    graph : ExecStreamGraph
        The graph, which the inputs must be part of.
    inputs : list of Stream
        Producers of ``pyarrow.RecordBatch``: of left and right rows, each sorted by its order
        column, or one of tagged rows of both sides, sorted by time, with left rows first on a tie.
    params : JoinParams
        The join, as :func:`~host.session.params.plan_join` returns it; it belongs to this graph
        from now on.
    """
    stream = JoinStream()
    graph.add(stream, params)
    for producer in inputs:
        graph.connect(producer, stream)
    return stream


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


class Join:
    """One join of two inputs on a device, checked and planned, with what its last run measured.

    Some types of join also emit one-sided rows, with nulls in the columns of the other side.
    Such a row is kept until it leaves the window.

    Whole tables are inspected before they are planned, so any values that can be encoded are
    accepted. Such a join can be run several times. If the query declares its inputs sorted and one
    of them is a reader or iterator of batches, both inputs are streamed. Memory then depends on the
    window and the buffers, not on the size of the inputs. Values that neither the column types nor
    ``ranges`` vouch for are checked batch by batch.

    The graph is: two sources -> join. One scheduler drives it, so feeding and
    draining the device cannot deadlock, and buffers stay bounded.

    Parameters
    ----------
    left, right : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows; one object joins them with themselves, and is read once. An iterable must hold at
        least one batch, because its schema is that of the first; if there may be none, give a
        reader or a table. Batches of unsorted inputs are gathered into a table.
    query : Query
        The join.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    ranges : tuple of mapping
        For streams: known ranges of columns; see :func:`~host.columns.encoding.plan_streams`.
    options
        Those of :class:`~host.session.params.JoinOptions`.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the results.

    Raises
    ------
    UsageError
        If the query does not suit the inputs or the device.
    CapacityError
        If a time-based window holds more rows than the device's capacity; for streams, when the
        first row arrives that finds no room.
    """

    def __init__(
        self,
        left: Input,
        right: Input,
        query: Query,
        device: Device,
        *,
        ranges: tuple[Ranges, Ranges] = ({}, {}),
        **options: Any,
    ) -> None:
        chosen = JoinOptions(**options)
        is_one = left is right
        if query.sorted and (is_stream(left) or is_stream(right)):
            sources = [Supply(left)] if is_one else [Supply(left), Supply(right)]
            schemas = (sources[0].schema, sources[-1].schema)
            params = plan_join(
                *schemas, query, device, ranges=ranges, is_one=is_one, options=chosen
            )
        else:
            table = as_table(left)
            tables = (table, table if is_one else as_table(right))
            params, sources = plan_join_of_tables(*tables, query, device, options=chosen)
        # The rows of one input pass to both sides by reference.
        names = ("left", "right") if len(sources) > 1 else ("both",)
        self._connect(params, dict(zip(names, sources, strict=True)))

    @classmethod
    def of_tagged(
        cls,
        batches: Input,
        layout: TaggedLayout,
        query: Query,
        device: Device,
        *,
        ranges: tuple[Ranges, Ranges] = ({}, {}),
        **options: Any,
    ) -> "Join":
        """Return the join of one stream that holds the rows of both sides in order of arrival.

        Memory depends on the window and the buffers, not on the length of the stream, whose values
        are checked as those of other streams.

        Parameters
        ----------
        batches : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
            The rows, in the form that ``layout`` describes; on a tie left rows come first.
        layout : TaggedLayout
            Positions of the columns of both sides.
        query, device, ranges, options
            As for :class:`Join`.
        """
        join = cls.__new__(cls)
        params = plan_join(
            layout.left, layout.right, query, device,
            ranges=ranges, layout=layout, options=JoinOptions(**options),
        )  # fmt: skip
        join._connect(params, {"tagged": Supply(batches)})
        return join

    def _connect(self, params: JoinParams, sources: Mapping[str, Supply]) -> None:
        """Prepare the graph of the join, behind its sources."""
        self.params, self.schema = params, params.schema
        self._graph = ExecStreamGraph(params.options.buffer_rows)
        inputs: list[Stream] = []
        for name, supply in sources.items():
            source: ArrowSource[pa.RecordBatch] = ArrowSource(name)
            inputs.append(self._graph.add(source, ArrowSourceParams(supply=supply.batches)))
        if len(inputs) == 1 and params.layout is None:
            both = self._graph.add(Broadcast("both"), StreamParams())
            self._graph.connect(inputs[0], both)
            inputs = [both, both]
        self._stream = add_join(self._graph, inputs, params)
        self._graph.prepare()
        self._before: dict[str, int] = {}

    @property
    def query(self) -> Query:
        """The query."""
        return self.params.query

    @property
    def device(self) -> Device:
        """The device."""
        return self.params.device

    @property
    def plan(self) -> EncodingPlan:
        """How rows are encoded as tuples."""
        return self.params.plan

    @property
    def measured(self) -> Measured:
        """What was measured in the last run."""
        return self._stream.measured

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
        yield from Scheduler(self._graph, Quantum(self.params.options.batch_rows)).read()
        if self.measured.refused is not None:
            raise self.measured.refused

    def run(self) -> JoinResult:
        """Run the join and gather all results."""
        self._stream.recording = True
        table = pa.Table.from_batches(list(self.batches()), schema=self.schema)
        measured = self.measured
        return JoinResult(
            table, measured.pairs, self.counters(), measured.cycles, measured.seconds,
            measured.latency,
        )  # fmt: skip

    def describe(self) -> str:
        """Return a description of the streams and buffers, one buffer per line."""
        return self._graph.plan()

    def counters(self) -> dict[str, int]:
        """Return the increase of the device's counters since the last run began."""
        now = self.device.counters()
        return {name: value - self._before.get(name, 0) for name, value in now.items()}


def join_tables(
    left: Input, right: Input, query: Query, device: Device, **options: Any
) -> JoinResult:
    """Join two tables; see :class:`Join` for the parameters and errors."""
    return Join(left, right, query, device, **options).run()
