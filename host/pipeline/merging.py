# SPDX-License-Identifier: Apache-2.0
"""Merge sources that are sorted by time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
import time
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from host.arrays import Int64s
from host.columns.kinds import column_type, integer_view
from host.columns.times import require_temporal
from host.errors import OrderError, UnsupportedTypeError, UsageError
from host.pipeline.sorting import key_columns
from host.runtime import (
    Buffer,
    ConfluenceExecStream,
    ExecStreamGraph,
    Quantum,
    Scheduler,
    StreamParams,
    StreamResult,
)
from host.runtime.source import ArrowSource, ArrowSourceParams

__all__ = [
    "ScaleGate",
    "ScaleGateParams",
    "merge_sorted",
]

# Merge sources that are sorted by time, as far as nothing can come before their rows any more.

Times: TypeAlias = Int64s
#: What a source has shown that has shown nothing: less than any time.
_NOTHING = -(1 << 63)


@dataclass(frozen=True)
class ScaleGateParams(StreamParams):
    """Parameters of :class:`ScaleGate`.

    Parameters
    ----------
    by : str
        Column by which every source is sorted, of a type that can give the order of a join.
    watermarks : sequence of callable, optional
        One for each source. It returns the least time that the source may still send, as an
        integer, or None if it does not know. It is asked while the source has no row.
    deadline : float, optional
        Seconds after which a source that all others wait for is excluded. Without a deadline they
        wait for as long as it takes.
    clock : callable
        Returns seconds.
    names : sequence of str, optional
        What the sources are called in messages; by default they have numbers.
    """

    by: str
    watermarks: Sequence[Callable[[], int | None]] | None = None
    deadline: float | None = None
    clock: Callable[[], float] = time.monotonic
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.deadline is not None and self.deadline <= 0:
            raise UsageError(f"The deadline of a source must be above zero, not {self.deadline!r}.")
        if self.watermarks is not None and self.deadline is None:
            raise UsageError(
                "Watermarks of sources need a deadline, so that nobody waits for ever for one that "
                "does not rise; give deadline=."
            )


class _Source:
    """A source: its buffer, and what it has shown."""

    def __init__(self, number: int, buffer: Buffer[pa.RecordBatch], name: str | None) -> None:
        self.number, self._name = number, name
        self.buffer = buffer
        self.mark = _NOTHING
        self.rows = 0  # rows that were taken
        self.excluded = False
        self.times: Times = np.empty(0, np.int64)  # of the first batch, once it was checked

    def look(self, by: str, floor: int) -> None:
        """Read and check the times of the first batch, if there is one that was not looked at."""
        if len(self.times) or not self.buffer.demand():
            return
        batch = self.buffer.access()
        column = batch.column(key_columns(batch.schema, [by])[0])
        if column.null_count:
            raise OrderError.null(by, self.rows + int(np.argmax(column.is_null().to_numpy(False))))
        times = _times(column)
        least = floor if self.excluded else self.mark
        wrong = np.flatnonzero(times < np.concatenate([[least], times[:-1]]))
        if len(wrong):
            at = int(wrong[0])
            before = least if at == 0 else int(times[at - 1])
            raise OrderError.disorder(
                by, self.rows + at, before, int(times[at]), part=self.number, source=self._name
            )
        self.excluded, self.times = False, times

    @property
    def is_open(self) -> bool:
        """Whether rows may follow those of the first batch."""
        return not self.buffer.last or self.buffer.rows > len(self.times)

    def bound(self) -> tuple[int, int]:
        """Return what the source can send next at the earliest, behind its first batch."""
        return (int(self.times[-1]) if len(self.times) else self.mark, self.number)

    def take(self, count: int) -> None:
        """Remove the first rows of the first batch."""
        if count:
            self.mark = int(self.times[count - 1])
            self.times = self.times[count:]
            self.rows += count
            self.buffer.access()
            self.buffer.consume(count)


def _times(column: pa.Array) -> Times:
    """Return the values of an order column as integers.

    Raises
    ------
    UsageError
        If it cannot give an order, or a value does not fit.
    """
    try:
        require_temporal(column_type(pa.schema([("t", column.type)]), "t", ""))
    except UnsupportedTypeError as error:
        raise UsageError(f"Rows cannot be merged by values of type {column.type}.") from error
    values = integer_view(column)
    if values.dtype == np.uint64 and len(values) and values.max() > np.iinfo(np.int64).max:
        raise UsageError(f"Rows are merged by values below 2**63, not {values.max()}.")
    return values.astype(np.int64)


class ScaleGate(ConfluenceExecStream[ScaleGateParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that merges sorted sources into one sorted stream of ready rows.

    A row leaves as soon as no source can send what comes before it in the order of (time, source):
    the times of a source do not fall, so the latest one is its watermark. Unlike
    :class:`host.pipeline.sorting.SortedMerge`, it therefore does not need a row of every source
    to go on, and it checks the order of each. :class:`sim.model.scale_gate.ScaleGateReference`
    says the same word by word, and :mod:`hdl.scalegate` does it in hardware.

    A source that has ended, or was excluded, holds nobody back. An excluded source comes back with
    its next row, which must not be older than what has left.

    Attributes
    ----------
    stalls : list of float
        Seconds for which rows waited for each source.
    excluded : list of bool
        Whether each source is excluded at the moment.
    """

    def prepare(self, params: ScaleGateParams) -> None:
        super().prepare(params)
        if params.watermarks is not None and len(params.watermarks) != len(self.inputs):
            raise UsageError(
                f"There must be a watermark for each of {len(self.inputs)} sources, not "
                f"{len(params.watermarks)}."
            )

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        names: Sequence[str | None] = self.params.names or [None] * len(self.inputs)
        self._sources = [
            _Source(number, *given)
            for number, given in enumerate(zip(self.inputs, names, strict=True))
        ]
        self._floor = _NOTHING
        self._waiting: tuple[_Source, float] | None = None  # for whom, and since when
        self.stalls = [0.0] * len(self._sources)

    @property
    def excluded(self) -> list[bool]:
        """Whether each source is excluded at the moment."""
        return [source.excluded for source in self._sources]

    def execute(self, quantum: Quantum) -> StreamResult:
        return self.hand_on(quantum, self._next)

    def _next(self) -> pa.RecordBatch | StreamResult:
        while not all(buffer.at_end for buffer in self.inputs):
            for source in self._sources:
                source.look(self.params.by, self._floor)
            self._ask_watermarks()
            rows = self._ready(self.output.provide())
            if rows is not None:
                return rows
            if not self._exclude():
                return StreamResult.BUF_UNDERFLOW
        return self.finish()

    def _ask_watermarks(self) -> None:
        """Raise what sources without a row have shown to what they say."""
        for source, ask in zip(self._sources, self.params.watermarks or (), strict=False):
            if not len(source.times):
                said = ask()
                source.mark = source.mark if said is None else max(source.mark, said)

    def _open(self) -> list[_Source]:
        """Return the sources that may hold others back."""
        return [source for source in self._sources if source.is_open and not source.excluded]

    def _ready(self, most: int) -> pa.RecordBatch | None:
        """Take and return up to so many ready rows; None if there is none."""
        held = [source for source in self._sources if len(source.times)]
        if not held:
            self._end_stall()
            return None
        times = np.concatenate([source.times for source in held])
        sizes = [len(source.times) for source in held]
        numbers = np.repeat([source.number for source in held], sizes)
        order = np.lexsort((numbers, times))
        last_time, last = min((source.bound() for source in self._open()), default=(None, 0))
        if last_time is not None:
            ready = (times < last_time) | ((times == last_time) & (numbers <= last))
            most = min(most, int(np.count_nonzero(ready)))
        order = order[:most]
        if not len(order):
            self._note_stall(self._sources[last])
            return None
        self._end_stall()
        self._floor = int(times[order[-1]])
        taken = np.bincount(numbers[order], minlength=len(self._sources))
        if np.count_nonzero(taken) == 1:
            (only,) = np.flatnonzero(taken)
            rows = self._sources[only].buffer.access().slice(0, len(order))
        else:
            heads = pa.concat_batches([source.buffer.access() for source in held])
            rows = heads.take(pa.array(order))
        for source, count in zip(self._sources, taken, strict=True):
            source.take(int(count))
        return rows

    def _note_stall(self, source: _Source) -> None:
        """Note that rows wait for ``source`` from now on, if they have not done so before."""
        if self._waiting is None or self._waiting[0] is not source:
            self._end_stall()
            self._waiting = source, self.params.clock()

    def _end_stall(self) -> None:
        """Count how long rows have waited."""
        if self._waiting is not None:
            source, since = self._waiting
            self.stalls[source.number] += self.params.clock() - since
            self._waiting = None

    def _exclude(self) -> bool:
        """Exclude the source that rows have waited for too long; return whether there is one."""
        deadline = self.params.deadline
        if self._waiting is None or deadline is None:
            return False
        source, since = self._waiting
        if self.params.clock() - since < deadline:
            return False
        self._end_stall()
        source.excluded = True
        return True

    def wait(self, seconds: float) -> bool:
        if self._waiting is None or self.params.deadline is None:
            return False
        left = self._waiting[1] + self.params.deadline - self.params.clock()
        time.sleep(max(0.0, min(seconds, left)))
        return True


# Several sorted sources of batches as one, merged in a graph of its own.


def merge_sorted(
    supplies: Sequence[Callable[[], Iterable[pa.RecordBatch]]], by: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted sources in the order of ``by``, and of the sources on a tie.

    Parameters
    ----------
    supplies : sequence of callable
        Each returns the batches of a source, all of one schema.
    by : str
        Column that every source is sorted by.
    names : sequence of str
        What the sources are called in messages, such as ``"file 'a.parquet'"``.

    Raises
    ------
    OrderError
        If a source is not sorted; the message names it.
    """
    graph = ExecStreamGraph()
    gate = graph.add(ScaleGate(), ScaleGateParams(by=by, names=names))
    for supply in supplies:
        graph.connect(graph.add(ArrowSource(), ArrowSourceParams(supply=supply)), gate)
    graph.prepare()
    with closing(Scheduler(graph).read()) as batches:
        yield from batches
