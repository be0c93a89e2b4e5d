# SPDX-License-Identifier: Apache-2.0
"""Encode batches of rows as tuples, with their places in the order of arrival."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode import BatchEncoder, EncodedBatch, EncodingPlan
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import TimeWindow
from host.runtime import Buffer, Columns
from host.tuples.row_store import Rows, joined
from host.tuples.staging_counters import StagingCounters
from host.tuples.tracked_rows import RowTimes
from host.tuples.window_gauge import WindowGauge

__all__ = ["Arrived", "Intake", "SideTuples", "TakeRows"]

Int64s = npt.NDArray[np.int64]

#: Called with all rows of a side, in order, including rows that are not encoded as tuples.
TakeRows = Callable[[Side, RowTimes], None]

#: A time later than any timestamp.
NEVER = (1 << 64) - 1

#: Largest number of rows that are encoded at once. Longer batches are cut to bound memory.
MOST_ROWS = 1 << 15
#: If several batches wait, those with fewer than `SMALL_ROWS` rows are joined, up to `ENOUGH_ROWS`
#: rows. The fixed cost of a batch equals that of some hundred rows.
SMALL_ROWS, ENOUGH_ROWS = 1 << 9, 1 << 13


@dataclass(frozen=True)
class SideTuples:
    """Tuples of one side that will be sent.

    Parameters
    ----------
    batch : EncodedBatch
        Batch that contains the tuples.
    begin, end : int
        Range of the tuples in the batch.
    places : array of int64
        Places of the tuples among all tuples that are sent together.
    """

    batch: EncodedBatch
    begin: int
    end: int
    places: Int64s

    @property
    def times(self) -> UInt64s:
        """Timestamps of the tuples."""
        return self.batch.times[self.begin : self.end]


@dataclass(frozen=True)
class Arrived:
    """Tuples of both sides that are sent together.

    Parameters
    ----------
    count : int
        Number of tuples.
    sides : mapping of Side to SideTuples
        Tuples of each side.
    """

    count: int
    sides: dict[Side, SideTuples]

    @property
    def times(self) -> UInt64s:
        """Timestamps of all tuples, in the order in which these are sent."""
        times = np.empty(self.count, np.uint64)
        for tuples in self.sides.values():
            times[tuples.places] = tuples.times
        return times

    def split(self, count: int) -> tuple["Arrived", "Arrived"]:
        """Return the first ``count`` tuples, and those behind them."""
        first, rest = {}, {}
        for side, tuples in self.sides.items():
            mine = int(np.searchsorted(tuples.places, count))
            middle = tuples.begin + mine
            first[side] = SideTuples(tuples.batch, tuples.begin, middle, tuples.places[:mine])
            later = tuples.places[mine:] - count
            rest[side] = SideTuples(tuples.batch, middle, tuples.end, later)
        return Arrived(count, first), Arrived(self.count - count, rest)


class Intake(ABC):
    """Takes batches from input buffers, stores their rows, and encodes them, for one execution.

    Parameters
    ----------
    inputs : sequence of Buffer
        Buffers that the batches come from.
    plan : EncodingPlan
        Encoding of rows as tuples.
    rows : tuple of Rows
        Stores of the rows of either side.
    manifest : Manifest
        Manifest of the accelerator.
    tell : callable, optional
        Called with all rows as they are taken. If given, :meth:`take` also returns when none of
        the new rows became a tuple.

    Attributes
    ----------
    counters : StagingCounters
        What was taken and copied.
    most_rows : int
        Most rows that are encoded at once, of one batch or of small ones that are joined.
    """

    def __init__(
        self,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        plan: EncodingPlan,
        rows: tuple[Rows, Rows],
        manifest: Manifest,
        tell: TakeRows | None = None,
    ) -> None:
        self._tell = tell
        self._inputs = inputs
        self._plan = plan
        self._rows = rows
        self._encoder = BatchEncoder(plan)
        self._settled = False
        self.most_rows = MOST_ROWS
        self.counters = StagingCounters()
        # Whole tables have been measured before: their plan is marked as checked.
        self._gauges = (
            {side: WindowGauge(side, int(plan.window.lifespan), manifest) for side in Side}
            if isinstance(plan.window, TimeWindow) and not plan.checked
            else {}
        )

    @property
    @abstractmethod
    def at_end(self) -> bool:
        """Whether all tuples have been handed out."""

    @abstractmethod
    def take(self) -> Arrived | None:
        """Return the next tuples; None, after a demand for input, if more input must come first."""

    @property
    @abstractmethod
    def reached(self) -> int:
        """Lower bound of the timestamps of all tuples that are handed out later."""

    @abstractmethod
    def next_row(self, side: Side) -> int:
        """Return the lower bound of the rows of ``side`` whose tuples are handed out later."""

    def floor(self, ticks: int) -> int:
        """Return the greatest timestamp that is not later than a time, once tuples have come.

        Parameters
        ----------
        ticks : int
            The time, as from :meth:`host.encode.times.TimePlan.ticks`.
        """
        return self._encoder.floor(ticks)

    def owned(self, pairs: Columns) -> Columns:
        """Return the pairs that belong to the result; by default all of them."""
        return pairs

    def _receive(self, buffer: Buffer[pa.RecordBatch]) -> pa.RecordBatch:
        """Consume a batch, the beginning of a long batch, or several small batches that wait."""
        parts: list[pa.RecordBatch] = []
        rows = 0
        while buffer.rows and rows < min(ENOUGH_ROWS, self.most_rows):
            batch = buffer.access()
            if parts and batch.num_rows >= SMALL_ROWS:
                break
            batch = batch.slice(0, self.most_rows - rows)
            buffer.consume(batch.num_rows)
            parts.append(batch)
            rows += batch.num_rows
            if batch.num_rows >= SMALL_ROWS:
                break
        self.counters.batches += len(parts)
        self.counters.rows += rows
        if len(parts) == 1:
            return parts[0]
        self.counters.copied_batches += len(parts)
        together = joined(parts)
        self.counters.copied_bytes += together.nbytes
        return together

    def _settle(self, batches: Sequence[tuple[Side, pa.RecordBatch]]) -> None:
        """Use the first batches of both sides to settle what the plan leaves open."""
        if not self._settled:
            self._encoder.settle(batches)
            self._settled = True

    def _encode(self, side: Side, batch: pa.RecordBatch) -> EncodedBatch:
        encoded = self._encoder.encode(side, batch)
        if side in self._gauges:
            numbers = encoded.row_numbers(0, len(encoded))
            self._gauges[side].see(encoded.times, lambda index: int(numbers[index]))
        copied = _copied_bytes(batch, encoded)
        if copied:
            self.counters.copied_batches += 1
            self.counters.copied_bytes += copied
        self.counters.tuples += len(encoded)
        return encoded


def _copied_bytes(batch: pa.RecordBatch, encoded: EncodedBatch) -> int:
    """Return the bytes of encoded fields that do not lie in the buffers of the batch."""
    buffers = [column.buffers()[1] for column in batch.columns if len(column.buffers()) > 1]
    spans = [(buffer.address, buffer.address + buffer.size) for buffer in buffers if buffer]
    copied = 0
    for field in encoded.keys.values():
        address = field.values.ctypes.data
        if not any(begin <= address < end for begin, end in spans):
            copied += field.values.nbytes
    return copied
