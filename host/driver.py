# SPDX-License-Identifier: Apache-2.0
"""The join of two inputs on a device: a graph of execution streams from Arrow to Arrow.

Two sources -> accelerator -> materialize. The graph is driven by one scheduler, so feeding the
device and draining it cannot deadlock, and buffers stay bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.capacity import require_capacity, require_room
from host.device import Device
from host.encode import EncodingPlan, Ranges, arrange, plan_tables
from host.query import JoinQuery
from host.runtime import Columns, ExecStreamGraph, Quantum, Scheduler
from host.streams.accelerator import Progress
from host.streams.counters import StagingCounters
from host.streams.device_join import JoinOptions, PreparedJoin, add_device_join, prepare_join
from host.streams.row_store import TableRows
from host.streams.source import ArrowSource, ArrowSourceParams
from host.streams.watch import Deadline
from host.tables import Input, Supply, as_table, is_stream, output_schema

__all__ = [
    "Deadline",
    "Input",
    "JoinResult",
    "Latency",
    "Progress",
    "TableJoin",
    "join_batches",
    "join_tables",
    "output_schema",
]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Latency:
    """What a trace shows, in clock cycles of the device.

    Parameters
    ----------
    processing : array of int64
        By tuple, in the order of arrival: from its acceptance to the star behind its results.
    visiting : array of int64
        By result: from the acceptance of the later tuple to the emission of the pair.
    emitted : array of int64
        By result: the cycle of its emission, since the device was opened.
    """

    processing: Int64s
    visiting: Int64s
    emitted: Int64s


@dataclass(frozen=True)
class JoinResult:
    """A join that has been run.

    Parameters
    ----------
    table : pa.Table
        The left columns, then the right columns.
    pairs : tuple of array of int64
        Row of the left table, and of the right table, of every result.
    counters : mapping of str to int
        What the device's counters have grown by.
    cycles, device_seconds : int, float
        Clock cycles, and time, spent in the device.
    latency : Latency or None
        If it was traced.
    """

    table: pa.Table
    pairs: tuple[Int64s, Int64s]
    counters: Mapping[str, int]
    cycles: int
    device_seconds: float
    latency: Latency | None = None


class TableJoin:
    """One join of two inputs, checked and planned.

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
    trace : bool
        Whether to take the cycles in which tuples and results come and go; implies ``record``.
    record : bool
        Whether to keep the row numbers of all results, for :attr:`pairs`.
    deadline : Deadline, optional
        How long the device may make no progress.
    report : callable, optional
        Is called with a :class:`Progress` now and then.
    batch_rows : int
        Most rows of a result batch.
    buffer_rows : int
        Rows in each buffer between two streams.
    ranges : tuple of mapping
        For streams: what is known of columns, see :func:`~host.encode.plan.plan_streams`.

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
        trace: bool = False,
        record: bool = False,
        deadline: Deadline | None = None,
        report: Callable[[Progress], None] | None = None,
        batch_rows: int = 1 << 16,
        buffer_rows: int = 1 << 17,
        ranges: tuple[Ranges, Ranges] = ({}, {}),
    ) -> None:
        self.query = query
        self.device = device
        self._before: dict[str, int] = {}
        self._visits: list[Columns] = []
        self._recording = record or trace
        self._quantum = Quantum(batch_rows)
        options = JoinOptions(
            trace=trace,
            deadline=Deadline() if deadline is None else deadline,
            report=report,
            batch_rows=batch_rows,
            observe=self._visit,
        )
        if query.sorted and (is_stream(left) or is_stream(right)):
            sources = [Supply(left), Supply(right)]
            join = prepare_join(
                sources[0].schema,
                sources[1].schema,
                query,
                device,
                ranges=ranges,
                options=options,
            )
        else:
            join, sources = _tables_join(as_table(left), as_table(right), query, device, options)
        self.schema = join.schema
        self.encoded: EncodingPlan = join.plan
        self._accelerator = join.accelerator
        self._graph = ExecStreamGraph(buffer_rows)
        producers = []
        for source, name in zip(sources, ("left", "right"), strict=True):
            stream: ArrowSource[pa.RecordBatch] = ArrowSource(name)
            self._graph.add(stream, ArrowSourceParams(supply=source.batches))
            producers.append(stream)
        add_device_join(self._graph, producers[0], producers[1], join)
        self._graph.prepare()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join, yielding the results in order as they come.

        A reader that stops early just closes the iterator; the device can be used again.
        """
        self._before = self.device.counters()
        self._visits.clear()
        yield from Scheduler(self._graph, self._quantum).read()

    @property
    def staged(self) -> StagingCounters:
        """What the staging of the last join's batches into input words has cost."""
        return self._accelerator.staged

    def describe(self) -> str:
        """The streams and the buffers between them, a line each."""
        return self._graph.plan()

    @property
    def cycles(self) -> int:
        """Clock cycles that the device has run for the last join."""
        return 0 if self._accelerator.watch is None else self._accelerator.watch.cycles

    @property
    def device_seconds(self) -> float:
        """Time that the last join has spent in the device."""
        return 0.0 if self._accelerator.watch is None else self._accelerator.watch.seconds

    def counters(self) -> dict[str, int]:
        """What the device's counters have grown by since the last join began."""
        now = self.device.counters()
        return {name: value - self._before.get(name, 0) for name, value in now.items()}

    @property
    def pairs(self) -> tuple[Int64s, Int64s]:
        """Rows of the left and of the right table, of every result, if they were recorded."""
        return self._visited("left"), self._visited("right")

    @property
    def latency(self) -> Latency | None:
        """Latencies of the last join, if it was traced."""
        trace = self._accelerator.trace
        if trace is None:
            return None
        return Latency(trace.processing, self._visited("latency"), self._visited("emitted"))

    def _visit(self, pairs: Columns) -> None:
        if self._recording:
            self._visits.append(pairs)

    def _visited(self, name: str) -> Int64s:
        parts = [pairs[name] for pairs in self._visits if name in pairs.arrays]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def run(self) -> JoinResult:
        """Run the join and gather everything."""
        self._recording = True
        table = pa.Table.from_batches(list(self.batches()), schema=self.schema)
        return JoinResult(
            table, self.pairs, self.counters(), self.cycles, self.device_seconds, self.latency
        )


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
    schema = output_schema(left.schema, right.schema, query.suffix)
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
        query.ordering,
        left.schema,
        right.schema,
        schema,
        options,
        rows,
    )
    return join, supplies
