# SPDX-License-Identifier: Apache-2.0
"""Streams that sort, merge and remove duplicates, with runs that are spilled to files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
import tempfile
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Bools, inverse
from host.columns.kinds import contiguous, integer_view
from host.engine.equal_keys import order_by
from host.errors import FailureError, OrderError, UsageError, unknown_column
from host.runtime import (
    BUFFER_BYTES,
    ConduitExecStream,
    ConfluenceExecStream,
    Quantity,
    Quantum,
    Requirements,
    StreamParams,
    StreamResult,
)

__all__ = [
    "Sort",
    "SortParams",
    "SortedMerge",
    "SortedMergeParams",
    "SpillFolder",
    "Uniq",
    "UniqParams",
    "falls",
    "key_columns",
    "merge_heads",
    "repeats",
    "sorting_permutation",
]

# Order rows by several columns: comparison of neighbours, and the stable sorting permutation.

Rows: TypeAlias = pa.RecordBatch | pa.Table


def key_columns(schema: pa.Schema, by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in ``by``, or all names if None, after checking them against ``schema``.

    Raises
    ------
    UsageError
        If a column is missing, or there is no column.
    """
    names = tuple(schema.names) if by is None else tuple(by)
    for name in names:
        if name not in schema.names:
            raise unknown_column(name, schema.names)
    if not names:
        raise UsageError("Rows are compared by at least one column, but there is none.")
    return names


def repeats(rows: pa.RecordBatch, by: Sequence[str]) -> Bools:
    """Return whether each row but the first equals the row before it; nulls equal nulls."""
    count = max(rows.num_rows - 1, 0)
    result = np.ones(count, np.bool_)
    for name in by:
        result &= _same(*_neighbours(rows.column(name)))
    return result


def falls(rows: pa.RecordBatch, by: Sequence[str]) -> Bools:
    """Return whether each row but the first is less than the row before it; nulls come last."""
    count = max(rows.num_rows - 1, 0)
    result, undecided = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for number, name in enumerate(by, 1):
        first, second = _neighbours(rows.column(name))
        result |= undecided & _less(second, first)
        if number < len(by):
            undecided &= _same(first, second)
    return result


def sorting_permutation(rows: Rows, by: Sequence[str]) -> pa.Array:
    """Return the permutation that sorts ``rows``; equal rows keep their order, nulls come last."""
    column, types = rows.column(by[0]), pa.types
    is_plain = (types.is_integer(column.type) and not types.is_uint64(column.type)) or (
        types.is_temporal(column.type) and not types.is_interval(column.type)
    )
    if len(by) == 1 and is_plain and not column.null_count:
        values = integer_view(contiguous(column)).astype(np.int64, copy=False)
        return pa.array(order_by(values))
    return pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in by])


