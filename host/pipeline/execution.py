# SPDX-License-Identifier: Apache-2.0
"""A pipeline whose source has been bound: as a graph of streams, in threads, or as arrays."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
import threading
from typing import Any

import numpy as np
import pyarrow as pa

from host.arrays import Array
from host.errors import FailureError, UnsupportedTypeError, UsageError
from host.pipeline.flags import Operation, Stateful
from host.pipeline.operations import (
    Limit,
    Limited,
    LimitParams,
    Sorted,
    Step,
    fused_runs,
    plan_steps,
    runs_ahead,
    short_circuits,
    stops_early,
)
from host.pipeline.parallel import Parallel, ParallelParams, Spools
from host.pipeline.row_operators import CopyCounters, FusedStage, FusedStageParams, Stateless
from host.pipeline.sorting import Sort, SortedMerge, SortedMergeParams, SortParams
from host.pipeline.source import Bound, Source, Split
from host.runtime import (
    BUFFER_BYTES,
    ExecStreamGraph,
    Governor,
    OnError,
    Passing,
    Quantity,
    Quantum,
    Requirements,
    Scheduler,
    Stream,
    StreamResult,
)
from host.runtime.source import ArrowSource, ArrowSourceParams

__all__ = [
    "Cancelled",
    "Execution",
    "Settings",
    "arrays_of",
]

# Settings of the run of a pipeline.


@dataclass(frozen=True)
class Settings:
    """Settings of the run of a pipeline.

    Parameters
    ----------
    threads : int
        Number of threads for the parts of a splittable source; 1 runs sequentially, without
        threads.
    fuse : bool
        Whether neighbouring stateless operations are fused into one pass.
    rows : int
        Largest number of rows in a batch.
    buffer_rows : int
        Capacity of a buffer between two streams, in rows.
    governor : Governor
        Governor of threads and staging buffers.
    counters : CopyCounters
        Counters of batches and copies.
    errors : list of Exception, optional
        What rows that are left out raised; by default, the first error ends the run.
    """

    threads: int = 1
    fuse: bool = True
    rows: int = 1 << 16
    buffer_rows: int = 1 << 17
    governor: Governor = field(default_factory=Governor)
    counters: CopyCounters = field(default_factory=CopyCounters)
    errors: list[Exception] | None = None


# A pipeline whose source has been bound: streams of a graph, run alone or in threads.


class Cancelled(Exception):
    """Raised inside a run that is no longer wanted."""


class Execution:
    """A pipeline whose source has been bound; it can be run once or several times.

    Parameters
    ----------
    source : Source
        Source of the rows, which the constructor binds.
    operations : sequence of Operation
        Operations of the pipeline.
    settings : Settings
        Settings of the run.
    ordered : bool
        Whether the order of the resulting rows is observed.
    is_checked : bool
        Whether the reader of the rows finds out itself if they are not in a declared order.
    """

    def __init__(
        self,
        source: Source,
        operations: Sequence[Operation],
        settings: Settings,
        *,
        ordered: bool = True,
        is_checked: bool = False,
    ) -> None:
        self.settings = settings
        self._source_name = str(source)
        self.bound: Bound = source.bind()
        is_checked = is_checked or any(operation.checks_order for operation in operations)
        self.bound = self.bound.checked(self._source_name, order=not is_checked)
        bound = [operation.bound() for operation in operations]
        self.steps = plan_steps(bound, self.bound.traits, self.bound.schema, ordered=ordered)
        last = self.steps[-1] if self.steps else None
        self.schema = self.bound.schema if last is None else last.output
        self.traits = self.bound.traits if last is None else last.after
        self.ordered = ordered

    @property
    def threads(self) -> int:
        """Number of threads that there is work for."""
        return min(self.settings.threads, len(self.bound.splits))

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Run the pipeline and yield batches; closing the generator stops everything."""
        if self.threads > 1:
            yield from self._in_threads()
        else:
            yield from self._run(self.graph())

    def graph(self) -> ExecStreamGraph:
        """Return the prepared graph of a sequential run."""
        graph = self._empty()
        self._streams(graph, self.bound.batches, self.steps, ahead=False)
        graph.prepare()
        return graph

    def build(self, graph: ExecStreamGraph) -> Stream:
        """Add the streams of the pipeline to ``graph``; return the one with the result."""
        return self._streams(graph, self.bound.batches, self.steps)

    # The run in words.

    def explain(self) -> str:
        """Return a description of the run: operations, flags, passes, segments, copies, buffers."""
        places = self._places()
        lines = [("source", self._source_name, str(self.bound.traits), "")]
        for step in self.steps:
            lines.append((places[id(step)], str(step.operation), str(step.after), step.reason))
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        how = "sequential, one graph"
        if self.threads > 1:
            parts = len(self.bound.splits)
            how = f"{self.threads} threads, {parts} parts; {self._named_segments()}"
        graph = self.graph()
        text.append(f"run      {how}")
        text += [f"copy     {line}" for line in _copies(graph)] or ["copy     none"]
        text += [f"buffer   {line}" for line in graph.plan().splitlines()]
        return "\n".join(text)

    def _places(self) -> dict[int, str]:
        """Return where each step runs, by its identity: in which pass, if it is fused."""
        places = {id(step): "-" for step in self.steps}
        number = 0
        for run in fused_runs(self.steps):
            if not isinstance(run[0].operation, Stateless):
                places[id(run[0])] = "stateful"
                continue
            for index, step in enumerate(run):
                number += index == 0 or not self.settings.fuse
                places[id(step)] = f"pass {number}"
        return places

    def _named_segments(self) -> str:
        """Return the operations in each segment."""
        parts: dict[int, list[str]] = {}
        for step in self.steps:
            if not step.vanishes:
                parts.setdefault(step.segment, []).append(str(step.operation))
        named = (f"segment {number}: {', '.join(names)}" for number, names in parts.items())
        return "; ".join(named) or "no segments"

    # The streams of steps in a graph, and its run.

    def _empty(self, governor: Governor | None = None) -> ExecStreamGraph:
        """Return a graph without streams; its resources are those of the run, or of a part."""
        shared = self.settings.governor if governor is None else governor
        return ExecStreamGraph(self.settings.buffer_rows, shared)

    def _source(self, graph: ExecStreamGraph, supply: Split, *, ahead: bool = True) -> Stream:
        """Add a stream of supplied batches; see :func:`runs_ahead` for ``ahead``."""
        params = ArrowSourceParams(supply=supply, rows=self.settings.rows, ahead=ahead)
        return graph.add(ArrowSource("source"), params)

    def _streams(
        self,
        graph: ExecStreamGraph,
        supply: Split,
        steps: Sequence[Step],
        counters: CopyCounters | None = None,
        *,
        ahead: bool = True,
    ) -> Stream:
        """Add the streams of a source and ``steps``; see :func:`runs_ahead` for ``ahead``."""
        source = self._source(graph, supply, ahead=runs_ahead(steps, ahead))
        return self._behind(graph, source, steps, counters, ahead=ahead)

    def _behind(
        self,
        graph: ExecStreamGraph,
        producer: Stream,
        steps: Sequence[Step],
        counters: CopyCounters | None = None,
        *,
        ahead: bool = True,
    ) -> Stream:
        """Add the streams of ``steps`` behind ``producer``."""
        counted = self.settings.counters if counters is None else counters
        runs = list(fused_runs(steps))
        for number, run in enumerate(runs, 1):
            operation = run[0].operation
            if isinstance(operation, Stateful):
                producer = operation.build(graph, producer, run[0].place)
                continue
            operators = [step.operation for step in run if isinstance(step.operation, Stateless)]
            later = [step for each in runs[number:] for step in each]
            for fused in [operators] if self.settings.fuse else [[each] for each in operators]:
                stage = FusedStage(" ".join(map(str, fused)))
                halves = self.settings.errors is not None
                graph.add(stage, FusedStageParams(fused, counted, runs_ahead(later, ahead), halves))
                graph.connect(producer, stage)
                producer = stage
        return producer

    def _run(
        self, graph: ExecStreamGraph, stop: threading.Event | None = None
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run a prepared graph and yield its batches, until ``stop`` is set."""

        def observe(stream: Stream, result: StreamResult) -> None:
            if stop is not None and stop.is_set():
                raise Cancelled

        errors = self.settings.errors
        reaction = OnError.RAISE if errors is None else OnError.RESUME
        scheduler = Scheduler(graph, Quantum(self.settings.rows), observe, reaction)
        try:
            yield from scheduler.read()
        finally:
            if errors is not None:
                errors.extend(error for _, error in scheduler.errors)

    # In threads.

    def _in_threads(self) -> Generator[pa.RecordBatch, None, None]:
        """Run the pipeline in threads, segment after segment, and yield batches.

        A segment is what comes before an operation that needs the rows of all parts. The parts of a
        segment run separately, and the operation joins them. What must wait for it, or for the next
        segment, waits in a quarter of the staging buffers, and in files beyond that.
        """
        governor = self.settings.governor
        share = Requirements(optimum=Quantity(buffers=governor.available.buffers // 4))
        with governor.lending("rows between segments", share) as granted:
            with closing(Spools(granted.buffers * BUFFER_BYTES)) as spools:
                yield from self._segments(self.bound.splits, self.steps, spools)

    def _segments(
        self, splits: Sequence[Split], steps: Sequence[Step], spools: Spools
    ) -> Generator[pa.RecordBatch, None, None]:
        cut = next(
            (
                index
                for index, step in enumerate(steps)
                if isinstance(step.operation, Stateful) and not step.vanishes
            ),
            len(steps),
        )
        own, rest = steps[:cut], steps[cut:]
        if rest and not stops_early(rest):
            batches = self._segment(splits, own, rest[0], spools)
            if len(rest) == 1:
                yield from batches
            else:
                parts = _in_parts(batches, self.settings.threads, spools)
                yield from self._segments(parts, rest[1:], spools)
            return
        graph = self._empty()
        limit = rest[0].operation if rest else None
        observed = self.ordered if not steps else steps[0].place.order_matters
        source = self._parts(graph, splits, own, limit, ordered=observed)
        self._behind(graph, source, rest, ahead=False)
        graph.prepare()
        yield from self._run(graph)

    def _parts(
        self,
        graph: ExecStreamGraph,
        splits: Sequence[Split],
        steps: Sequence[Step],
        last: Operation | None,
        *,
        ordered: bool,
    ) -> Stream:
        """Add a stream that runs ``steps``, and a share of ``last``, on all parts in threads."""
        tasks = [partial(self._part, split, steps, last) for split in splits]
        return graph.add(Parallel(), ParallelParams(tasks, self.settings.threads, ordered))

    def _segment(
        self, splits: Sequence[Split], steps: Sequence[Step], last: Step, spools: Spools
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run a segment, and the operation that ends it; yield what that puts out."""
        graph = self._empty()
        if isinstance(last.operation, Sorted):
            merge = graph.add(SortedMerge(), SortedMergeParams(by=last.operation.by))
            for part in self._kept_parts(splits, steps, last.operation, spools):
                graph.connect(self._source(graph, part), merge)
        else:
            # Whoever observes the result, the operation may rely on the order of its input.
            source = self._parts(graph, splits, steps, last.operation, ordered=True)
            self._behind(graph, source, [last])
        graph.prepare()
        yield from self._run(graph)

    def _kept_parts(
        self, splits: Sequence[Split], steps: Sequence[Step], last: Operation, spools: Spools
    ) -> list[Split]:
        """Run ``steps``, and a share of ``last``, on all parts to their end, and keep the rows."""
        kept: dict[int, Split] = {}

        def keep(
            number: int, split: Split, stop: threading.Event, governor: Governor
        ) -> Generator[pa.RecordBatch, None, None]:
            kept[number] = spools.keep(self._part(split, steps, last, stop, governor))
            yield from ()

        graph = self._empty()
        tasks = [partial(keep, number, split) for number, split in enumerate(splits)]
        graph.add(Parallel(), ParallelParams(tasks, self.settings.threads, ordered=False))
        graph.prepare()
        for _ in self._run(graph):
            raise FailureError("A part of a segment was handed on before all were done.")
        return [kept[number] for number in range(len(splits))]

    def _part(
        self,
        split: Split,
        steps: Sequence[Step],
        last: Operation | None,
        stop: threading.Event,
        governor: Governor,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run ``steps`` on one part, and that share of ``last`` which needs only the part."""
        graph, counters = self._empty(governor), CopyCounters()
        ahead = last is not None and not short_circuits(last)
        producer = self._streams(graph, split, steps, counters, ahead=ahead)
        if isinstance(last, Limited):
            limit = graph.add(Limit(), LimitParams(rows=last.rows + last.skip))
            graph.connect(producer, limit)
        elif isinstance(last, Sorted):
            sort = graph.add(Sort(), SortParams(by=last.by))
            graph.connect(producer, sort)
        graph.prepare()
        try:
            yield from self._run(graph, stop)
        except Cancelled:
            return
        finally:
            with _COUNTING:
                self.settings.counters.add(counters)


#: Guards the addition of the counters of parallel tasks.
_COUNTING = threading.Lock()


def _copies(graph: ExecStreamGraph) -> Iterator[str]:
    """Yield a line for each place where batches are copied, with the reason."""
    for stream in graph.streams:
        if not isinstance(stream, FusedStage):
            continue
        for sender, receiver, transfer in stream.fused.transfers:
            if transfer.passing is Passing.COPY:
                yield f"{sender} -> {receiver}: {transfer.reason}"


def _in_parts(batches: Iterable[pa.RecordBatch], threads: int, spools: Spools) -> list[Split]:
    """Keep batches as a few parts per thread; return at least one part."""
    kept = [spools.keep([batch]) for batch in batches]
    size = max(1, -(-len(kept) // (4 * threads)))
    starts = range(0, max(1, len(kept)), size)
    return [partial(_all_of, kept[start : start + size]) for start in starts]


def _all_of(splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        yield from split()


# The rows of a pipeline as one NumPy array for each column.


def arrays_of(execution: Execution) -> dict[str, Array]:
    """Run and return each column as one array; SIZED rows are written to it directly.

    Raises
    ------
    UnsupportedTypeError
        If a column does not consist of numbers, booleans, dates or times.
    """
    dtypes = {field.name: _dtype(field) for field in execution.schema}
    rows = execution.traits.rows
    if rows is None:
        parts: dict[str, list[Array]] = {name: [] for name in dtypes}
        for batch in execution.batches():
            for name, column in zip(parts, batch.columns, strict=True):
                parts[name].append(_filled(name, column))
        return {
            name: np.concatenate([np.zeros(0, dtypes[name]), *arrays])
            for name, arrays in parts.items()
        }
    result: dict[str, Array] = {name: np.empty(rows, dtype) for name, dtype in dtypes.items()}
    place = 0
    for batch in execution.batches():
        if place + batch.num_rows > rows:
            raise FailureError(f"A pipeline that declares {rows} rows has more of them.")
        for name, column in zip(result, batch.columns, strict=True):
            result[name][place : place + batch.num_rows] = _filled(name, column)
        place += batch.num_rows
    if place != rows:
        raise FailureError(f"A pipeline that declares {rows} rows has {place}.")
    return result


def _dtype(field: pa.Field) -> np.dtype[Any]:
    if not pa.types.is_primitive(field.type):
        raise UnsupportedTypeError(field.name, field.type, "numbers, booleans, dates, times")
    empty: Array = pa.array([], field.type).to_numpy(zero_copy_only=False)
    return empty.dtype


def _filled(name: str, column: pa.Array) -> Array:
    if column.null_count:
        raise UsageError(f"Column {name!r} has nulls, which an array has no place for; fill them.")
    array: Array = column.to_numpy(zero_copy_only=False)
    return array
