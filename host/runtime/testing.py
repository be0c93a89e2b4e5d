# SPDX-License-Identifier: Apache-2.0
"""A harness for tests of streams: a mock producer, generators, and output checks.

A generator is a function from row numbers to values; both are arrays of int64. A test of a stream
then takes three lines: the input, the stream, and the expected output.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.arrays import Int64s
from host.runtime.graph import ExecStreamGraph, Stream
from host.runtime.scheduler import Scheduler
from host.runtime.stream import Quantum, SingleOutputExecStream, StreamParams, StreamResult

__all__ = [
    "Generator",
    "MockProducer",
    "MockProducerParams",
    "duplicates",
    "ramp",
    "transform_graph",
    "values_of",
    "verify_output",
]

Generator = Callable[[Int64s], Int64s]


def ramp(rows: Int64s) -> Int64s:
    """Generate 0, 1, 2, …"""
    return rows


def duplicates(times: int) -> Generator:
    """Return the generator of 0, 0, 1, 1, 2, 2, …, every value ``times`` times."""
    return lambda rows: rows // times


@dataclass(frozen=True)
class MockProducerParams(StreamParams):
    """Parameters of :class:`MockProducer`.

    Parameters
    ----------
    rows : int
        Total number of rows.
    generate : callable
        Generator of the values.
    batch_rows : int
        Largest number of rows in a batch.
    column : str
        Name of the only column, whose type is int64.
    """

    rows: int
    generate: Generator = ramp
    batch_rows: int = 1000
    column: str = "value"


class MockProducer(SingleOutputExecStream[MockProducerParams, pa.RecordBatch]):
    """Stream that produces generated rows, one batch per ``execute``, and yields after each.

    Attributes
    ----------
    closed : int
        Number of calls of ``close``.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._row = 0
        self.closed = 0

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._row = 0

    def execute(self, quantum: Quantum) -> StreamResult:
        result = self.precheck_output_buffer()
        if result is not StreamResult.YIELD:
            return result
        left = self.params.rows - self._row
        if not left:
            return self.finish()
        count = min(left, self.params.batch_rows, quantum.rows, self.output.provide())
        values = self.params.generate(np.arange(self._row, self._row + count))
        self.output.produce(pa.record_batch({self.params.column: values}))
        self._row += count
        return StreamResult.YIELD

    def close_impl(self) -> None:
        self.closed += 1


def transform_graph(
    source: MockProducerParams,
    *stages: tuple[Stream, StreamParams],
    buffer_rows: int = 1000,
) -> ExecStreamGraph:
    """Return a prepared graph of a mock producer followed by the stages in a chain."""
    graph = ExecStreamGraph(buffer_rows)
    previous = graph.add(MockProducer(), source)
    for stream, params in stages:
        graph.add(stream, params)
        graph.connect(previous, stream)
        previous = stream
    graph.prepare()
    return graph


def values_of(batches: Iterable[pa.RecordBatch]) -> list[int | None]:
    """Return all values of the first column."""
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def verify_output(
    graph: ExecStreamGraph,
    rows: int,
    generate: Generator,
    quanta: Sequence[int] = (1, 7, 1000, 1 << 16),
) -> None:
    """Execute ``graph`` once with each quantum, and check that it produces the generated rows.

    Raises
    ------
    AssertionError
        If the output differs; the error names the row.
    """
    expected = generate(np.arange(rows))
    for quantum in quanta:
        got = values_of(Scheduler(graph, Quantum(quantum)).run())
        wrong = [index for index, value in enumerate(got[:rows]) if value != expected[index]]
        if wrong:
            at = wrong[0]
            raise AssertionError(
                f"With a quantum of {quantum}, row {at} is {got[at]}, not {expected[at]}"
            )
        if len(got) != rows:
            raise AssertionError(f"With a quantum of {quantum}: {len(got)} rows, not {rows}")
