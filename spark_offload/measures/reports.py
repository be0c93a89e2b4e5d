# SPDX-License-Identifier: Apache-2.0
"""The way of a task's measurements back to the driver.

Spark never lets go of an accumulator, so all joins of the process share one: it delivers the
reports of tasks, and what the driver keeps of them lives and dies with the plan of their join. An
accumulator may see a task twice (a retry, a speculative copy), so reports are kept by partition: a
partition that ran again replaces its own report instead of being counted twice.
"""

from collections.abc import Callable
from itertools import count
import logging
from threading import Lock
from weakref import WeakValueDictionary

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam

from spark_offload.measures.metrics import JoinMetrics, TaskMetrics, TaskReport

__all__ = ["gather_tasks"]

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
    """Union of reports, as tasks need it."""

    def zero(self, value: Reports) -> Reports:
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:
        value1.update(value2)
        return value1


class _Delivering(_Gathering):
    """Hands reports to the joins that still wait for them, and keeps none itself."""

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:
        for (join, _), task in value2.items():
            gathered = _waiting.get(join)
            if gathered is not None:
                gathered.take(task)
        return value1

    def __reduce__(self) -> tuple[type[_Gathering], tuple[()]]:
        return _Gathering, ()  # what a task gets of it


_numbers = count()
_waiting: WeakValueDictionary[int, _Gathered] = WeakValueDictionary()
_guard = Lock()
_shared: list[Accumulator[Reports]] = []


def gather_tasks(context: SparkContext) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
    """Return the function that tasks report with, and the one that reads the reports.

    The first is shipped with the task; the second stays on the driver, and the reports with it.
    """
    with _guard:
        if not _shared:
            _shared.append(context.accumulator({}, _Delivering()))
        accumulator = _shared[0]
        join, gathered = next(_numbers), _Gathered()
        _waiting[join] = gathered

    def report(task: TaskMetrics) -> None:
        accumulator.add({(join, task.partition): task})

    return report, gathered.metrics
