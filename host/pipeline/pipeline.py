# SPDX-License-Identifier: Apache-2.0
"""A pipeline: a source, lazy operations, and one terminal operation that starts the run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt
import pyarrow as pa

from host.devices import Device
from host.errors import UsageError
from host.files.writing import write_table
from host.installation import processors
from host.operators.aggregate import Aggregate
from host.operators.matches import aggregate_matches
from host.pipeline.execution import Execution, Settings, arrays_of
from host.pipeline.explanation import explain
from host.pipeline.flags import Flag, Operation
from host.pipeline.joining import Joined, Merged
from host.pipeline.operations import Aggregated, Distinct, Limited, Sorted, Teed, Unordered
from host.pipeline.row_operators import (
    CopyCounters,
    Filter,
    FlatMap,
    Map,
    MapBatches,
    Peek,
    Project,
    Update,
)
from host.pipeline.source import BatchSource, ParquetSource, Source, TableSource
from host.query.queries import Aggregate as MatchAggregate
from host.query.queries import AggregateQuery, Query
from host.runtime import Governor
from host.session.join import JoinStream
from host.session.params import JoinOptions

__all__ = [
    "Pipeline",
]

T = TypeVar("T")
Array = npt.NDArray[Any]


class Pipeline:
    """Rows from a source, through operations, to a terminal operation.

    Intermediate operations return a new pipeline and compute nothing. A terminal operation binds
    the source (and reads the data that it has *then*), chooses streams by the known properties of
    the
    rows, and runs them. Nothing of a run is kept, so the pipeline can be run again.

    Parameters
    ----------
    source : Source
        Source of the rows; see also :meth:`of_table`, :meth:`of_batches`, :meth:`of_parquet`.
    operations : sequence of Operation
        Operations on the rows.
    settings : Settings, optional
        Settings of the run.
    """

    def __init__(
        self,
        source: Source,
        operations: Sequence[Operation] = (),
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
        """Begin with Parquet files, which are read in batches."""
        return cls(ParquetSource(paths, columns, sorted_by, distinct_by))

    # Intermediate operations, stateless.

    def filter(
        self, function: Callable[..., Any], columns: Sequence[str] | None = None
    ) -> "Pipeline":
        """Keep the rows for which a function of columns is true; null counts as false.

        Parameters
        ----------
        function : callable
            Takes Arrow arrays and returns an array of booleans (Arrow or NumPy) of their length.
        columns : sequence of str, optional
            Columns that the function takes; by default those named like its parameters.
        """
        return self._with(Filter(function, columns))

    def map(
        self, name: str, function: Callable[..., Any], columns: Sequence[str] | None = None
    ) -> "Pipeline":
        """Set column ``name``, new or not, to a function of columns; see :meth:`filter`.

        The function is also called with empty arrays, to find the type of its result.
        """
        return self._with(Map(name, function, columns))

    def update(self, name: str, function: Callable[[Any], Any]) -> "Pipeline":
        """Change column ``name`` in place: ``function`` writes into a NumPy array.

        The column is copied first if anything else refers to it, and only then.
        """
        return self._with(Update(name, function))

    def select(self, *names: str, **renamed: str) -> "Pipeline":
        """Keep the columns ``names``, then columns given as ``new=old`` under their new names."""
        taken = {name: name for name in names} | renamed
        if len(taken) != len(names) + len(renamed):
            raise UsageError(f"Columns are selected twice under one name: {[*names, *renamed]}.")
        return self._with(Project(taken))

    def map_batches(self, function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> "Pipeline":
        """Replace each batch by another; the division into batches has no meaning."""
        return self._with(MapBatches(function))

    def flat_map(
        self, function: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]], schema: pa.Schema
    ) -> "Pipeline":
        """Replace each batch by any number of batches of ``schema``."""
        return self._with(FlatMap(function, schema))

    def peek(self, function: Callable[[pa.RecordBatch], Any]) -> "Pipeline":
        """Call ``function`` with each batch."""
        return self._with(Peek(function))

    def unordered(self) -> "Pipeline":
        """Declare that the order does not matter from here on."""
        return self._with(Unordered())

    # Intermediate operations, stateful.

    def sorted(self, *by: str) -> "Pipeline":
        """Sort by columns, ascending, nulls last; rows that tie keep their order."""
        if not by:
            raise UsageError("sorted() needs at least one column.")
        return self._with(Sorted(by))

    def distinct(self, *by: str, fail: bool = False) -> "Pipeline":
        """Keep the first of the rows that agree in the columns ``by``, by default in all.

        With ``fail``, a row that is repeated raises an :exc:`~host.errors.OrderError`, or is left
        out with that error if the run is :meth:`resuming`.
        """
        return self._with(Distinct(by or None, fail))

    def limit(self, rows: int, skip: int = 0) -> "Pipeline":
        """Keep the first ``rows`` rows after ``skip``; the streams before stop then."""
        return self._with(Limited(rows, skip))

    def tee(
        self,
        path: str | Path,
        keep: Callable[..., Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> "Pipeline":
        """Write the rows to a file as well, Parquet, CSV or JSON by its ending.

        With ``keep``, a function of columns as that of :meth:`filter`, the file gets those rows for
        which it is true: so the results of a join can go to two consumers, each in its order. The
        file appears when all rows that there are here have been written, also if a later limit
        wants fewer. A run that ends before leaves no file.
        """
        return self._with(Teed(path, None if keep is None else Filter(keep, columns)))

    def merge(self, *others: "Pipeline", by: str | Sequence[str]) -> "Pipeline":
        """Merge with other pipelines of the same columns; rows that tie keep the pipelines' order.

        Pipelines that are not known to be SORTED by the columns ``by`` are sorted.
        """
        columns = (by,) if isinstance(by, str) else tuple(by)
        if not columns:
            raise UsageError("merge() needs at least one column.")
        return self._with(Merged(others, columns))

    def join(
        self,
        right: "Pipeline",
        query: Query,
        device: Device,
        *,
        options: JoinOptions | None = None,
        started: Callable[[JoinStream], None] | None = None,
    ) -> "Pipeline":
        """Join with the rows of another pipeline over a sliding window, on a device.

        The result has the columns of this pipeline, then those of ``right``. Inputs that are not
        known to be SORTED by the order columns of the query are sorted. If the order of the result
        is not observed (``unordered``, ``count``), the device is set to no ordering.

        Parameters
        ----------
        right : Pipeline
            Pipeline of the right rows.
        query : Query
            The join.
        device : Device
            An open device, which nobody else uses meanwhile; it stays open.
        options : JoinOptions, optional
            Options such as deadline, progress and trace.
        started : callable, optional
            Called with the stream of each execution that joins, which has what is measured.
        """
        chosen = JoinOptions() if options is None else options
        return self._with(Joined(right, query, device, chosen, started))

    def aggregate(
        self,
        query: AggregateQuery,
        *,
        device: str | None = None,
        started: Callable[[Aggregate], None] | None = None,
    ) -> "Pipeline":
        """Aggregate rows over windows of time, by keys, on the host or on an accelerator.

        The result has the boundaries of the window, the keys and the aggregates, in the order of
        windows and keys. If rows are known to be SORTED by time, results leave as windows end.

        Parameters
        ----------
        query : AggregateQuery
            The aggregation.
        device : str, optional
            An accelerator of windowed aggregates, with the same answer: ``"sim:BUNDLE"``, or
            ``"sim:"`` for one that is built for the query.
        started : callable, optional
            Called with the stream of each execution, whose ``work`` has the counts.
        """
        return self._with(Aggregated(query, device, started))

    def then(self, operation: Operation) -> "Pipeline":
        """Append any operation, including operations defined outside of the kit."""
        return self._with(operation)

    # Settings of the run.

    def parallel(self, threads: int | None = None) -> "Pipeline":
        """Process the parts of the source in threads, by default one per processor."""
        count = processors() if threads is None else threads
        if count < 1:
            raise UsageError(f"parallel() needs at least one thread, not {threads}.")
        return self._set(threads=count)

    def fused(self, fuse: bool = True) -> "Pipeline":
        """Choose whether neighbouring stateless operations are fused into one pass (default)."""
        return self._set(fuse=fuse)

    def batch_rows(self, rows: int, buffer_rows: int | None = None) -> "Pipeline":
        """Set the largest number of rows in a batch, and the capacity of buffers in rows."""
        return self._set(rows=rows, buffer_rows=2 * rows if buffer_rows is None else buffer_rows)

    def governed_by(self, governor: Governor) -> "Pipeline":
        """Use ``governor`` for threads and staging buffers; several pipelines may share it."""
        return self._set(governor=governor)

    def counting(self, counters: CopyCounters) -> "Pipeline":
        """Count batches and copies in ``counters``."""
        return self._set(counters=counters)

    def resuming(self, errors: list[Exception]) -> "Pipeline":
        """Leave out each row for which a stateless operation raises, and go on behind it.

        Functions that raise for a batch are called again with parts of it, down to one row, so they
        should do nothing but return a value. A ``flat_map`` that raises behind a result loses the
        rest of its batch. Streams that cannot go on raise as without it.

        Parameters
        ----------
        errors : list
            The errors are appended to it, one for each row that is left out.
        """
        return self._set(errors=errors)

    # Terminal operations.

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run and yield batches as they arrive; the reader may stop at any time."""
        return self.execution().batches()

    def collect(self) -> pa.Table:
        """Run and return all rows; no batch is copied."""
        execution = self.execution()
        return pa.Table.from_batches(execution.batches(), schema=execution.schema)

    def to_arrays(self) -> dict[str, Array]:
        """Run and return each column as one NumPy array; SIZED rows are written to it directly.

        Raises
        ------
        UnsupportedTypeError
            If a column does not consist of numbers, booleans, dates or times.
        """
        return arrays_of(self.execution())

    def count(self) -> int:
        """Return the number of rows; a SIZED pipeline is not run for it."""
        execution = self.execution(ordered=False)
        if execution.traits.has(Flag.SIZED) and execution.traits.rows is not None:
            return execution.traits.rows
        return sum(batch.num_rows for batch in execution.batches())

    def first(self) -> dict[str, Any] | None:
        """Return the first row, by column, or None; the streams before stop as soon as it comes."""
        rows = self.limit(1).collect().to_pylist()
        return rows[0] if rows else None

    def any_match(self, function: Callable[..., Any], columns: Sequence[str] | None = None) -> bool:
        """Return whether a function of columns is true for a row; see :meth:`filter`.

        The streams before stop at the first such row.
        """
        return self.filter(function, columns).limit(1).count() > 0

    def join_aggregate(
        self,
        right: "Pipeline",
        query: Query,
        aggregates: Mapping[str, MatchAggregate | str | tuple[str, str]],
        device: Device,
    ) -> pa.Table:
        """Return every row once, with aggregates of the right rows that a join pairs it with.

        Both inputs are held in memory, and pairs are reduced as they come.

        Parameters
        ----------
        right : Pipeline
            Pipeline of the right rows.
        query : Query
            Which rows match, over which window.
        aggregates, device
            As for :func:`~host.operators.matches.aggregate_matches`.
        """
        return aggregate_matches(self.collect(), right.collect(), query, aggregates, device)

    def for_each(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        """Run and call ``function`` with every batch, in order."""
        for batch in self.batches():
            function(batch)

    def reduce(
        self, function: Callable[[T, pa.RecordBatch], T], initial: T, *, ordered: bool = True
    ) -> T:
        """Run and return ``function(... function(initial, first batch) ..., last batch)``.

        ``ordered=False`` declares that the function does not depend on the order of the rows.
        """
        state = initial
        for batch in self.execution(ordered=ordered).batches():
            state = function(state, batch)
        return state

    def write(self, path: str | Path) -> int:
        """Run and write a file, Parquet, CSV or JSON by its ending; return the number of rows.

        The file appears only when everything has been written.
        """
        execution = self.execution()
        return write_table(execution.batches(), execution.schema, path)

    # Explanation.

    def execution(self, *, ordered: bool = True, is_checked: bool = False) -> Execution:
        """Bind the source and plan, without running; see :class:`Execution`."""
        return Execution(
            self.source, self.operations, self.settings, ordered=ordered, is_checked=is_checked
        )

    def explain(self) -> str:
        """Return a description of the run: operations, flags, passes, segments, copies, buffers."""
        return explain(self.source, self.execution())

    def _with(self, operation: Operation) -> "Pipeline":
        return Pipeline(self.source, (*self.operations, operation), self.settings)

    def _set(self, **changes: Any) -> "Pipeline":
        return Pipeline(self.source, self.operations, replace(self.settings, **changes))
