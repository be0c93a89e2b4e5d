# SPDX-License-Identifier: Apache-2.0
"""Turn the steps of a pipeline into streams of a graph, and run the graph."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
import threading

import pyarrow as pa

from host.operators import CopyCounters
from host.pipeline.operations import Stateful, Stateless
from host.pipeline.settings import Settings
from host.pipeline.splits import Split
from host.pipeline.steps import Step, fused_runs, runs_ahead
from host.runtime import ExecStreamGraph, Governor, Quantum, Scheduler, Stream, StreamResult
from host.streams.fused_stage import FusedStage, FusedStageParams
from host.streams.source import ArrowSource, ArrowSourceParams

__all__ = ["Cancelled", "Graphs"]


class Cancelled(Exception):
    """Raised inside a run that is no longer wanted."""


@dataclass(frozen=True)
class Graphs:
    """Makes graphs for the steps of a pipeline.

    Parameters
    ----------
    settings : Settings
        Settings of the run.
    """

    settings: Settings

    def empty(self, governor: Governor | None = None) -> ExecStreamGraph:
        """Return a graph without streams; its resources are those of the run, or of a part."""
        shared = self.settings.governor if governor is None else governor
        return ExecStreamGraph(self.settings.buffer_rows, shared)

    def source(self, graph: ExecStreamGraph, supply: Split, *, ahead: bool = True) -> Stream:
        """Add a stream of supplied batches; see :func:`runs_ahead` for ``ahead``."""
        params = ArrowSourceParams(supply=supply, rows=self.settings.rows, ahead=ahead)
        return graph.add(ArrowSource("source"), params)

    def streams(
        self,
        graph: ExecStreamGraph,
        supply: Split,
        steps: Sequence[Step],
        counters: CopyCounters | None = None,
        *,
        ahead: bool = True,
    ) -> Stream:
        """Add the streams of a source and ``steps``; see :func:`runs_ahead` for ``ahead``."""
        source = self.source(graph, supply, ahead=runs_ahead(steps, ahead))
        return self.behind(graph, source, steps, counters, ahead=ahead)

    def behind(
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

    def run(
        self, graph: ExecStreamGraph, stop: threading.Event | None = None
    ) -> Generator[pa.RecordBatch, None, None]:
        """Run a prepared graph and yield its batches, until ``stop`` is set."""

        def observe(stream: Stream, result: StreamResult) -> None:
            if stop is not None and stop.is_set():
                raise Cancelled

        yield from Scheduler(graph, Quantum(self.settings.rows), observe).read()
