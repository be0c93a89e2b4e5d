# SPDX-License-Identifier: Apache-2.0
"""What tasks measure, its way to the driver, and how notebooks and programs read it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from itertools import count
import logging
from threading import Lock
import time
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from py4j.protocol import Py4JError
from pyspark import Accumulator, SparkContext, TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import Row
from pyspark.sql.streaming.query import StreamingQuery

from host.arrays import Array
from host.protocol.manifest import Manifest
from host.protocol.segments import hardware_time
from host.session.records import ElasticRecord, FailureRecord, PrecisionRecord

__all__ = [
    "JoinMetrics",
    "MicroBatch",
    "Stopwatch",
    "TaskMetrics",
    "TaskReport",
    "cumulative_counts",
    "gather_tasks",
    "histogram",
    "html_rows",
    "NUMBERS",
    "PANE_NUMBERS",
    "RESULTS",
    "AGGREGATES",
    "JOINS",
    "AggregateMicroBatch",
    "read_progress",
    "stream_aggregate_metrics",
    "stream_metrics",
]

# Tables as notebooks show them.


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of numbers, the first of them headings, as a table."""
    head, *body = rows
    return _table([_row(head, "th"), *(_row(row, "td") for row in body)], "right")


def html_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Return headings, each with a text of one or more lines, as a table."""
    return _table(
        (
            f"<tr><th>{escape(name)}</th><td>{escape(text).replace(chr(10), '<br>')}</td></tr>"
            for name, text in rows
        ),
        "left",
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _table(rows: Iterable[str], align: str) -> str:
    return f'<table style="text-align: {align}">{"".join(rows)}</table>'


# What each task of a join measured, and all of them together.

Key = TypeVar("Key")

TaskReport = Callable[["TaskMetrics"], None]
"""Function that a task calls once with what it measured."""


@dataclass(frozen=True)
class TaskMetrics:
    """Metrics of one partition's task.

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
    stage : int or None
        Number of Spark's stage that the task is of; None if nobody knows.
    spilled_bytes : int
        Bytes that Spark wrote to disk while it sorted rows for the task; the task itself writes
        none.
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
    stage: int | None = None
    spilled_bytes: int = 0


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
        rows = [_cells(str(task.partition), JoinMetrics((task,))) for task in self.tasks]
        if len(self.tasks) > 1:
            rows.append(_cells("all", self))
        return [_HEADINGS, *rows]

    def remarks(self) -> tuple[str, ...]:
        """Return a line about hardware, and those for tasks of which there is something to say.

        These did not join all rows on their devices, or read or spilled much. There is no line
        about hardware unless :attr:`hardware` is known.
        """
        notes = (
            f"partition {task.partition}: {note}"
            for task in self.tasks
            for note in (
                task.handed_over,
                task.hash_note,
                "" if task.precision is None else f"precision: {task.precision}",
                "" if task.elastic is None else f"elastic: {task.elastic}",
                str(task.failures) if task.failures and task.failures.failures else "",
                _SPILLED.format(task.spilled_bytes) if task.spilled_bytes else "",
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
        return _html_table(self.table()) + remarks


_SPILLED = "Spark spilled {:,} bytes to disk while it sorted the rows"

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


def _cells(name: str, metrics: JoinMetrics) -> tuple[str, ...]:
    """Return the cells of a row: the sums over some tasks."""
    cycles, counters = int(metrics.total("cycles")), metrics.counters()
    stalled = (counters.get(f"{stage}_stalled", 0) for stage in ("ingress", "output"))
    counts = ("left_rows", "right_rows", "halo_rows", "results")
    seconds = ("seconds", "waited_seconds", "device_seconds")
    return (
        name,
        *(f"{int(metrics.total(count)):,}" for count in counts),
        f"{cycles:,}",
        *(f"{share / cycles:.1%}" if cycles else "" for share in stalled),
        f"{int(metrics.total('copied_bytes')):,}",
        *(f"{metrics.total(each):.2f}" for each in seconds),
    )


def _summed(mappings: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Add mappings entry by entry."""
    total: dict[Key, int] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            total[key] = total.get(key, 0) + value
    return total


# What a streaming join measures in a micro-batch, as the progress of its query tells it.


@dataclass(frozen=True)
class MicroBatch:
    """Metrics of one streaming join in one micro-batch.

    Parameters
    ----------
    batch : int
        Number of the micro-batch.
    join : str
        Name of the join, as its explanation tells it.
    watermark : str
        Rows older than this were late; as Spark writes it.
    trigger_seconds : float
        Time that the whole micro-batch took.
    left_rows, right_rows : int
        Rows that were joined.
    left_late, right_late : int
        Rows that were older than the watermark and were dropped.
    results : int
        Pairs.
    stored, expired : int
        Rows that were added to the state, and removed from it.
    cycles : int
        Clock cycles that devices ran.
    seconds, device_seconds : float
        Time that groups of rows took in all, and their time in devices.
    software_rows : int
        Rows that were joined in software, because a window outgrew the device; a kept row counts in
        each micro-batch in which it is joined.
    read_rows : int
        Kept rows that were read from the state store; workers hold the others already.
    waited_seconds : float
        Time that tasks have waited for a device that another one held.
    """

    batch: int
    join: str
    watermark: str
    trigger_seconds: float
    left_rows: int
    right_rows: int
    left_late: int
    right_late: int
    results: int
    stored: int
    expired: int
    cycles: int
    seconds: float
    device_seconds: float
    software_rows: int = 0
    read_rows: int = 0
    waited_seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Rows of both sides that were joined."""
        return self.left_rows + self.right_rows

    @property
    def late_rows(self) -> int:
        """Rows of both sides that were dropped."""
        return self.left_late + self.right_late


def _observed_numbers(kind: type, *others: str) -> dict[str, str]:
    """Return the numbers of a micro-batch that are sums over tasks, with their types in Spark.

    Parameters
    ----------
    kind : type
        :class:`MicroBatch`, or the class of another query.
    others : str
        Numbers that are no such sums, besides those of the whole micro-batch.
    """
    types: dict[Any, str] = {int: "bigint", float: "double"}
    numbers = {field.name: types.get(field.type) for field in fields(kind)}
    whole = {"batch", "trigger_seconds", *others}
    return {name: type_ for name, type_ in numbers.items() if type_ and name not in whole}


NUMBERS = _observed_numbers(MicroBatch)
"""What is measured of a group in a micro-batch, with its type in Spark."""

JOINS = "splitjoin"
"""First part of the names under which ``observedMetrics`` of a progress has the numbers."""


def read_progress(progress: Any) -> tuple[MicroBatch, ...]:
    """Return what the streaming joins of a query did in one micro-batch.

    Parameters
    ----------
    progress : StreamingQueryProgress
        From ``query.lastProgress``, ``query.recentProgress`` or a ``StreamingQueryListener``.
    """
    return tuple(
        MicroBatch(join=name, **_of_trigger(progress), **_numbers(observed, NUMBERS))
        for name, observed in _observed(progress, JOINS).items()
    )


def _observed(progress: Any, kind: str) -> dict[str, dict[str, Any]]:
    """Return what was observed of one kind, by its names."""
    return {
        name: _observed_by_name(row)
        for name, row in sorted(progress.observedMetrics.items())
        if name.split("-")[0] == kind
    }


def _of_trigger(progress: Any) -> dict[str, Any]:
    """Return what a progress tells of the whole micro-batch."""
    return {
        "batch": progress.batchId,
        "watermark": progress.eventTime.get("watermark", ""),
        "trigger_seconds": progress.durationMs.get("triggerExecution", 0) / 1000,
    }


def _numbers(observed: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return observed numbers by their types in Spark."""
    return {
        name: float(observed[name]) if kind == "double" else int(observed[name])
        for name, kind in kinds.items()
    }


def _observed_by_name(row: Row) -> dict[str, Any]:
    """Return the fields of an observed row.

    Spark Connect (as of Spark 4.3) gives them as a row of two fields: all values, and their schema.
    """
    fields: dict[str, Any] = row.asDict()
    if fields.keys() != {"values", "schema"}:
        return fields
    names = [field["name"] for field in fields["schema"]["fields"]]
    return dict(zip(names, fields["values"], strict=True))


def stream_metrics(query: StreamingQuery) -> tuple[MicroBatch, ...]:
    """Return the metrics of the streaming joins of a query, micro-batch by micro-batch.

    Spark remembers the last ``spark.sql.streaming.numRecentProgressUpdates`` (100) of them.

    Parameters
    ----------
    query : StreamingQuery
        A query that was started; it may have ended.
    """
    return tuple(batch for progress in query.recentProgress for batch in read_progress(progress))


# What an aggregation of a stream did in each micro-batch, read from Spark's progress.

AGGREGATES = "splitjoin_aggregate"
"""First part of the names under which ``observedMetrics`` of a progress has the numbers."""

RESULTS = "results"
"""Last part of the name under which the number of results is found."""


@dataclass(frozen=True)
class AggregateMicroBatch:
    """Metrics of one aggregation of a stream in one micro-batch.

    Parameters
    ----------
    batch : int
        Number of the micro-batch.
    aggregation : str
        Name of the aggregation, as its explanation tells it.
    watermark : str
        Windows that end at or before it have ended; as Spark writes it.
    trigger_seconds : float
        Time that the whole micro-batch took.
    rows : int
        Rows with a time that were read. Those among them that came too late for all their windows
        are told by Spark only, and as panes: ``numRowsDroppedByWatermark`` of the state operator.
    panes : int
        Panes that these rows became; sent to the tasks that keep the state.
    results : int
        Results of windows that ended.
    seconds : float
        Time that the tasks took to make panes.
    cycles : int
        Clock cycles that devices ran.
    device_seconds : float
        Time that devices worked.
    """

    batch: int
    aggregation: str
    watermark: str
    trigger_seconds: float
    rows: int
    panes: int
    results: int
    seconds: float
    cycles: int = 0
    device_seconds: float = 0.0


PANE_NUMBERS = _observed_numbers(AggregateMicroBatch, "panes", RESULTS)
"""What is measured of a task in a micro-batch, with its type in Spark; beside its first pane."""


def stream_aggregate_metrics(query: StreamingQuery) -> tuple[AggregateMicroBatch, ...]:
    """Return the metrics of the aggregations of a streaming query, micro-batch by micro-batch.

    Spark remembers the last ``spark.sql.streaming.numRecentProgressUpdates`` (100) of them.

    Parameters
    ----------
    query : StreamingQuery
        A query that was started; it may have ended.
    """
    return tuple(batch for progress in query.recentProgress for batch in _of_progress(progress))


def _of_progress(progress: Any) -> list[AggregateMicroBatch]:
    observed = _observed(progress, AGGREGATES)
    kinds = _observed_numbers(AggregateMicroBatch)
    return [
        AggregateMicroBatch(
            aggregation=name,
            **_of_trigger(progress),
            **_numbers({**numbers, **observed[f"{name}-{RESULTS}"]}, kinds),
        )
        for name, numbers in observed.items()
        if not name.endswith(f"-{RESULTS}")
    ]


# The way of a task's measurements back to the driver.
#
# Spark never lets go of an accumulator, so all joins of the process share one: it delivers the
# reports of tasks, and what the driver keeps of them lives and dies with the plan of their join.
# An accumulator may see a task twice (a retry, a speculative copy), so reports are kept by
# partition: a partition that ran again replaces its own report instead of being counted twice.

_LOG = logging.getLogger("spark_offload")

Reports = dict[tuple[int, int], TaskMetrics]
"""Reports by the number of the join and that of the partition."""


class _Gathered:
    """The reports of one join, on the driver."""

    def __init__(self) -> None:
        self._tasks: dict[int, TaskMetrics] = {}
        self._warned = False

    def take(self, task: TaskMetrics) -> None:
        self._tasks[task.partition] = task
        if task.handed_over and not self._warned:
            self._warned = True
            _LOG.warning(
                "Partition %d went on %s; metrics(frame) tells whether others did, too.",
                task.partition,
                task.handed_over,
            )

    def metrics(self) -> JoinMetrics:
        return JoinMetrics(tuple(task for _, task in sorted(self._tasks.copy().items())))


class _Gathering(AccumulatorParam[Reports]):
    """Union of reports in a task; the driver hands them to the joins that wait, and keeps none."""

    def zero(self, value: Reports) -> Reports:
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:
        if TaskContext.get() is not None:
            return value1 | value2
        for (join, _), task in value2.items():
            gathered = _waiting.get(join)
            if gathered is not None:
                gathered.take(task)
        return value1


MOST_ATTEMPTS = 8
"""Attempts at a partition, on the average, that are asked for."""

_joins = count()
_waiting: WeakValueDictionary[int, _Gathered] = WeakValueDictionary()
_guard = Lock()
_shared: list[Accumulator[Reports]] = []


def gather_tasks(context: SparkContext) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
    """Return the function that tasks report with, and the one that reads the reports.

    The first is shipped with the task; the second stays on the driver, and the reports with it.
    """
    with _guard:
        if not _shared:
            _shared.append(context.accumulator({}, _Gathering()))
        accumulator = _shared[0]
        join, gathered = next(_joins), _Gathered()
        _waiting[join] = gathered

    def report(task: TaskMetrics) -> None:
        accumulator.add({(join, task.partition): task})

    return report, lambda: _with_spills(gathered.metrics(), context)


# What Spark has spilled for a task; the task runs in a Python process, which is not told.


def _with_spills(metrics: JoinMetrics, context: SparkContext) -> JoinMetrics:
    """Return the metrics with what Spark has spilled, as long as it remembers the stages."""
    jvm: Any = context._jsc
    spilled: dict[tuple[int | None, int], int] = {}
    try:
        store = jvm.sc().statusStore()
        for stage in {task.stage for task in metrics.tasks} - {None}:
            last = store.lastStageAttempt(stage)
            if not last.diskBytesSpilled():
                continue
            tasks = store.taskList(stage, last.attemptId(), last.numTasks() * MOST_ATTEMPTS)
            for each in map(tasks.apply, range(tasks.size())):
                if each.taskMetrics().isDefined():
                    key = stage, int(each.partitionId())
                    bytes_ = int(each.taskMetrics().get().diskBytesSpilled())
                    spilled[key] = spilled.get(key, 0) + bytes_
    except (Py4JError, OSError, AttributeError):
        return metrics  # Spark has been stopped, or knows of the stage no more
    return replace(
        metrics,
        tasks=tuple(
            replace(task, spilled_bytes=spilled.get((task.stage, task.partition), 0))
            for task in metrics.tasks
        ),
    )


# A task's own time, without that in which it waits for Spark.

Item = TypeVar("Item")


class Stopwatch:
    """Counts seconds from when it is made, except those that are somebody else's.

    The generators of a task take turns with Spark: one waits until Spark has sorted and sent the
    next batch, the other while Spark takes away what it was given.
    """

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._elsewhere = 0.0

    @property
    def seconds(self) -> float:
        """Own seconds so far."""
        return time.perf_counter() - self._started - self._elsewhere

    def reading(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield ``items``; the time in which they are made is not counted."""
        while True:
            asked = time.perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self._elsewhere += time.perf_counter() - asked
            yield item

    def giving(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield ``items``; the time until the next one is asked for is not counted."""
        for item in items:
            given = time.perf_counter()
            try:
                yield item
            finally:
                self._elsewhere += time.perf_counter() - given


# Traces of many results as a few numbers that are cheap to send and to add.

FINE_BITS = 12
"""Bins of a histogram per doubling of the value, as a power of two."""


def histogram(values: Array) -> dict[int, int]:
    """Count non-negative values in bins; each key is the least value of its bin.

    Below 8,192 a bin is one value; above, at most 1/4,096 of it, so that the histograms of several
    tasks can be added whatever their ranges.
    """
    values = np.asarray(values, dtype=np.int64)
    if not len(values):
        return {}
    exponents = np.frexp(np.maximum(values, 1).astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(exponents - (FINE_BITS + 1), 0)
    lows, counts = np.unique((values >> shifts) << shifts, return_counts=True)
    return {int(low): int(count) for low, count in zip(lows, counts, strict=True)}


def cumulative_counts(cycles: Array, end: int, points: int = 160) -> tuple[tuple[int, int], ...]:
    """Return (cycle, events up to it) at evenly spaced cycles up to ``end``."""
    ordered = np.sort(np.asarray(cycles, dtype=np.int64))
    last = max(end, int(ordered[-1]) if len(ordered) else 0)
    if last <= 0:
        return ()
    at = np.unique(np.linspace(0, last, points + 1).astype(np.int64)[1:])
    counts = np.searchsorted(ordered, at, side="right")
    return tuple((int(cycle), int(count)) for cycle, count in zip(at, counts, strict=True))
