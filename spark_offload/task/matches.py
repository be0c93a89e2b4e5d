# SPDX-License-Identifier: Apache-2.0
"""Tasks with a join aggregate: each left row of a partition gets the values of its matches."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host import CountWindow, Device, JoinError, open_device
from host.devices.software import on_device_or_software
from host.devices.waiting import Work
from host.operators.matches import aggregate_matches
from host.query.queries import Aggregate, Query
from host.session.intake import TaggedLayout
from host.session.rows import joined
from spark_offload.cluster.devices import DeviceSource, take_device
from spark_offload.cluster.machines import local_device_uri
from spark_offload.cluster.session import tuples_writer
from spark_offload.errors import task_partition
from spark_offload.partitioning.tagged import LEAST, LEFT
from spark_offload.task.handover import order_numbers
from spark_offload.task.rows import TaggedTask, split_sides
from spark_offload.task.task import BUFFER_ROWS

__all__ = [
    "MatchPiece",
    "MatchPieces",
    "MatchTask",
]

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

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MatchPiece:
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

    def __init__(self, layout: TaggedLayout, query: Query, width: int | None, *, rows: int) -> None:
        self._layout = layout
        self._size = query.window.size if isinstance(query.window, CountWindow) else None
        self._width = width
        self._rows = rows
        self._kept: list[pa.RecordBatch] = []

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[MatchPiece]:
        """Yield the pieces of tagged batches in the order of arrival, each with an answer."""
        pieces = self._pieces(batches)
        return (piece for piece in pieces if piece.answered.any())

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[MatchPiece]:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if count >= max(self._rows, sum(kept.num_rows for kept in self._kept)):
                yield self._piece(waiting, ends=False)
                waiting, count = [], 0
        if waiting or self._kept:
            yield self._piece(waiting, ends=True)

    def _piece(self, batches: list[pa.RecordBatch], *, ends: bool) -> MatchPiece:
        rows = joined([*self._kept, *batches])
        is_left = rows.column(self._layout.side).to_numpy() == LEFT
        complete = is_left if ends else self._complete(rows, is_left)
        owned = self._owned(rows)
        self._kept = [] if ends else [rows.filter(pa.array(self._met(rows, is_left, complete)))]
        answered = complete & owned
        # Left rows of a window of rows count each other, whichever are answered for.
        sent = is_left if self._size is not None else answered
        left, right = split_sides([rows.filter(pa.array(sent | ~is_left))], self._layout)
        return MatchPiece(left, right, answered[sent])

    def _complete(self, rows: pa.RecordBatch, is_left: Bools) -> Bools:
        """Return which rows are left rows that no later row matches."""
        if self._size is not None:
            behind = int(is_left.sum()) - np.cumsum(is_left)
            return is_left & (behind >= self._size)
        if self._width is None or not len(rows):
            return np.zeros(len(is_left), np.bool_)
        times = order_numbers(rows)
        return is_left & (times < max(LEAST, int(times[-1]) - self._width))

    def _owned(self, rows: pa.RecordBatch) -> Bools:
        """Return which rows the partition answers for, if they are left rows."""
        if self._layout.alone is None:
            return np.ones(len(rows), np.bool_)
        owned: Bools = rows.column(self._layout.alone).to_numpy(zero_copy_only=False)
        return owned

    def _met(self, rows: pa.RecordBatch, is_left: Bools, complete: Bools) -> Bools:
        """Return the left rows that are not complete, and the right rows that they may match."""
        waiting = is_left & ~complete
        first = int(np.argmax(waiting)) if waiting.any() else len(rows)
        if self._size is not None:
            ahead = np.cumsum(~is_left)
            before = int(ahead[first - 1]) if first else 0  # right rows before the first that waits
            return waiting | (~is_left & (ahead > before - self._size))
        if self._width is None:
            return np.ones(len(rows), np.bool_)
        times = order_numbers(rows)
        oldest = int(times[min(first, len(rows) - 1)])
        return waiting | (~is_left & (times >= max(LEAST, oldest - self._width)))


# What a Spark task does with a join aggregate: each left row of its partition gets its values.


@dataclass(frozen=True, kw_only=True)
class MatchTask(TaggedTask):
    """Description of the tasks of a join aggregate; shipped with the function.

    Parameters
    ----------
    aggregates : mapping of str to Aggregate
        What is computed of the right rows.
    devices : DeviceSource
        Where to get a device, shipped.
    progress : str, optional
        Folder in which to tell how far the task has come.
    width : int or None
        Of a window of time, as a difference of order numbers; None if they are no numbers.
    software : str or None
        Address of the software device that answers for pieces which the device cannot take; None:
        such a piece is an error.
    """

    aggregates: Mapping[str, Aggregate]
    devices: DeviceSource
    progress: str | None = None
    width: int | None = None
    software: str | None = None

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the left rows with their aggregates."""
        tell = tuples_writer(self.progress, task_partition())
        rows = self.rows(batches)
        pieces = MatchPieces(rows.layout, self.query, self.width, rows=BUFFER_ROWS)
        with take_device(self.devices) as taken:
            answering = _Answering(self, taken.device)
            for answer in map(answering.answer, pieces.of(rows.reader())):
                yield from answer.to_batches()
                tell(sum(rows.counts))
            told.update(
                device=taken.name,
                attempt=taken.attempt,
                device_seconds=answering.work.seconds,
                waited_seconds=answering.work.waited,
                cycles=answering.work.cycles,
                counters=answering.counters(),
                software_rows=answering.software_rows,
                handed_over=answering.handed_over,
            )
        told.update(rows.counted)


class _Answering:
    """Answers for pieces on a device, and in software for those that it refuses.

    Parameters
    ----------
    task : MatchTask
    device : Device
        The device of the task.

    Attributes
    ----------
    work : Work
        What the device has taken.
    software_rows : int
        Rows of both sides of the pieces that it has refused.
    handed_over : str
        Why it has refused the first of them.
    """

    def __init__(self, task: MatchTask, device: Device) -> None:
        self._task = task
        self._device = device
        self._before = device.counters()
        self._query = replace(task.query, sorted=True)  # Spark has sorted
        self.work = Work()
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
        AcceleratorLimitError
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
            watched = {} if opened else {"work": self.work}
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
