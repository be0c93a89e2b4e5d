# SPDX-License-Identifier: Apache-2.0
"""External sort: runs that fit the granted memory are spilled, if there are several, and merged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from host.runtime import (
    BUFFER_BYTES,
    ConduitExecStream,
    ConduitParams,
    Quantity,
    Quantum,
    Requirements,
    StreamResult,
)
from host.streams.sort_keys import key_columns, sorting_permutation
from host.streams.sorted_merge import merge_heads
from host.streams.spill import SpillFolder

__all__ = ["Sort", "SortParams"]


@dataclass(frozen=True)
class SortParams(ConduitParams):
    """Parameters of :class:`Sort`.

    Parameters
    ----------
    by : sequence of str
        Columns to sort by, ascending; nulls come last.
    rows : int
        Largest number of rows in an output batch, and in a batch of a spilled run.
    buffers : int
        Number of staging buffers to request. The more are granted, the fewer runs are spilled.
    folder : str or Path, optional
        Folder for spilled runs; by default the system's folder for temporary files.
    """

    by: Sequence[str]
    rows: int = 1 << 15
    buffers: int = 64
    folder: str | Path | None = None


class Sort(ConduitExecStream[SortParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that sorts its input; equal rows keep their order.

    The stream holds at most as many bytes as its staging buffers, and one batch of each spilled run
    while it merges, so memory does not grow with the input.

    Attributes
    ----------
    spilled : int
        Bytes that the last execution wrote to files.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._held: list[pa.RecordBatch] = []
        self._spill: SpillFolder | None = None
        self._sorted: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None
        self.spilled = 0

    def prepare(self, params: SortParams) -> None:
        super().prepare(params)
        self._params = params

    def requirements(self) -> Requirements:
        return Requirements(Quantity(buffers=1), Quantity(buffers=max(1, self._params.buffers)))

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._release()
        self._bytes = 0
        self.spilled = 0

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while self._sorted is None:
            if done >= quantum.rows:
                return StreamResult.QUANTUM_EXPIRED
            if self.input.at_end:
                self._sorted = self._merged()
            elif not self.input.demand():
                return StreamResult.BUF_UNDERFLOW
            else:
                done += self._hold(self.input.access())
                self.input.consume()
        while done < quantum.rows:
            room = self.output.provide()
            if not room:
                return StreamResult.BUF_OVERFLOW
            batch = next(self._sorted, None) if self._rest is None else self._rest
            if batch is None:
                return self.finish()
            self.output.produce(batch.slice(0, room))
            self._rest = batch.slice(room) if room < batch.num_rows else None
            done += min(room, batch.num_rows)
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._release()

    def _release(self) -> None:
        self._held, self._sorted, self._rest = [], None, None
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    def _hold(self, batch: pa.RecordBatch) -> int:
        key_columns(batch.schema, self._params.by)
        self._held.append(batch)
        self._bytes += batch.nbytes
        # Sorting a run makes a second copy of it, so only half of the granted memory is filled.
        if 2 * self._bytes >= self.allocation.buffers * BUFFER_BYTES:
            if self._spill is None:
                self._spill = SpillFolder(self._params.folder)
            self._spill.write(self._run(), self._params.rows)
            self.spilled = self._spill.bytes
        return batch.num_rows

    def _run(self) -> pa.Table:
        """Sort the held rows, release them, and return the sorted table."""
        held, self._held, self._bytes = self._held, [], 0
        table = pa.Table.from_batches(held)
        return table.take(sorting_permutation(table, list(self._params.by)))

    def _merged(self) -> Iterator[pa.RecordBatch]:
        last = self._run().to_batches(self._params.rows) if self._held else []
        if self._spill is None:
            yield from last
            return
        runs = [self._spill.read(index) for index in range(len(self._spill))]
        runs.append(iter(last))
        heads = _next_heads([(None, run) for run in runs])
        while heads:
            # An input's end is known only after reading it, so every run is treated as if rows may
            # follow.
            merged, taken = merge_heads(
                [head for head, _ in heads],
                [True] * len(heads),
                self._params.by,
                self._params.rows,
            )
            yield merged
            heads = _next_heads(
                [
                    (head.slice(count) if count < head.num_rows else None, run)
                    for (head, run), count in zip(heads, taken, strict=True)
                ]
            )


def _next_heads(
    rests: Sequence[tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]],
) -> list[tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]]:
    """Read the next batches of runs whose head is used up; drop runs that have ended."""
    heads = [(next(run, None) if rest is None else rest, run) for rest, run in rests]
    return [(head, run) for head, run in heads if head is not None]
