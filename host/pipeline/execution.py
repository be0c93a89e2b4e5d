# SPDX-License-Identifier: Apache-2.0
"""Turn a pipeline into a graph of streams, and run it sequentially or in parallel."""

from collections.abc import Generator, Iterable, Sequence
from functools import partial
import threading

import pyarrow as pa

from host.errors import FailureError
from host.operators import CopyCounters
from host.pipeline.operations import Lazy, Limited, Operation, Sorted, Stateful, Stateless
from host.pipeline.settings import Settings
from host.pipeline.source import Bound, Source
from host.pipeline.splits import Split
from host.pipeline.steps import Step, fused_runs, plan_steps, runs_ahead, stops_early
from host.runtime import ExecStreamGraph, Governor, Quantum, Scheduler, Stream, StreamResult
from host.streams.fused_stage import FusedStage, FusedStageParams
from host.streams.limit import Limit, LimitParams
from host.streams.parallel import Parallel, ParallelParams
from host.streams.sort import Sort, SortParams
from host.streams.sorted_merge import SortedMerge, SortedMergeParams
from host.streams.source import ArrowSource, ArrowSourceParams

__all__ = ["Execution"]


class _Cancelled(Exception):
    """Raised inside a task that is no longer wanted."""


class Execution:
    """A pipeline whose source has been bound; it can be run once or several times.

    Parameters
    ----------
    source : Source
        Source of the rows, which the constructor binds.
    operations : sequence of Lazy
        Operations of the pipeline.
    settings : Settings
        Settings of the run.
    ordered : bool
        Whether the order of the resulting rows is observed.
    """

    def __init__(
        self,
        source: Source,
        operations: Sequence[Lazy],
        settings: Settings,
        *,
        ordered: bool = True,
    ) -> None:
        self.settings = settings
        self.bound: Bound = source.bind()
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
            yield from self._in_parallel(self.bound.splits, self.steps)
        else:
            yield from self._run(self.graph())

    def graph(self) -> ExecStreamGraph:
        """Return the prepared graph of a sequential run."""
        graph = self._empty_graph()
        self._streams(graph, self.bound.batches, self.steps, ahead=False)
        graph.prepare()
        return graph

    def build(self, graph: ExecStreamGraph) -> Stream:
        """Add the streams of the pipeline to ``graph``; return the one with the result."""
        return self._streams(graph, self.bound.batches, self.steps)

    def _empty_graph(self, governor: Governor | None = None) -> ExecStreamGraph:
        shared = self.settings.governor if governor is None else governor
        return ExecStreamGraph(self.settings.buffer_rows, shared)

    def _source(self, graph: ExecStreamGraph, supply: Split, *, ahead: bool = True) -> Stream:
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
            operators = [
                step.operation.operator for step in run if isinstance(step.operation, Stateless)
            ]
            later = [step for each in runs[number:] for step in each]
            for fused in [operators] if self.settings.fuse else [[each] for each in operators]:
                stage = FusedStage(" ".join(map(str, fused)))
                graph.add(stage, FusedStageParams(fused, counted, runs_ahead(later, ahead)))
                graph.connect(producer, stage)
                producer = stage
        return producer

    def _run(
        self, graph: ExecStreamGraph, stop: threading.Event | None = None
    ) -> Generator[pa.RecordBatch, None, None]:
        def observe(stream: Stream, result: StreamResult) -> None:
            if stop is not None and stop.is_set():
                raise _Cancelled

        yield from Scheduler(graph, Quantum(self.settings.rows), observe).read()

    # In parallel: the parts of a segment run separately, followed by the operation that needs them
    # all.

    def _in_parallel(
        self, splits: Sequence[Split], steps: Sequence[Step]
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
            gathered = self._gather(splits, own, rest[0])
            yield from self._in_parallel(gathered, rest[1:])
            return
        graph = self._empty_graph()
        ordered = self.ordered if not steps else steps[0].place.order_matters
        limit = rest[0].operation if rest else None
        tasks = [partial(self._part, split, own, limit) for split in splits]
        source = graph.add(Parallel(), ParallelParams(tasks, self.settings.threads, ordered))
        self._behind(graph, source, rest, ahead=False)
        graph.prepare()
        yield from self._run(graph)

    def _part(
        self,
        split: Split,
        steps: Sequence[Step],
        last: Operation | None,
        stop: threading.Event,
        governor: Governor,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run ``steps`` on one part, and that share of ``last`` which needs only the part."""
        graph, counters = self._empty_graph(governor), CopyCounters()
        ahead = last is not None and not isinstance(last, Limited)
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
        except _Cancelled:
            return
        finally:
            with _COUNTING:
                self.settings.counters.add(counters)

    def _gather(self, splits: Sequence[Split], steps: Sequence[Step], last: Step) -> list[Split]:
        """Run a segment to its end; return its output in parts."""
        parts: dict[int, list[pa.RecordBatch]] = {}

        def record(
            number: int, split: Split, stop: threading.Event, governor: Governor
        ) -> Generator[pa.RecordBatch, None, None]:
            parts[number] = list(self._part(split, steps, last.operation, stop, governor))
            yield from ()

        graph = self._empty_graph()
        tasks = [partial(record, number, split) for number, split in enumerate(splits)]
        graph.add(Parallel(), ParallelParams(tasks, self.settings.threads, ordered=False))
        graph.prepare()
        for _ in self._run(graph):
            raise FailureError("A part of a segment was handed on before all were done.")
        ordered = [parts[number] for number in sorted(parts)]
        graph = self._empty_graph()
        if isinstance(last.operation, Sorted):
            merge = graph.add(SortedMerge(), SortedMergeParams(by=last.operation.by))
            for part in ordered:
                graph.connect(self._source(graph, partial(iter, part)), merge)
        else:
            everything = [batch for part in ordered for batch in part]
            self._streams(graph, partial(iter, everything), [last])
        graph.prepare()
        return _in_parts(self._run(graph), self.settings.threads)


#: Guards the addition of the counters of parallel tasks.
_COUNTING = threading.Lock()


def _in_parts(batches: Iterable[pa.RecordBatch], threads: int) -> list[Split]:
    """Divide batches into a few parts per thread; return at least one part."""
    everything = list(batches)
    size = max(1, -(-len(everything) // (4 * threads)))
    starts = range(0, max(1, len(everything)), size)
    return [partial(iter, everything[start : start + size]) for start in starts]
