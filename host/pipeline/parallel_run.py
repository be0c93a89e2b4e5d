# SPDX-License-Identifier: Apache-2.0
"""Run a pipeline in threads, segment after segment.

A segment is what comes before an operation that needs the rows of all parts. The parts of a segment
run separately, and the operation joins them. What must wait for it, or for the next segment, waits
in a quarter of the staging buffers, and in files beyond that.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
import threading

import pyarrow as pa

from host.errors import FailureError
from host.operators import CopyCounters
from host.pipeline.graphs import Cancelled, Graphs
from host.pipeline.operations import Limited, Operation, Sorted, Stateful
from host.pipeline.settings import Settings
from host.pipeline.splits import Split
from host.pipeline.steps import Step, stops_early
from host.runtime import (
    BUFFER_BYTES,
    ExecStreamGraph,
    Governor,
    Quantity,
    Requirements,
    Stream,
)
from host.streams.limit import Limit, LimitParams
from host.streams.parallel import Parallel, ParallelParams
from host.streams.sort import Sort, SortParams
from host.streams.sorted_merge import SortedMerge, SortedMergeParams
from host.streams.spools import Spools

__all__ = ["ParallelRun"]


class ParallelRun:
    """Runs the steps of a pipeline on the parts of its source.

    Parameters
    ----------
    settings : Settings
        Settings of the run.
    ordered : bool
        Whether the order of the resulting rows is observed.
    """

    def __init__(self, settings: Settings, *, ordered: bool) -> None:
        self._settings, self._ordered = settings, ordered
        self._graphs = Graphs(settings)

    def run(
        self, splits: Sequence[Split], steps: Sequence[Step]
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run ``steps`` on the parts of a source, and yield batches."""
        governor = self._settings.governor
        share = Requirements(optimum=Quantity(buffers=governor.available.buffers // 4))
        with governor.lending("rows between segments", share) as granted:
            with closing(Spools(granted.buffers * BUFFER_BYTES)) as spools:
                yield from self._segments(splits, steps, spools)

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
                parts = _in_parts(batches, self._settings.threads, spools)
                yield from self._segments(parts, rest[1:], spools)
            return
        graph = self._graphs.empty()
        limit = rest[0].operation if rest else None
        observed = self._ordered if not steps else steps[0].place.order_matters
        source = self._parts(graph, splits, own, limit, ordered=observed)
        self._graphs.behind(graph, source, rest, ahead=False)
        graph.prepare()
        yield from self._graphs.run(graph)

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
        return graph.add(Parallel(), ParallelParams(tasks, self._settings.threads, ordered))

    def _segment(
        self, splits: Sequence[Split], steps: Sequence[Step], last: Step, spools: Spools
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run a segment, and the operation that ends it; yield what that puts out."""
        graph = self._graphs.empty()
        if isinstance(last.operation, Sorted):
            merge = graph.add(SortedMerge(), SortedMergeParams(by=last.operation.by))
            for part in self._kept_parts(splits, steps, last.operation, spools):
                graph.connect(self._graphs.source(graph, part), merge)
        else:
            # Whoever observes the result, the operation may rely on the order of its input.
            source = self._parts(graph, splits, steps, last.operation, ordered=True)
            self._graphs.behind(graph, source, [last])
        graph.prepare()
        yield from self._graphs.run(graph)

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

        graph = self._graphs.empty()
        tasks = [partial(keep, number, split) for number, split in enumerate(splits)]
        graph.add(Parallel(), ParallelParams(tasks, self._settings.threads, ordered=False))
        graph.prepare()
        for _ in self._graphs.run(graph):
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
        graph, counters = self._graphs.empty(governor), CopyCounters()
        ahead = last is not None and not isinstance(last, Limited)
        producer = self._graphs.streams(graph, split, steps, counters, ahead=ahead)
        if isinstance(last, Limited):
            limit = graph.add(Limit(), LimitParams(rows=last.rows + last.skip))
            graph.connect(producer, limit)
        elif isinstance(last, Sorted):
            sort = graph.add(Sort(), SortParams(by=last.by))
            graph.connect(producer, sort)
        graph.prepare()
        try:
            yield from self._graphs.run(graph, stop)
        except Cancelled:
            return
        finally:
            with _COUNTING:
                self._settings.counters.add(counters)


#: Guards the addition of the counters of parallel tasks.
_COUNTING = threading.Lock()


def _in_parts(batches: Iterable[pa.RecordBatch], threads: int, spools: Spools) -> list[Split]:
    """Keep batches as a few parts per thread; return at least one part."""
    kept = [spools.keep([batch]) for batch in batches]
    size = max(1, -(-len(kept) // (4 * threads)))
    starts = range(0, max(1, len(kept)), size)
    return [partial(_all_of, kept[start : start + size]) for start in starts]


def _all_of(splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        yield from split()
