# SPDX-License-Identifier: Apache-2.0
"""What a Spark task does with a join aggregate: each left row of its partition gets its values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from host import Device, JoinError, open_device
from host.devices.software import on_device_or_software
from host.devices.waiting import Deadline, DeviceWatch
from host.operators.matches import aggregate_matches
from host.query.queries import Aggregate, JoinQuery
from spark_offload.cluster.shipping import local_device_uri
from spark_offload.devices.sources import DeviceSource
from spark_offload.devices.task_device import take_device
from spark_offload.layout.halos import HaloCounts
from spark_offload.layout.tagged import LEFT, RIGHT
from spark_offload.measures.metrics import TaskMetrics, TaskReport
from spark_offload.measures.stopwatch import Stopwatch
from spark_offload.session.progress import tuples_writer
from spark_offload.tasks.gathered import gathered
from spark_offload.tasks.match_pieces import MatchPiece, MatchPieces
from spark_offload.tasks.partition_rows import PartitionChecks, PartitionRows
from spark_offload.tasks.task import BUFFER_ROWS, ArrowFunction, declared, task_function

__all__ = ["MatchTask", "match_function"]

PIECE_ROWS = 1 << 16
"""Rows that are sent at a time, at least; as many as are kept, if those are more."""


@dataclass(frozen=True)
class MatchTask:
    """All that a task needs to know; shipped with the function.

    Parameters
    ----------
    query : JoinQuery
        Which rows match.
    aggregates : mapping of str to Aggregate
        What is computed of the right rows.
    devices : DeviceSource
        Where to get a device, shipped.
    left, right, output : Schema
        Columns of the inputs and of the answer.
    progress : str, optional
        Folder in which to tell how far the task has come.
    halos : HaloCounts, optional
        For a window of rows over ranges of time: how large the halos are.
    width : int or None
        Of a window of time, as a difference of order numbers; None if they are no numbers.
    software : str or None
        Address of the software device that answers for pieces which the device cannot take; None:
        such a piece is an error.
    """

    query: JoinQuery
    aggregates: Mapping[str, Aggregate]
    devices: DeviceSource
    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    progress: str | None = None
    halos: HaloCounts | None = None
    width: int | None = None
    software: str | None = None


def match_function(task: MatchTask, name: str, report: TaskReport) -> ArrowFunction:
    """Return the function for ``mapInArrow``; Spark shows its ``name`` in plans."""
    return task_function(
        name, lambda batches, partition: _aggregated(batches, task, partition, report)
    )


def _aggregated(
    batches: Iterator[pa.RecordBatch], task: MatchTask, partition: int, report: TaskReport
) -> Iterator[pa.RecordBatch]:
    """Yield the left rows of a partition with their aggregates; report at the end."""
    watch = Stopwatch()
    tell = tuples_writer(task.progress, partition)
    rows = PartitionRows(
        gathered(watch.reading(batches), BUFFER_ROWS),
        task.left,
        task.right,
        PartitionChecks(task.query, halos=task.halos),
    )
    pieces = MatchPieces(rows.layout, task.query, task.width, rows=PIECE_ROWS)
    results = 0
    with take_device(task.devices) as taken:
        answering = _Answering(task, taken.device)
        for answer in watch.giving(map(answering.answer, pieces.of(rows.reader()))):
            for batch in answer.to_batches():
                results += batch.num_rows
                yield declared(batch, task.output)
            tell(sum(rows.counts))
        measured = TaskMetrics(
            partition=partition,
            device=taken.name,
            attempt=taken.attempt,
            device_seconds=answering.watch.seconds,
            waited_seconds=answering.watch.waited,
            cycles=answering.watch.cycles,
            counters=answering.counters(),
            software_rows=answering.software_rows,
            handed_over=answering.handed_over,
        )
    report(
        replace(
            measured,
            left_rows=rows.counts[LEFT],
            right_rows=rows.counts[RIGHT],
            halo_rows=rows.halo_rows,
            results=results,
            seconds=watch.seconds,
        )
    )


class _Answering:
    """Answers for pieces on a device, and in software for those that it refuses.

    Parameters
    ----------
    task : MatchTask
    device : Device
        The device of the task.

    Attributes
    ----------
    watch : DeviceWatch
        Work of the device.
    software_rows : int
        Rows of both sides of the pieces that it has refused.
    handed_over : str
        Why it has refused the first of them.
    """

    def __init__(self, task: MatchTask, device: Device) -> None:
        self._task = task
        self._device = device
        self._deadline = Deadline()
        self._before = device.counters()
        self._query = replace(task.query, sorted=True, per_partition=False)  # Spark has sorted
        self.watch = DeviceWatch(device, self._deadline)
        self.software_rows = 0
        self.handed_over = ""

    def counters(self) -> dict[str, int]:
        """Return the increase of the device's counters."""
        now = self._device.counters()
        return {name: value - self._before.get(name, 0) for name, value in now.items()}

    def answer(self, piece: MatchPiece) -> pa.Table:
        """Return the left rows that a piece answers for, with their aggregates.

        Raises
        ------
        AcceleratorLimitError, KeyRangeError, WindowOverflowError
            If the device refuses the piece, and there is no software for it.
        """
        opened: list[Device] = []

        def software() -> Device:
            assert self._task.software is not None
            opened.append(open_device(local_device_uri(self._task.software)))
            return opened[0]

        def told(refusal: JoinError) -> None:
            self.software_rows += piece.left.num_rows + piece.right.num_rows
            self.handed_over = self.handed_over or f"in software: {refusal}"

        def found(device: Device) -> pa.Table:
            watched = {} if opened else {"deadline": self._deadline, "watch": self.watch}
            return self._on(device, piece, **watched)

        try:
            answer = on_device_or_software(
                found, self._device, None if self._task.software is None else software, told
            )
        finally:
            for device in opened:
                device.close()
        return answer.filter(pa.array(piece.answered))

    def _on(self, device: Device, piece: MatchPiece, **options: Any) -> pa.Table:
        aggregates = self._task.aggregates
        return aggregate_matches(
            piece.left, piece.right, self._query, aggregates, device, **options
        )
