# SPDX-License-Identifier: Apache-2.0
"""Explain a pipeline in words."""

from collections.abc import Iterator

from host.pipeline.execution import Execution
from host.pipeline.operations import Step, fused_runs
from host.pipeline.row_operators import FusedStage, Stateless
from host.pipeline.source import Source
from host.runtime import ExecStreamGraph, Passing

__all__ = [
    "explain",
]

#: Where a step runs (``pass 1``), the operation, the known properties of its output, and a reason.
_Line = tuple[str, str, str, str]


def _lines_of(source: Source, execution: Execution) -> list[_Line]:
    """Return a line for the source and for each operation."""
    lines: list[_Line] = [("source", str(source), str(execution.bound.traits), "")]
    places = _places(execution)
    for step in execution.steps:
        lines.append((places[id(step)], str(step.operation), str(step.after), step.reason))
    return lines


def _places(execution: Execution) -> dict[int, str]:
    """Return where each step runs."""
    places = {id(step): "-" for step in execution.steps}
    number = 0
    for run in fused_runs(execution.steps):
        if not isinstance(run[0].operation, Stateless):
            places[id(run[0])] = "stateful"
            continue
        for index, step in enumerate(run):
            number += index == 0 or not execution.settings.fuse
            places[id(step)] = f"pass {number}"
    return places


def explain(source: Source, execution: Execution) -> str:
    """Return a description of the run: operations, flags, passes, segments, copies and buffers."""
    lines = _lines_of(source, execution)
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    rows = [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]
        )
        for line in lines
    ]
    if execution.threads > 1:
        how = f"{execution.threads} threads, {len(execution.bound.splits)} parts"
        how += "; " + _segments(execution.steps)
    else:
        how = "sequential, one graph"
    graph = execution.graph()
    text = [*(row.rstrip() for row in rows), f"run      {how}"]
    text += [f"copy     {line}" for line in _copies(graph)] or ["copy     none"]
    text += [f"buffer   {line}" for line in graph.plan().splitlines()]
    return "\n".join(text)


def _segments(steps: list[Step]) -> str:
    """Return the operations in each segment."""
    parts: dict[int, list[str]] = {}
    for step in steps:
        if not step.vanishes:
            parts.setdefault(step.segment, []).append(str(step.operation))
    named = (f"segment {number}: {', '.join(names)}" for number, names in parts.items())
    return "; ".join(named) or "no segments"


def _copies(graph: ExecStreamGraph) -> Iterator[str]:
    """Yield a line for each place where batches are copied, with the reason."""
    for stream in graph.streams:
        if not isinstance(stream, FusedStage):
            continue
        for sender, receiver, transfer in stream.fused.transfers:
            if transfer.passing is Passing.COPY:
                yield f"{sender} -> {receiver}: {transfer.reason}"
