# SPDX-License-Identifier: Apache-2.0
"""A pipeline: a source, lazy operations, and one terminal operation that sets all in motion."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.device import Device
from host.errors import FailureError, UnsupportedTypeError, UsageError
from host.files import write_table
from host.operators import CopyCounters
from host.pipeline.drawing import dot, svg
from host.pipeline.execution import Execution
from host.pipeline.explanation import explain
from host.pipeline.flags import Flag
from host.pipeline.joining import Joined, Merged
from host.pipeline.operations import (
    Distinct,
    Lazy,
    Limited,
    Sorted,
    Unordered,
    filtering,
    flat_mapping,
    mapping,
    mapping_batches,
    peeking,
    selecting,
    updating,
)
from host.pipeline.settings import Settings
from host.pipeline.source import BatchSource, ParquetSource, Source, TableSource
from host.query import JoinQuery
from host.runtime import Governor
from host.streams.device_join import JoinOptions, PreparedJoin

__all__ = ["Pipeline"]

T = TypeVar("T")
Array = npt.NDArray[Any]


class Pipeline:
    """Rows from a source, through operations, to a terminal operation (seed 001).

    Intermediate operations return a new pipeline and compute nothing. A terminal operation binds
    the source (what it has *then* is what is seen), chooses streams by what is known of the rows,
    runs them, and leaves nothing behind; the pipeline can be run again.

    Parameters
    ----------
    source : Source
        Where rows come from; see also :meth:`of_table`, :meth:`of_batches`, :meth:`of_parquet`.
    operations : sequence of Lazy
        What is done to them.
    settings : Settings, optional
        How it is run.
    """

    def __init__(
        self,
        source: Source,
        operations: Sequence[Lazy] = (),
        settings: Settings | None = None,
    ) -> None:
        self.source = source
        self.operations = tuple(operations)
        self.settings = Settings() if settings is None else settings

    @classmethod
    def of_table(
        cls,
        table: pa.Table | Callable[[], pa.Table],
        *,
        sorted_by: Sequence[str] = (),
        distinct_by: Sequence[str] = (),
        split_rows: int = 1 << 20,
    ) -> "Pipeline":
        """Begin with a table, or with a function that returns one when it is needed."""
        return cls(TableSource(table, sorted_by, distinct_by, split_rows))

    @classmethod
    def of_batches(
        cls,
        supply: Callable[[], Iterable[pa.RecordBatch]],
        schema: pa.Schema,
        *,
        sorted_by: Sequence[str] = (),
        distinct_by: Sequence[str] = (),
    ) -> "Pipeline":
        """Begin with a function that returns batches."""
        return cls(BatchSource(supply, schema, sorted_by, distinct_by))

    @classmethod
    def of_parquet(
        cls,
        paths: str | Path | Sequence[str | Path],
        *,
        columns: Sequence[str] | None = None,
        sorted_by: Sequence[str] = (),
        distinct_by: Sequence[str] = (),
    ) -> "Pipeline":
        """Begin with Parquet files, read a batch at a time."""
        return cls(ParquetSource(paths, columns, sorted_by, distinct_by))

    # Intermediate operations, stateless.

    def filter(
        self, function: Callable[..., Any], columns: Sequence[str] | None = None
    ) -> "Pipeline":
        """Keep the rows for which a function of columns is true; null counts as false.

        Parameters
        ----------
        function : callable
            Takes Arrow arrays, returns as many booleans (Arrow or NumPy).
        columns : sequence of str, optional
            What it takes; the names of its parameters if left out.
        """
        return self._with(filtering(function, columns))

    def map(
        self, name: str, function: Callable[..., Any], columns: Sequence[str] | None = None
    ) -> "Pipeline":
        """Set column ``name``, new or not, to a function of columns; see :meth:`filter`.

        The function is also called with arrays of no values, to find the type.
        """
        return self._with(mapping(name, function, columns))

    def update(self, name: str, function: Callable[[Any], Any]) -> "Pipeline":
        """Change column ``name`` in place: ``function`` writes into a NumPy array.

        What others refer to is copied first, and only then.
        """
        return self._with(updating(name, function))

    def select(self, *names: str, **renamed: str) -> "Pipeline":
        """Leave the columns ``names``, then ``new=old`` under new names."""
        taken = {name: name for name in names} | renamed
        if len(taken) != len(names) + len(renamed):
            raise UsageError(f"Columns are selected twice under one name: {[*names, *renamed]}.")
        return self._with(selecting(taken))

    def map_batches(self, function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> "Pipeline":
        """Replace each batch by another; the cut into batches means nothing."""
        return self._with(mapping_batches(function))

    def flat_map(
        self, function: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]], schema: pa.Schema
    ) -> "Pipeline":
        """Replace each batch by any number of batches of ``schema``."""
        return self._with(flat_mapping(function, schema))

    def peek(self, function: Callable[[pa.RecordBatch], Any]) -> "Pipeline":
        """Show each batch to ``function``."""
        return self._with(peeking(function))

    def unordered(self) -> "Pipeline":
        """Say that the order does not matter from here on."""
        return self._with(Unordered())

    # Intermediate operations, stateful.

    def sorted(self, *by: str) -> "Pipeline":
        """Sort by columns, ascending, nulls last; rows that tie keep their order."""
        if not by:
            raise UsageError("sorted() needs at least one column.")
        return self._with(Sorted(by))

    def distinct(self, *by: str) -> "Pipeline":
        """Keep the first of the rows that agree in the columns ``by``; in all if none is named."""
        return self._with(Distinct(by or None))

    def limit(self, rows: int, skip: int = 0) -> "Pipeline":
        """Keep the first ``rows`` rows after ``skip``; what comes before is stopped then."""
        return self._with(Limited(rows, skip))

    def merge(self, *others: "Pipeline", by: str | Sequence[str]) -> "Pipeline":
        """Merge with other pipelines of the same columns into one order; ties in their order.

        What is not known to be SORTED by the columns ``by`` is sorted.
        """
        columns = (by,) if isinstance(by, str) else tuple(by)
        if not columns:
            raise UsageError("merge() needs at least one column.")
        return self._with(Merged(others, columns))

    def join(
        self,
        right: "Pipeline",
        query: JoinQuery,
        device: Device,
        *,
        options: JoinOptions | None = None,
        started: Callable[[PreparedJoin], None] | None = None,
    ) -> "Pipeline":
        """Join with the rows of another pipeline over a sliding window, on a device.

        The result has the columns of this pipeline, then those of ``right``. Inputs that are not
        known to be SORTED by the order columns of the query are sorted. If nobody can tell the
        order of the result (``unordered``, ``count``), the device is not asked for any.

        Parameters
        ----------
        right : Pipeline
            The other rows.
        query : JoinQuery
            What to join.
        device : Device
            An open device, used by nobody else meanwhile; it stays open.
        options : JoinOptions, optional
            Deadline, progress, trace.
        started : callable, optional
            Is given the prepared join of each execution, which tells cycles and counters.
        """
        chosen = JoinOptions() if options is None else options
        return self._with(Joined(right, query, device, chosen, started))

    def then(self, operation: Lazy) -> "Pipeline":
        """Append any operation, also one that is not the kit's."""
        return self._with(operation)

    # How it is run.

    def parallel(self, threads: int | None = None) -> "Pipeline":
        """Let threads work on the parts of the source; the number of processors if left out."""
        count = (os.cpu_count() or 1) if threads is None else threads
        if count < 1:
            raise UsageError(f"parallel() needs at least one thread, not {threads}.")
        return self._set(threads=count)

    def sequential(self) -> "Pipeline":
        """Run without threads."""
        return self._set(threads=1)

    def fused(self, fuse: bool = True) -> "Pipeline":
        """Say whether neighbouring stateless operations are one pass, which is the default."""
        return self._set(fuse=fuse)

    def batch_rows(self, rows: int, buffer_rows: int | None = None) -> "Pipeline":
        """Set the most rows of a batch, and of the buffers between streams."""
        return self._set(rows=rows, buffer_rows=2 * rows if buffer_rows is None else buffer_rows)

    def governed_by(self, governor: Governor) -> "Pipeline":
        """Get threads and staging buffers from ``governor``, which others may share."""
        return self._set(governor=governor)

    def counting(self, counters: CopyCounters) -> "Pipeline":
        """Count batches and copies in ``counters``."""
        return self._set(counters=counters)

    # Terminal operations.

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run, yielding batches as they come; a reader may stop at any time."""
        return self.execution().batches()

    def collect(self) -> pa.Table:
        """Run, and return all rows; no batch is copied."""
        execution = self.execution()
        return pa.Table.from_batches(execution.batches(), schema=execution.schema)

    def to_arrays(self) -> dict[str, Array]:
        """Run, and return each column as one NumPy array; SIZED rows are written there at once.

        Raises
        ------
        UnsupportedTypeError
            If a column is not made of numbers, dates or times.
        """
        execution = self.execution()
        return _arrays(execution)

    def count(self) -> int:
        """Return the number of rows; a SIZED pipeline is not run for that."""
        execution = self.execution(ordered=False)
        if execution.traits.has(Flag.SIZED) and execution.traits.rows is not None:
            return execution.traits.rows
        return sum(batch.num_rows for batch in execution.batches())

    def for_each(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        """Run, and call ``function`` with every batch, in order."""
        for batch in self.batches():
            function(batch)

    def reduce(
        self, function: Callable[[T, pa.RecordBatch], T], initial: T, *, ordered: bool = True
    ) -> T:
        """Run, and return ``function(... function(initial, first batch) ..., last batch)``.

        With ``ordered=False`` the function does not mind in which order rows come.
        """
        state = initial
        for batch in self.execution(ordered=ordered).batches():
            state = function(state, batch)
        return state

    def write(self, path: str | Path) -> int:
        """Run, and write Parquet, CSV or JSON, by the ending; return the number of rows.

        The file is there when everything is written, or not at all.
        """
        execution = self.execution()
        return write_table(execution.batches(), execution.schema, path)

    # Explanation.

    def execution(self, *, ordered: bool = True) -> Execution:
        """Bind the source and plan, without running."""
        return Execution(self.source, self.operations, self.settings, ordered=ordered)

    def explain(self) -> str:
        """Say what would be run: operations, flags, passes, segments, copies, buffers."""
        return explain(self.source, self.execution())

    def to_dot(self) -> str:
        """Return the plan as a graph in the DOT language."""
        return dot(self.source, self.execution())

    def to_svg(self) -> str:
        """Return the plan as a picture."""
        return svg(self.source, self.execution())

    def _with(self, operation: Lazy) -> "Pipeline":
        return Pipeline(self.source, (*self.operations, operation), self.settings)

    def _set(self, **changes: Any) -> "Pipeline":
        return Pipeline(self.source, self.operations, replace(self.settings, **changes))


def _arrays(execution: Execution) -> dict[str, Array]:
    dtypes = {field.name: _dtype(field) for field in execution.schema}
    rows = execution.traits.rows
    if rows is None:
        parts: dict[str, list[Array]] = {name: [] for name in dtypes}
        for batch in execution.batches():
            for name, column in zip(parts, batch.columns, strict=True):
                parts[name].append(_filled(name, column))
        return {
            name: np.concatenate([np.zeros(0, dtypes[name]), *arrays])
            for name, arrays in parts.items()
        }
    result: dict[str, Array] = {name: np.empty(rows, dtype) for name, dtype in dtypes.items()}
    place = 0
    for batch in execution.batches():
        if place + batch.num_rows > rows:
            raise FailureError(f"A pipeline that declares {rows} rows has more of them.")
        for name, column in zip(result, batch.columns, strict=True):
            result[name][place : place + batch.num_rows] = _filled(name, column)
        place += batch.num_rows
    if place != rows:
        raise FailureError(f"A pipeline that declares {rows} rows has {place}.")
    return result


def _dtype(field: pa.Field) -> np.dtype[Any]:
    if not pa.types.is_primitive(field.type):
        raise UnsupportedTypeError(field.name, field.type, "numbers, booleans, dates, times")
    empty: Array = pa.array([], field.type).to_numpy(zero_copy_only=False)
    return empty.dtype


def _filled(name: str, column: pa.Array) -> Array:
    if column.null_count:
        raise UsageError(f"Column {name!r} has nulls, which an array has no place for; fill them.")
    array: Array = column.to_numpy(zero_copy_only=False)
    return array