def _neighbours(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.slice(0, max(len(column) - 1, 0)), column.slice(1)


def _less(values: pa.Array, bounds: pa.Array) -> Bools:
    """Return whether each value is less than its bound; nulls are greater than all values."""
    if pa.types.is_timestamp(values.type):
        values, bounds = values.view(pa.int64()), bounds.view(pa.int64())
    plain = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if plain and not (values.null_count or bounds.null_count):
        less: Bools = np.less(values.to_numpy(), bounds.to_numpy())
        return less
    less = _mask(pc.less(values, bounds))
    if bounds.null_count:
        less |= _mask(bounds.is_null()) & ~_mask(values.is_null())
    return less


def _same(first: pa.Array, second: pa.Array) -> Bools:
    same = _mask(pc.equal(first, second))
    if first.null_count or second.null_count:
        same |= _mask(first.is_null()) & _mask(second.is_null())
    return same


def _mask(values: Any) -> Bools:
    filled: Bools = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return filled


# Merge sorted inputs into one sorted stream.


def merge_heads(
    heads: Sequence[pa.RecordBatch], open_ends: Sequence[bool], by: Sequence[str], most: int
) -> tuple[pa.RecordBatch, list[int]]:
    """Merge those rows of the first batches of sorted inputs that no later row can precede.

    Equal rows come in the order of the inputs, and within an input in its own order.

    Parameters
    ----------
    heads : sequence of RecordBatch
        First batch of every input; at least one batch, none of them empty.
    open_ends : sequence of bool
        Whether more rows of each input may follow.
    by : sequence of str
        Columns to sort by.
    most : int
        Largest number of rows to return, at least one.

    Returns
    -------
    merged : RecordBatch
        Merged rows, at least one.
    taken : list of int
        Number of rows taken from each head.
    """
    if len(heads) == 1:
        only = heads[0].slice(0, most)
        return only, [only.num_rows]
    rows = pa.concat_batches([head.select(list(by)) for head in heads])
    order = sorting_permutation(rows, by).to_numpy()
    sizes = [head.num_rows for head in heads]
    ends = np.cumsum(sizes)
    # No row may leave behind the last row of an input that goes on: the first such row is the
    # limit.
    place = inverse(order)
    limits = [int(place[end - 1]) for end, more in zip(ends, open_ends, strict=True) if more]
    order = order[: min(most, min(limits, default=len(order) - 1) + 1)]
    taken = np.diff(np.searchsorted(np.sort(order), np.concatenate([[0], ends])))
    merged = pa.concat_batches(list(heads)).take(pa.array(order))
    return merged, [int(count) for count in taken]


@dataclass(frozen=True)
class SortedMergeParams(StreamParams):
    """Parameters of :class:`SortedMerge`.

    Parameters
    ----------
    by : sequence of str
        Columns that every input is sorted by, ascending, nulls last.
    """

    by: Sequence[str]


class SortedMerge(ConfluenceExecStream[SortedMergeParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that merges any number of equally sorted inputs of one schema; stable."""

    def execute(self, quantum: Quantum) -> StreamResult:
        return self.hand_on(quantum, self._next)

    def _next(self) -> pa.RecordBatch | StreamResult:
        result = self.precheck_confluence_buffers()
        if result is not StreamResult.YIELD:
            return result
        buffers = [buffer for buffer in self.inputs if not buffer.at_end]
        heads = [buffer.access() for buffer in buffers]
        by = key_columns(heads[0].schema, tuple(self.params.by))
        ends = zip(buffers, heads, strict=True)
        more = [not buffer.last or buffer.rows > head.num_rows for buffer, head in ends]
        merged, taken = merge_heads(heads, more, by, self.output.provide())
        for buffer, count in zip(buffers, taken, strict=True):
            buffer.consume(count)
        return merged


# Runs of rows in temporary files.


class SpillFolder:
    """A temporary folder of runs, which :meth:`close` removes in any case.

    Parameters
    ----------
    parent : str or Path, optional
        Folder in which it is made; by default the system's folder for temporary files.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="splitjoin-spill-", dir=parent)
        except OSError as error:
            raise FailureError(
                f"Cannot make a folder for rows that exceed the memory: {error}."
            ) from error
        self._runs: list[Path] = []
        self._readers: set[pa.NativeFile] = set()
        #: Bytes written so far.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._runs)

    def write(self, run: pa.Table, rows: int) -> None:
        """Add a run, in batches of at most ``rows`` rows."""
        path = Path(self._folder.name) / f"{len(self._runs)}.arrow"
        try:
            with (
                pa.OSFile(str(path), "wb") as file,
                pa.ipc.new_file(file, run.schema) as writer,
            ):
                writer.write_table(run, max_chunksize=rows)
        except OSError as error:
            raise FailureError(
                f"Rows that exceed the memory need {run.nbytes} bytes in {path.parent}, and "
                f"writing there failed: {error}. Name another folder for temporary files (TMPDIR), "
                f"or allow more memory."
            ) from error
        self.bytes += path.stat().st_size
        self._runs.append(path)

    def read(self, run: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a run; only one at a time is in memory."""
        file = pa.OSFile(str(self._runs[run]), "rb")
        self._readers.add(file)
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
        self._readers.discard(file)
        file.close()

    def close(self) -> None:
        """Remove all files; calling it again has no effect."""
        for file in self._readers:
            file.close()
        self._readers.clear()
        self._folder.cleanup()


# External sort: runs that fit the granted memory are spilled, if there are several, and merged.


@dataclass(frozen=True)
class SortParams(StreamParams):
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
        self.spilled = 0

    def requirements(self) -> Requirements:
        return Requirements(Quantity(buffers=1), Quantity(buffers=max(1, self.params.buffers)))

    def open(self, restart: bool = False) -> None:
        super().open(restart)
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
        return self.hand_on(quantum, self._next, done)

    def _next(self) -> pa.RecordBatch | StreamResult:
        assert self._sorted is not None
        batch = next(self._sorted, None)
        return self.finish() if batch is None else batch

    def close_impl(self) -> None:
        self._held, self._sorted = [], None
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    def _hold(self, batch: pa.RecordBatch) -> int:
        key_columns(batch.schema, self.params.by)
        self._held.append(batch)
        self._bytes += batch.nbytes
        # Sorting a run makes a second copy of it, so only half of the granted memory is filled.
        if 2 * self._bytes >= self.allocation.buffers * BUFFER_BYTES:
            if self._spill is None:
                self._spill = SpillFolder(self.params.folder)
            self._spill_run(self._spill)
        return batch.num_rows

    def _spill_run(self, spill: SpillFolder) -> None:
        spill.write(self._run(), self.params.rows)
        self.spilled = spill.bytes

    def _run(self) -> pa.Table:
        """Sort the held rows, release them, and return the sorted table."""
        held, self._held, self._bytes = self._held, [], 0
        table = pa.Table.from_batches(held)
        return table.take(sorting_permutation(table, list(self.params.by)))

    def _merged(self) -> Iterator[pa.RecordBatch]:
        if self._spill is None:
            yield from self._run().to_batches(self.params.rows) if self._held else []
            return
        if self._held:
            self._spill_run(self._spill)
        heads = _next_heads([(None, self._spill.read(at)) for at in range(len(self._spill))])
        while heads:
            # An input's end is known only after reading it, so every run is treated as if rows may
            # follow.
            merged, taken = merge_heads(
                [head for head, _ in heads],
                [True] * len(heads),
                self.params.by,
                sum(head.num_rows for head, _ in heads),
            )
            for begin in range(0, merged.num_rows, self.params.rows):
                yield merged.slice(begin, self.params.rows)
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


# Remove duplicates from sorted input: the example of the guide to ExecStreams.


@dataclass(frozen=True)
class UniqParams(StreamParams):
    """Parameters of :class:`Uniq`.

    Parameters
    ----------
    by : sequence of str, optional
        Columns that are compared; by default all.
    fail_on_duplicate : bool
        Whether a duplicate is an error instead of being left out.
    """

    by: Sequence[str] | None = None
    fail_on_duplicate: bool = False


class Uniq(ConduitExecStream[UniqParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that passes on the first of equal neighbours; its input is sorted by the columns.

    ``execute`` raises :exc:`~host.errors.OrderError` at a duplicate if ``fail_on_duplicate``
    is set. The duplicate has then been consumed, so that the next execution continues behind it.
    ``execute`` raises :exc:`~host.errors.UsageError` if the input is not sorted.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._last: pa.RecordBatch | None = None  # the last row, as a batch

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._row = 0

    def take(self, batch: pa.RecordBatch, room: int) -> int:
        part = batch.slice(0, room)
        by = key_columns(part.schema, self.params.by)
        fresh = self._fresh(part, by)
        taken = part.num_rows
        if self.params.fail_on_duplicate and not fresh.all():
            taken = int(np.argmin(fresh)) + 1
        self.output.produce(_kept(part.slice(0, taken), fresh[:taken]))
        self._last = part.slice(taken - 1, 1)
        self._row += taken
        self.input.consume(taken)
        if self.params.fail_on_duplicate and not fresh[taken - 1]:
            row = part.slice(taken - 1, 1).select(list(by)).to_pylist()[0]
            raise OrderError.false_claim(f"stream {self.name!r}", by, self._row - 1, row)
        return taken

    def _fresh(self, part: pa.RecordBatch, by: Sequence[str]) -> Bools:
        """Return whether each row differs from the row before it."""
        keys = part.select(list(by))
        seen = [] if self._last is None else [self._last.select(list(by))]
        rows = pa.concat_batches([*seen, keys])
        down = falls(rows, by)
        if down.any():
            at = int(np.argmax(down))
            earlier, later = rows.slice(at, 2).to_pylist()
            raise UsageError(
                f"The input of {self.name!r} is not sorted by {', '.join(by)}: row "
                f"{self._row + at + 1 - len(seen)} (the first is 0) has {later} after {earlier}; "
                f"sort it first."
            )
        fresh = ~repeats(rows, by)
        return fresh if seen else np.concatenate([[True], fresh])

    def close_impl(self) -> None:
        self._last = None


def _kept(rows: pa.RecordBatch, mask: Bools) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))
