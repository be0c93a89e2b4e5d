# SPDX-License-Identifier: Apache-2.0
"""What each task of a join measured, and all of them together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from operator import attrgetter
from typing import TypeVar

from host.protocol.manifest import Manifest
from host.protocol.segments import hardware_time
from host.session.records import ElasticRecord, FailureRecord, PrecisionRecord
from spark_offload.measures.notebook import html_table

__all__ = ["JoinMetrics", "TaskMetrics", "TaskReport"]

Key = TypeVar("Key")

TaskReport = Callable[["TaskMetrics"], None]
"""Function that a task calls once with what it measured."""


@dataclass(frozen=True)
class TaskMetrics:
    """What one partition's task measured.

    Parameters
    ----------
    partition : int
        Partition number.
    device : str
        Address of the device that the task had.
    attempt : int
        How many attempts at the partition had failed before.
    left_rows, right_rows : int
        Input rows of either side that belong to the partition.
    halo_rows : int
        Rows of both sides that belong to earlier partitions and were read for the window's sake.
    results : int
        Rows of the answer.
    seconds : float
        Time of the task's join, Spark's own work left out.
    device_seconds : float
        Time that the device worked, beside the host for the most part.
    waited_seconds : float
        Share of ``seconds`` in which the host had nothing to do but to wait for the device.
    cycles : int
        Clock cycles that the device ran.
    counters : mapping of str to int
        Counters of the device, by the names of its manifest; halo rows are tuples to it, and
        pairs among them results.
    copied_bytes : int
        Bytes of columns that were copied on their way into the device's words, as
        :class:`~host.session.records.StagingCounters` tells.
    latency : mapping of int to int
        Number of results by their visiting latency in cycles (later tuple accepted to pair
        emitted), in bins that each start at the key; empty unless traced.
    processing : mapping of int to int
        Number of tuples by their processing latency (accepted to the star behind their results).
    timeline : tuple of (int, int)
        Cycle and the number of results emitted up to it; empty unless traced.
    software_rows : int
        Rows of both sides, halo rows included, that the device did not join but the software after
        it, because the window outgrew the device; its latencies are not among those above.
    handed_over : str
        Why, and from which row on; empty if the device has joined all rows.
    hash_note : str
        What an index read for few results, and that the next task of this process on that device
        has other seeds for its hash; mostly empty.
    precision : PrecisionRecord or None
        What an adaptive ordering measured and decided; None for any other ordering.
    elastic : ElasticRecord or None
        What an elastic join observed and decided; None for any other join.
    failures : FailureRecord or None
        Cores that failed, and what is missing; None if a failure ends the task.
    """

    partition: int
    device: str = ""
    attempt: int = 0
    left_rows: int = 0
    right_rows: int = 0
    halo_rows: int = 0
    results: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0
    waited_seconds: float = 0.0
    cycles: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    copied_bytes: int = 0
    latency: Mapping[int, int] = field(default_factory=dict)
    processing: Mapping[int, int] = field(default_factory=dict)
    timeline: tuple[tuple[int, int], ...] = ()
    software_rows: int = 0
    handed_over: str = ""
    hash_note: str = ""
    precision: PrecisionRecord | None = None
    elastic: ElasticRecord | None = None
    failures: FailureRecord | None = None


@dataclass(frozen=True)
class JoinMetrics:
    """The metrics of all tasks that have ended so far, one entry a partition.

    Parameters
    ----------
    tasks : tuple of TaskMetrics
        Of each partition.
    hardware : str or None
        How long the cycles of all tasks would take on one device
        (:func:`host.protocol.segments.hardware_time`); None if nobody knows.
    """

    tasks: tuple[TaskMetrics, ...] = ()
    hardware: str | None = None

    def on_hardware(self, manifest: Manifest) -> "JoinMetrics":
        """Return the metrics with what the cycles would take on such a device."""
        return replace(self, hardware=hardware_time(int(self.total("cycles")), manifest))

    def total(self, name: str) -> float:
        """Return the sum of one number over all tasks."""
        return float(sum(getattr(task, name) for task in self.tasks))

    def counters(self) -> dict[str, int]:
        """Return the device counters summed over all tasks."""
        return _summed(task.counters for task in self.tasks)

    def latency(self) -> dict[int, int]:
        """Return the visiting latencies of all tasks, in rising order of their bins."""
        return dict(sorted(_summed(task.latency for task in self.tasks).items()))

    def processing(self) -> dict[int, int]:
        """Return the processing latencies of all tasks, in rising order of their bins."""
        return dict(sorted(_summed(task.processing for task in self.tasks).items()))

    def table(self) -> list[tuple[str, ...]]:
        """Return the headings, a row for each task, and their sum if there are several."""
        rows = [_cells(str(task.partition), [task]) for task in self.tasks]
        if len(self.tasks) > 1:
            rows.append(_cells("all", self.tasks))
        return [_HEADINGS, *rows]

    def remarks(self) -> tuple[str, ...]:
        """Return a line about hardware, and those for tasks of which there is something to say.

        These did not join all rows on their devices, or read too much. There is no line about
        hardware unless :attr:`hardware` is known.
        """
        notes = (
            f"partition {task.partition}: {note}"
            for task in self.tasks
            for note in (
                task.handed_over,
                task.hash_note,
                _precision_note(task),
                _elastic_note(task),
                _failures_note(task),
            )
            if note
        )
        return (*([] if self.hardware is None else [f"hardware: {self.hardware}"]), *notes)

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([*lines, *self.remarks()])

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self.remarks())
        return html_table(self.table()) + remarks


def _precision_note(task: TaskMetrics) -> str:
    return "" if task.precision is None else f"precision: {task.precision}"


def _elastic_note(task: TaskMetrics) -> str:
    return "" if task.elastic is None else f"elastic: {task.elastic}"


def _failures_note(task: TaskMetrics) -> str:
    return str(task.failures) if task.failures is not None and task.failures.failures else ""


_HEADINGS = (
    "partition",
    "left rows",
    "right rows",
    "halo rows",
    "results",
    "cycles",
    "input stalled",
    "output stalled",
    "copied bytes",
    "seconds",
    "waiting",
    "in device",
)


def _cells(name: str, tasks: Sequence[TaskMetrics]) -> tuple[str, ...]:
    """Return the cells of a row: the sums over some tasks."""

    def total(read: Callable[[TaskMetrics], float]) -> float:
        return sum(map(read, tasks))

    cycles = int(total(lambda task: task.cycles))
    counters = _summed(task.counters for task in tasks)
    stalled = (counters.get(f"{stage}_stalled", 0) for stage in ("ingress", "output"))
    counts = ("left_rows", "right_rows", "halo_rows", "results")
    return (
        name,
        *(f"{int(total(attrgetter(count))):,}" for count in counts),
        f"{cycles:,}",
        *(f"{share / cycles:.1%}" if cycles else "" for share in stalled),
        f"{int(total(attrgetter('copied_bytes'))):,}",
        f"{total(attrgetter('seconds')):.2f}",
        f"{total(attrgetter('waited_seconds')):.2f}",
        f"{total(attrgetter('device_seconds')):.2f}",
    )


def _summed(mappings: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Add mappings entry by entry."""
    total: dict[Key, int] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            total[key] = total.get(key, 0) + value
    return total
