# SPDX-License-Identifier: Apache-2.0
"""What one Spark task of a join does: read its partition, join it on a device, hand pairs back."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from host import Device, UsageError, open_device
from host.session.intake import TaggedLayout
from host.session.join import Join
from spark_offload.cluster.devices import DeviceSource, take_device
from spark_offload.cluster.machines import local_device_uri
from spark_offload.cluster.session import tuples_writer
from spark_offload.errors import task_partition
from spark_offload.measures import cumulative_counts, histogram
from spark_offload.task.handover import Handover
from spark_offload.task.rows import PartitionRows, TaggedTask
from spark_offload.task.task import BUFFER_ROWS

__all__ = [
    "JoinTask",
]


@dataclass(frozen=True, kw_only=True)
class JoinTask(TaggedTask):
    """Description of the tasks of a join; shipped with the function.

    Parameters
    ----------
    devices : DeviceSource
        Where to get a device, shipped.
    trace : bool
        Whether to measure the latency of every result.
    progress : str, optional
        Folder in which to tell how far the task has come.
    width : int or None
        Of a time-based window that can outgrow the device, as a difference of order numbers. None:
        it cannot, or its rows cannot be counted before the device gets them.
    software : str or None
        Address of the software device that goes on from the row that finds no room; None: such a
        row is an error.
    """

    devices: DeviceSource
    trace: bool = False
    progress: str | None = None
    width: int | None = None
    software: str | None = None

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pairs; the rows pass: what is kept is the window and what buffers hold."""
        tell = tuples_writer(self.progress, task_partition())
        rows = self.rows(batches)
        with take_device(self.devices) as taken:
            handover = self._handover(rows, taken.device)
            join = self._joining(
                rows.reader() if handover is None else handover.first(),
                rows.layout,
                taken.device,
                trace=self.trace,
                report=lambda progress: tell(progress.tuples),
                is_cut=None if handover is None else lambda: handover.is_needed,
            )
            yield from join.batches()
            found, latency = join.measured, join.measured.latency
            told.update(
                device=taken.name,
                attempt=taken.attempt,
                device_seconds=found.seconds,
                waited_seconds=found.waited,
                cycles=found.cycles,
                counters=join.counters(),
                hash_note=found.hash_note,
                precision=found.precision,
                elastic=found.elastic,
                failures=found.failures,
                copied_bytes=found.staged.copied_bytes,
            )
            if latency is not None:
                told.update(
                    latency=histogram(latency.visiting),
                    processing=histogram(latency.processing),
                    timeline=cumulative_counts(latency.emitted, found.cycles),
                )
        if handover is not None and handover.is_needed and self.software is not None:
            with open_device(local_device_uri(self.software)) as software:
                try:
                    join = self._joining(*handover.rest(), software)
                except UsageError:  # the device's error is the one that helps
                    raise handover.error() from None
                yield from join.batches()
                told["device_seconds"] += join.measured.seconds
                told["waited_seconds"] += join.measured.waited
                told["copied_bytes"] += join.measured.staged.copied_bytes
            told.update(software_rows=handover.rest_rows, handed_over=handover.reason)
        told.update(rows.counted)

    def _handover(self, rows: PartitionRows, device: Device) -> Handover | None:
        """Return what watches the window, if it can outgrow the device."""
        if self.width is None:
            return None
        return Handover(
            rows.reader(),
            rows.layout,
            self.query.how,
            self.width,
            device.manifest,
            strict=self.software is None,
        )

    def _joining(
        self, rows: pa.RecordBatchReader, layout: TaggedLayout, device: Device, **options: Any
    ) -> Join:
        # Spark has sorted; what the user declared is checked against the rows' numbers.
        query = replace(self.query, sorted=True)
        if device.is_software_engine:
            query = query.in_software
        return Join.of_tagged(
            rows, layout, query, device, buffer_rows=BUFFER_ROWS, threads=1, **options
        )
