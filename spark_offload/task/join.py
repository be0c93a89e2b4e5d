# SPDX-License-Identifier: Apache-2.0
"""Tasks that have a device: they join their partition, or aggregate the matches of left rows."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from host import CountWindow, Device, JoinError, UsageError, open_device
from host.arrays import Bools
from host.devices.software import on_device_or_software
from host.devices.waiting import Work
from host.operators.matches import aggregate_matches
from host.protocol.segments import growth
from host.query.queries import Aggregate, Query
from host.session.intake import TaggedLayout
from host.session.join import Join
from host.session.rows import joined
from spark_offload.cluster.machines import DeviceSource, local_device_uri, take_device
from spark_offload.cluster.session import tuples_writer
from spark_offload.errors import task_partition
from spark_offload.measures import cumulative_counts, histogram
from spark_offload.partitioning.tagged import LEAST, LEFT
from spark_offload.task.handover import Handover, order_numbers
from spark_offload.task.rows import PartitionRows, TaggedTask, split_sides
from spark_offload.task.task import BUFFER_ROWS

__all__ = [
    "DeviceTask",
    "JoinTask",
    "MatchPieces",
    "MatchTask",
]


@dataclass(frozen=True, kw_only=True)
class DeviceTask(TaggedTask):
    """Description of the tasks that have a device each; shipped with the function.

    Parameters
    ----------
    devices : DeviceSource
        Where to get a device, shipped.
    progress : str, optional
        Folder in which to tell how far the task has come.
    width : int or None
        Of a time-based window, as a difference of order numbers; None if the window cannot outgrow
        the device, or its times are no numbers before the device gets them.
    software : str or None
        Address of the software device that takes the rows which the device cannot take; None: such
        rows are an error.
    """

    devices: DeviceSource
    progress: str | None = None
    width: int | None = None
    software: str | None = None


@dataclass(frozen=True, kw_only=True)
class JoinTask(DeviceTask):
    """Description of the tasks of a join.

    Parameters
    ----------
    trace : bool
        Whether to measure the latency of every result.
    """

    trace: bool = False

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


# Tagged rows cut into pieces that hold all matches of the left rows which they answer for.
#
# A left row is *complete* when no later row can match it: over a window of time, when a row has
# come that is later than the window reaches; over a window of rows, when so many left rows have
# come behind it. A piece answers for the left rows that are complete and have not been answered
# for. What the others may still match is kept for the next piece.
#
# In a frame that is cut into ranges of time, a left row is answered for in the range in which it
# leaves the window (:mod:`spark_offload.partitioning.halos`), whose halo has all that the row has
# met.


@dataclass(frozen=True, eq=False)
class _MatchPiece:
    """Rows of both sides in the order of arrival.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    answered : array of bool
        Which left rows the piece answers for; the others are there to be counted.
    """

    left: pa.Table
    right: pa.Table
    answered: Bools


@dataclass(eq=False)
class MatchPieces:
    """Pieces of the rows of a partition, cut for a join aggregate.

    Parameters
    ----------
    layout : TaggedLayout
        Of the rows.
    query : Query
        Which rows match.
    width : int or None
        Of a window of time, as a difference of order numbers; None if times are no such numbers,
        which makes one piece of all rows.
    rows : int
        Rows of a piece at least; as many as are kept, if those are more, so that sending these
        again costs no more than the piece itself.
    """

    layout: TaggedLayout
    query: Query
    width: int | None
    rows: int

    def __post_init__(self) -> None:
        window = self.query.window
        self._size = window.size if isinstance(window, CountWindow) else None
        self._kept: list[pa.RecordBatch] = []

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[_MatchPiece]:
        """Yield the pieces of tagged batches in the order of arrival, each with an answer."""
        pieces = self._pieces(batches)
        return (piece for piece in pieces if piece.answered.any())

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[_MatchPiece]:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if count >= max(self.rows, sum(kept.num_rows for kept in self._kept)):
                yield self._piece(waiting, ends=False)
                waiting, count = [], 0
        if waiting or self._kept:
            yield self._piece(waiting, ends=True)

    def _piece(self, batches: list[pa.RecordBatch], *, ends: bool) -> _MatchPiece:
        rows = joined([*self._kept, *batches])
        is_left = rows.column(self.layout.side).to_numpy() == LEFT
        complete = is_left if ends else self._complete(rows, is_left)
        owned = self._owned(rows)
        self._kept = [] if ends else [rows.filter(pa.array(self._met(rows, is_left, complete)))]
        answered = complete & owned
        # Left rows of a window of rows count each other, whichever are answered for.
        sent = is_left if self._size is not None else answered
        left, right = split_sides([rows.filter(pa.array(sent | ~is_left))], self.layout)
        return _MatchPiece(left, right, answered[sent])

    def _complete(self, rows: pa.RecordBatch, is_left: Bools) -> Bools:
        """Return which rows are left rows that no later row matches."""
        if self._size is not None:
            behind = int(is_left.sum()) - np.cumsum(is_left)
            return is_left & (behind >= self._size)
        if self.width is None or not len(rows):
            return np.zeros(len(is_left), np.bool_)
        times = order_numbers(rows)
        return is_left & (times < max(LEAST, int(times[-1]) - self.width))

    def _owned(self, rows: pa.RecordBatch) -> Bools:
        """Return which rows the partition answers for, if they are left rows."""
        if self.layout.alone is None:
            return np.ones(len(rows), np.bool_)
        owned: Bools = rows.column(self.layout.alone).to_numpy(zero_copy_only=False)
        return owned

    def _met(self, rows: pa.RecordBatch, is_left: Bools, complete: Bools) -> Bools:
        """Return the left rows that are not complete, and the right rows that they may match."""
        waiting = is_left & ~complete
        first = int(np.argmax(waiting)) if waiting.any() else len(rows)
        if self._size is not None:
            ahead = np.cumsum(~is_left)
            before = int(ahead[first - 1]) if first else 0  # right rows before the first that waits
            return waiting | (~is_left & (ahead > before - self._size))
        if self.width is None:
            return np.ones(len(rows), np.bool_)
        times = order_numbers(rows)
        oldest = int(times[min(first, len(rows) - 1)])
        return waiting | (~is_left & (times >= max(LEAST, oldest - self.width)))


# What a Spark task does with a join aggregate: each left row of its partition gets its values.


@dataclass(frozen=True, kw_only=True)
class MatchTask(DeviceTask):
    """Description of the tasks of a join aggregate.

    Parameters
    ----------
    aggregates : mapping of str to Aggregate
        What is computed of the right rows.
    """

    aggregates: Mapping[str, Aggregate]

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the left rows with their aggregates."""
        tell = tuples_writer(self.progress, task_partition())
        rows = self.rows(batches)
        pieces = MatchPieces(rows.layout, self.query, self.width, BUFFER_ROWS)
        query = replace(self.query, sorted=True)  # Spark has sorted
        spent, software_rows = Work(), 0
        refused: list[JoinError] = []
        with take_device(self.devices) as taken, ExitStack() as opened:
            before = taken.device.counters()

            @cache
            def software() -> Device:
                return opened.enter_context(open_device(local_device_uri(self.software or "")))

            for piece in pieces.of(rows.reader()):

                def values(device: Device) -> pa.Table:
                    watched = {"work": spent} if device is taken.device else {}
                    sides = piece.left, piece.right
                    return aggregate_matches(*sides, query, self.aggregates, device, **watched)

                known = len(refused)
                answer = on_device_or_software(
                    values, taken.device, software if self.software else None, refused.append
                )
                if len(refused) > known:
                    software_rows += piece.left.num_rows + piece.right.num_rows
                yield from answer.filter(pa.array(piece.answered)).to_batches()
                tell(sum(rows.counts))
            told.update(
                device=taken.name,
                attempt=taken.attempt,
                device_seconds=spent.seconds,
                waited_seconds=spent.waited,
                cycles=spent.cycles,
                counters=growth(taken.device.manifest, before, taken.device.counters()),
                software_rows=software_rows,
                handed_over=f"in software: {refused[0]}" if refused else "",
            )
        told.update(rows.counted)
