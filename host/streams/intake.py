# SPDX-License-Identifier: Apache-2.0
"""Batches of rows as tuples with their places in the order of arrival."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode import BatchEncoder, EncodedBatch, EncodingPlan
from host.manifest import Manifest
from host.runtime import Buffer, Columns
from host.side import Side
from host.streams.counters import StagingCounters
from host.streams.row_store import Rows, joined
from host.streams.tracked_rows import RowTimes
from host.streams.window_gauge import WindowGauge
from host.window import TimeWindow

__all__ = ["Arrived", "Intake", "SideTuples", "TakeRows"]

Int64s = npt.NDArray[np.int64]

#: Is told of all rows of a side, in their order, those included of which no tuple is made.
TakeRows = Callable[[Side, RowTimes], None]

#: Later than any time.
NEVER = (1 << 64) - 1

#: Most rows of a batch that are encoded at once; longer ones are cut, so that memory stays bounded.
MOST_ROWS = 1 << 15
#: Batches of fewer rows are put together, up to so many rows, if several wait: a batch costs as
#: much time as some hundred rows.
SMALL_ROWS, ENOUGH_ROWS = 1 << 9, 1 << 13


@dataclass(frozen=True)
class SideTuples:
    """Tuples of one side that are to be sent.

    Parameters
    ----------
    batch : EncodedBatch
        What they are part of.
    begin, end : int
        Which part.
    places : array of int64
        Their places among all that are to be sent together.
    """

    batch: EncodedBatch
    begin: int
    end: int
    places: Int64s


@dataclass(frozen=True)
class Arrived:
    """Tuples of both sides that are to be sent together.

    Parameters
    ----------
    count : int
        How many.
    sides : mapping of Side to SideTuples
        Those of either side.
    """

    count: int
    sides: dict[Side, SideTuples]


class Intake(ABC):
    """Takes batches from input buffers, notes their rows, and encodes them; for one execution.

    Parameters
    ----------
    inputs : sequence of Buffer
        Where batches come from.
    plan : EncodingPlan
        How rows become tuples.
    rows : tuple of Rows
        Where the rows of either side are kept.
    manifest : Manifest
        Of the accelerator.
    tell : callable, optional
        Is told of all rows as they are taken; then :meth:`take` also returns when no tuple could
        be made of what has come.
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
        self.counters = StagingCounters()
        # Whole tables have been measured before: their plan is a checked one.
        self._gauges = (
            {side: WindowGauge(side, int(plan.window.lifespan), manifest) for side in Side}
            if isinstance(plan.window, TimeWindow) and not plan.checked
            else {}
        )

    @property
    @abstractmethod
    def at_end(self) -> bool:
        """Whether everything has been handed out."""

    @abstractmethod
    def take(self) -> Arrived | None:
        """Return the next tuples; None, having asked for input, if some must come first."""

    @property
    @abstractmethod
    def reached(self) -> int:
        """No tuple that is handed out later has an earlier timestamp."""

    @abstractmethod
    def next_row(self, side: Side) -> int:
        """No tuple of ``side`` that is handed out later is of a row before this one."""

    def owned(self, pairs: Columns) -> Columns:
        """Return those of ``pairs``, of rows taken so far, that belong to the result: all."""
        return pairs

    def _receive(self, buffer: Buffer[pa.RecordBatch]) -> pa.RecordBatch:
        """Consume a batch, or the beginning of a long one, or the small ones that are there."""
        parts: list[pa.RecordBatch] = []
        rows = 0
        while buffer.rows and rows < ENOUGH_ROWS:
            batch = buffer.access()
            if parts and batch.num_rows >= SMALL_ROWS:
                break
            batch = batch.slice(0, MOST_ROWS)
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
        """Let the first batches of both sides settle what the plan leaves open."""
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
    """Bytes of the fields that do not lie in the batch itself."""
    buffers = [column.buffers()[1] for column in batch.columns if len(column.buffers()) > 1]
    spans = [(buffer.address, buffer.address + buffer.size) for buffer in buffers if buffer]
    copied = 0
    for field in encoded.keys.values():
        address = field.values.ctypes.data
        if not any(begin <= address < end for begin, end in spans):
            copied += field.values.nbytes
    return copied
