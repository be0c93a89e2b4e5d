# SPDX-License-Identifier: Apache-2.0
"""The join of two tables on a device: a graph of execution streams from Arrow to Arrow.

Sources -> merge by order -> accelerator -> materialize. The graph is driven by one scheduler, so
feeding the device and draining it cannot deadlock, and buffers stay bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.capacity import require_capacity
from host.device import Device
from host.encode import EncodedJoin, EncodedSide, encode
from host.ordering import Ordering
from host.query import JoinQuery
from host.runtime import Columns, ExecStreamGraph, Quantum, Scheduler
from host.streams.accelerator import AcceleratorJoin, AcceleratorJoinParams, Progress
from host.streams.materialize import Materialize, MaterializeParams
from host.streams.merge import OrderMerge, OrderMergeParams
from host.streams.source import ArrowSource, ArrowSourceParams
from host.streams.watch import Deadline
from host.tables import Input, as_table, output_schema

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
    """One join of two tables, checked and encoded; run it once or several times.

    Parameters
    ----------
    left, right : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows; batches are gathered into a table. An iterable without any batch has no schema,
        so give a reader or a table if there may be none.
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

    Raises
    ------
    UsageError
        If the query does not suit the tables or the device.
    WindowOverflowError
        If a time-based window holds more rows than the device's capacity.
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
    ) -> None:
        self.left, self.right = as_table(left), as_table(right)
        self.query = query
        self.device = device
        self.schema = output_schema(self.left.schema, self.right.schema, query.suffix)
        self.encoded: EncodedJoin = encode(self.left, self.right, query, device.manifest)
        require_capacity(self.encoded, device.manifest)
        self._before: dict[str, int] = {}
        self._visits: list[Columns] = []
        self._recording = record or trace
        self._accelerator = AcceleratorJoin()
        params = AcceleratorJoinParams(
            device=device,
            bounds=self.encoded.bounds,
            window=self.encoded.window,
            ordering=_precision(query.ordering, device),
            strict=query.ordering.period == 1,
            trace=trace,
            deadline=Deadline() if deadline is None else deadline,
            report=report,
        )
        self._batch_rows = batch_rows
        self._quantum = Quantum(batch_rows)
        self._graph = self._build(params, buffer_rows)

    def _build(self, params: AcceleratorJoinParams, buffer_rows: int) -> ExecStreamGraph:
        graph = ExecStreamGraph(buffer_rows)
        merge = OrderMerge()
        graph.add(merge, OrderMergeParams())
        for name, side in _columns(self.encoded).items():
            source: ArrowSource[Columns] = ArrowSource(name)
            graph.add(source, ArrowSourceParams(supply=partial(tuple, [side])))
            graph.connect(source, merge)
        graph.add(self._accelerator, params)
        graph.connect(merge, self._accelerator)
        materialize = Materialize()
        graph.add(
            materialize,
            MaterializeParams(
                left=self.left.combine_chunks(),
                right=self.right.combine_chunks(),
                schema=self.schema,
                rows=self._batch_rows,
                observe=self._visit,
            ),
        )
        graph.connect(self._accelerator, materialize)
        graph.prepare()
        return graph

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join, yielding the results in order as they come.

        A reader that stops early just closes the iterator; the device can be used again.
        """
        self._before = self.device.counters()
        self._visits.clear()
        yield from Scheduler(self._graph, self._quantum).read()

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


def _precision(ordering: Ordering, device: Device) -> Ordering:
    """What the accelerator is set to: strict order is restored from full groups, at full speed."""
    return Ordering(device.manifest.probes) if ordering.period == 1 else ordering


def _columns(encoded: EncodedJoin) -> dict[str, Columns]:
    """Both sides as batches of the same columns."""
    sides = {"left": encoded.left, "right": encoded.right}
    has_nulls = any(side.valid is not None for side in sides.values())
    return {name: _side_columns(side, has_nulls) for name, side in sides.items()}


def _side_columns(side: EncodedSide, has_nulls: bool) -> Columns:
    arrays: dict[str, npt.NDArray[Any]] = {"row": side.row, "timestamp": side.timestamp}
    arrays |= {f"key.{name}": column for name, column in side.keys.items()}
    if has_nulls:
        everything = np.ones(len(side), np.bool_)
        arrays["valid"] = everything if side.valid is None else side.valid
    return Columns(arrays)
