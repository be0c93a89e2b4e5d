# SPDX-License-Identifier: Apache-2.0
"""Merge two inputs, each sorted by time, into their common order of arrival."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from host.encode import EncodedBatch, EncodingPlan
from host.manifest import Manifest
from host.reference.side import Side
from host.runtime import Buffer
from host.tuples.arrival_order import merge_places, settled
from host.tuples.intake import NEVER, Arrived, Intake, SideTuples, TakeRows
from host.tuples.row_store import Rows
from host.tuples.tracked_rows import RowTimes

__all__ = ["PairedIntake"]


class _Head:
    """The rows of one side that have arrived and were not handed out."""

    def __init__(self) -> None:
        self.raw: pa.RecordBatch | None = None  # not encoded yet
        self.batch: EncodedBatch | None = None
        self.begin = 0
        self.rows = 0  # number of rows encoded so far
        self.latest = 0  # timestamp of the last encoded row


class PairedIntake(Intake):
    """Merges input 0 (side R) and input 1 (side S) by time; on a tie, R comes first.

    A batch of one side waits until the other side has a batch or has ended.
    """

    def __init__(
        self,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        plan: EncodingPlan,
        rows: tuple[Rows, Rows],
        manifest: Manifest,
        tell: TakeRows | None = None,
    ) -> None:
        super().__init__(inputs, plan, rows, manifest, tell)
        self._heads = {side: _Head() for side in Side}

    @property
    def at_end(self) -> bool:
        return all(buffer.at_end for buffer in self._inputs) and all(
            head.raw is None and head.batch is None for head in self._heads.values()
        )

    @property
    def reached(self) -> int:
        return min(self._reached(side) for side in Side)

    def _reached(self, side: Side) -> int:
        head = self._heads[side]
        if head.batch is not None:
            return int(head.batch.times[head.begin])
        return NEVER if self._inputs[side].at_end and head.raw is None else head.latest

    def next_row(self, side: Side) -> int:
        head = self._heads[side]
        if head.batch is None:
            return head.rows
        return int(head.batch.row_numbers(head.begin, head.begin + 1)[0])

    def take(self) -> Arrived | None:
        while self._fill():
            batches = {side: head.batch for side, head in self._heads.items() if head.batch}
            if any(side not in batches and not self._inputs[side].at_end for side in Side):
                if self._tell is not None:
                    return Arrived(0, {})
                continue  # the new batch has no row that is sent
            return self._merge(batches) if batches else None
        return None

    def _fill(self) -> bool:
        """Get an encoded batch for each side that has not ended; False if input is missing."""
        waits = False
        for side, head in self._heads.items():
            buffer = self._inputs[side]
            if head.raw is None and head.batch is None and not buffer.at_end:
                if buffer.demand():
                    head.raw = self._receive(buffer)
                    self._rows[side].append(head.raw)
                else:
                    waits = True
        if waits:
            return False
        fresh = [(side, head.raw) for side, head in self._heads.items() if head.raw is not None]
        if fresh:
            self._settle(fresh)
        for side, raw in fresh:
            head = self._heads[side]
            encoded = self._encode(side, raw)
            if self._tell is not None:
                rows = np.arange(head.rows, head.rows + raw.num_rows)
                self._tell(side, RowTimes(rows, encoded.all_times))
            if raw.num_rows:
                head.latest = int(encoded.all_times[-1])
            head.rows += raw.num_rows
            head.raw, head.batch, head.begin = None, encoded if len(encoded) else None, 0
        return True

    def _merge(self, batches: dict[Side, EncodedBatch]) -> Arrived:
        """Hand out those tuples of the first batches that no later row can precede."""
        begins = {side: self._heads[side].begin for side in batches}
        times = {side: batch.times[begins[side] :] for side, batch in batches.items()}
        takes = {side: len(of_side) for side, of_side in times.items()}
        if len(batches) == 2:
            takes[Side.R], takes[Side.S] = settled(times[Side.R], times[Side.S])
        empty = times[next(iter(times))][:0]
        left, right = (
            times[side][: takes[side]] if side in times else empty for side in (Side.R, Side.S)
        )
        places = dict(zip(Side, merge_places(left, right), strict=True))
        sides = {}
        for side, batch in batches.items():
            if takes[side]:
                end = begins[side] + takes[side]
                sides[side] = SideTuples(batch, begins[side], end, places[side])
                head = self._heads[side]
                head.begin = end
                if end == len(batch):
                    head.batch = None
        return Arrived(len(left) + len(right), sides)
