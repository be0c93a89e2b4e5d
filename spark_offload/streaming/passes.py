# SPDX-License-Identifier: Apache-2.0
"""The pairs of a micro-batch that were not there before, found in two passes of a device.

A pair is new if at least one of its rows is. The first pass joins the new left rows with all right
rows, the second one the kept left rows with the new right rows: together every new pair once, and
no pair of two kept rows, which was found when the later of them came.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host import Device
from host.driver import TableJoin
from spark_offload.streaming.blobs import microseconds
from spark_offload.streaming.task import StreamTask
from spark_offload.tagged import LEFT, RIGHT

__all__ = ["NewPairs", "Rows", "reach"]

Range = tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Rows of one side.

    Parameters
    ----------
    kept : Table
        Those that came in earlier micro-batches.
    new : Table
        Those of this one.
    """

    kept: pa.Table
    new: pa.Table


def reach(table: pa.Table, order: str, width: int) -> Range | None:
    """Return the first and the last microsecond that rows of ``table`` can meet; None if empty."""
    if not table.num_rows:
        return None
    times = microseconds(table, order)
    return int(times.min()) - width, int(times.max()) + width


class NewPairs:
    """The new pairs of one group in one micro-batch.

    Parameters
    ----------
    task : StreamTask
        What to join.
    device : Device
        An open device.
    left, right : Rows
        The rows of both sides.

    Attributes
    ----------
    results, cycles : int
        Pairs found, and clock cycles that the device ran, so far.
    device_seconds : float
        Time spent in the device so far.
    """

    def __init__(self, task: StreamTask, device: Device, left: Rows, right: Rows) -> None:
        self._task = task
        self._device = device
        self._left = left
        self._right = right
        self.results = 0
        self.cycles = 0
        self.device_seconds = 0.0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the pairs: the left columns, then the right ones."""
        left, right = self._left, self._right
        yield from self._pass(left.new, pa.concat_tables([right.kept, right.new]))
        yield from self._pass(left.kept, right.new)

    def _pass(self, left: pa.Table, right: pa.Table) -> Iterator[pa.RecordBatch]:
        left = self._within_reach(left, LEFT, right, RIGHT)
        right = self._within_reach(right, RIGHT, left, LEFT)
        if not left.num_rows or not right.num_rows:
            return
        join = TableJoin(left, right, self._task.query, self._device)
        for batch in join.batches():
            self.results += batch.num_rows
            yield batch
        self.cycles += join.cycles
        self.device_seconds += join.device_seconds

    def _within_reach(
        self, table: pa.Table, side: int, others: pa.Table, other_side: int
    ) -> pa.Table:
        """Return the rows that are near enough to some row of the other side."""
        span = reach(others, self._task.order(other_side), self._task.width)
        if span is None:
            return table.slice(0, 0)
        times = microseconds(table, self._task.order(side))
        near: npt.NDArray[np.bool_] = (times >= span[0]) & (times <= span[1])
        return table if near.all() else table.filter(pa.array(near))
