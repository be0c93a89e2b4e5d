# SPDX-License-Identifier: Apache-2.0
"""A pipeline whose source has been bound: as a graph of streams, or run."""

from collections.abc import Generator, Sequence

import pyarrow as pa

from host.pipeline.graphs import Graphs
from host.pipeline.operations import Lazy
from host.pipeline.parallel_run import ParallelRun
from host.pipeline.settings import Settings
from host.pipeline.source import Bound, Source
from host.pipeline.steps import plan_steps
from host.runtime import ExecStreamGraph, Stream

__all__ = ["Execution"]


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
    is_checked : bool
        Whether the reader of the rows finds out itself if they are not in a declared order.
    """

    def __init__(
        self,
        source: Source,
        operations: Sequence[Lazy],
        settings: Settings,
        *,
        ordered: bool = True,
        is_checked: bool = False,
    ) -> None:
        self.settings = settings
        self._graphs = Graphs(settings)
        self.bound: Bound = source.bind()
        is_checked = is_checked or any(operation.checks_order for operation in operations)
        self.bound = self.bound.checked(str(source), order=not is_checked)
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
            parallel = ParallelRun(self.settings, ordered=self.ordered)
            yield from parallel.run(self.bound.splits, self.steps)
        else:
            yield from self._graphs.run(self.graph())

    def graph(self) -> ExecStreamGraph:
        """Return the prepared graph of a sequential run."""
        graph = self._graphs.empty()
        self._graphs.streams(graph, self.bound.batches, self.steps, ahead=False)
        graph.prepare()
        return graph

    def build(self, graph: ExecStreamGraph) -> Stream:
        """Add the streams of the pipeline to ``graph``; return the one with the result."""
        return self._graphs.streams(graph, self.bound.batches, self.steps)
