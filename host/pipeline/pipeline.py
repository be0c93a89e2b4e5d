# SPDX-License-Identifier: Apache-2.0
"""A pipeline: a source, lazy operations, and one terminal operation that starts the run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from host.arrays import Array
from host.columns.encoding import joined_schema
from host.devices import Device
from host.errors import UsageError
from host.files.writing import write_table
from host.installation import processors
from host.operators.aggregate import Aggregate
from host.operators.matches import aggregate_matches
from host.pipeline.execution import Execution, Settings, arrays_of
from host.pipeline.flags import Effect, Flag, Operation, Place, Stateful, Traits
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
from host.pipeline.sorting import SortedMerge, SortedMergeParams, key_columns
from host.pipeline.source import BatchSource, ParquetSource, Source, TableSource
from host.query.ordering import Ordering
from host.query.queries import Aggregate as MatchAggregate
from host.query.queries import AggregateQuery, Query
from host.runtime import ExecStreamGraph, Governor, Stream
from host.session.join import JoinStream, add_join
from host.session.params import JoinOptions, plan_join

__all__ = [
    "Pipeline",
]

T = TypeVar("T")


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
        return self.execution().explain()

    def _with(self, operation: Operation) -> "Pipeline":
        return Pipeline(self.source, (*self.operations, operation), self.settings)

    def _set(self, **changes: Any) -> "Pipeline":
        return Pipeline(self.source, self.operations, replace(self.settings, **changes))


# Operations on several pipelines: the join on a device, and the merge of sorted rows.


def _sorted_stream(
    graph: ExecStreamGraph, stream: Stream, by: tuple[str, ...], traits: Traits, schema: pa.Schema
) -> Stream:
    """Add a sort behind ``stream`` unless its output is known to be sorted."""
    return Sorted(by).build(graph, stream, Place(traits, schema))


def _sorting(side: str, by: tuple[str, ...], traits: Traits) -> str:
    columns = ", ".join(by)
    return (
        f"{side} is SORTED by {columns}"
        if traits.is_sorted_by(by)
        else f"{side} is sorted first, by {columns}"
    )


@dataclass(frozen=True)
class Joined(Stateful):
    """Join with the rows of another pipeline over a sliding window, on a device.

    Parameters
    ----------
    right : Pipeline, or Execution of one
        Pipeline of the right rows; its execution, once it has been bound.
    query : Query
        The join. Inputs that are not known to be SORTED by their order columns are sorted.
    device : Device
        An open device, which nobody else uses meanwhile.
    options : JoinOptions
        Options of running the join.
    started : callable, optional
        Called with the stream of each execution that joins, which has what is measured.
    """

    checks_order = True

    right: "Pipeline | Execution"
    query: Query
    device: Device
    options: JoinOptions = field(default_factory=JoinOptions)
    started: Callable[[JoinStream], None] | None = None

    def bound(self) -> "Joined":
        assert not isinstance(self.right, Execution)
        return replace(self, right=self.right.execution(is_checked=True))

    @property
    def _other(self) -> Execution:
        """The right pipeline, once it has been bound."""
        assert isinstance(self.right, Execution)
        return self.right

    def effect(self, traits: Traits) -> Effect:
        lost = Flag.SIZED | Flag.SORTED | Flag.DISTINCT
        if self.query.ordering.period == 1:
            return Effect(inject=Flag.ORDERED, clear=lost)
        return Effect(clear=lost | Flag.ORDERED)

    def traits(self, traits: Traits) -> Traits:
        return replace(traits.after(self.effect(traits)), ranges={})

    def schema(self, schema: pa.Schema) -> pa.Schema:
        for column, of_side in zip(self.query.time, (schema, self._other.schema), strict=True):
            key_columns(of_side, [column])
        return joined_schema(schema, self._other.schema, self.query)

    def reason(self, place: Place) -> str:
        left, right = self._orders
        ordering = self._ordering(place)
        return "; ".join(
            [
                _sorting("left", left, place.traits),
                _sorting("right", right, self._other.traits),
                f"ordering {ordering}"
                + ("" if place.order_matters else ", as nothing observes it"),
                *(
                    f"one match at most on the {side}: its keys are DISTINCT"
                    for side, known in zip(("left", "right"), self._distinct(place), strict=True)
                    if known
                ),
            ]
        )

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        left, right = self._orders
        other = self._other
        params = plan_join(
            place.schema,
            other.schema,
            replace(self.query, sorted=True, ordering=self._ordering(place)),
            self.device,
            ranges=(place.traits.ranges, other.traits.ranges),
            options=replace(self.options, distinct=self._distinct(place)),
        )
        inputs = [
            _sorted_stream(graph, producer, left, place.traits, place.schema),
            _sorted_stream(graph, other.build(graph), right, other.traits, other.schema),
        ]
        stream = add_join(graph, inputs, params)
        if self.started is not None:
            self.started(stream)
        return stream

    @property
    def _orders(self) -> tuple[tuple[str], tuple[str]]:
        left, right = self.query.time
        return (left,), (right,)

    def _distinct(self, place: Place) -> tuple[bool, bool]:
        """Return whether a row can match at most one left row, and at most one right row.

        Never true for a count-based window: there, a row with a null keeps its place in the window
        with some other value as its key.
        """
        query = self.query
        equal = [term for term in query.terms if term.is_equality]
        left = place.traits.is_distinct_by(tuple(term.left for term in equal))
        right = self._other.traits.is_distinct_by(tuple(term.right for term in equal))
        return (left, right) if query.is_timed else (False, False)

    def _ordering(self, place: Place) -> Ordering:
        return self.query.ordering if place.order_matters else Ordering.none()

    def __str__(self) -> str:
        return f"join({self.query}; {self.device.uri})"


@dataclass(frozen=True)
class Merged(Stateful):
    """Merge the rows of several pipelines of one schema into one order.

    Parameters
    ----------
    others : sequence of Pipeline, or of Execution
        The other pipelines; executions, once they have been bound. Rows that tie come in the order
        of the pipelines.
    by : tuple of str
        Columns to merge by. Inputs that are not known to be SORTED by them are sorted.
    """

    others: Sequence["Pipeline | Execution"]
    by: tuple[str, ...]

    def bound(self) -> "Merged":
        unbound = [each for each in self.others if not isinstance(each, Execution)]
        return replace(self, others=[each.execution() for each in unbound])

    @property
    def _bound(self) -> list[Execution]:
        """The other pipelines, once they have been bound."""
        return [each for each in self.others if isinstance(each, Execution)]

    def effect(self, traits: Traits) -> Effect:
        return Effect(inject=Flag.ORDERED | Flag.SORTED, clear=Flag.SIZED | Flag.DISTINCT)

    def traits(self, traits: Traits) -> Traits:
        return replace(traits.after(self.effect(traits), sorted_by=self.by), ranges={})

    def schema(self, schema: pa.Schema) -> pa.Schema:
        key_columns(schema, self.by)
        for number, other in enumerate(self._bound, 2):
            if not other.schema.equals(schema):
                raise UsageError(
                    f"Pipelines are merged that differ in their columns: the first has "
                    f"{schema.to_string()!r}, number {number} has {other.schema.to_string()!r}."
                )
        return schema

    def reason(self, place: Place) -> str:
        inputs = [place.traits, *(other.traits for other in self._bound)]
        return "; ".join(
            _sorting(f"input {number}", self.by, each) for number, each in enumerate(inputs, 1)
        )

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        merge = graph.add(SortedMerge(), SortedMergeParams(by=self.by))
        inputs = [(producer, place.traits)]
        inputs += [(other.build(graph), other.traits) for other in self._bound]
        for stream, known in inputs:
            graph.connect(_sorted_stream(graph, stream, self.by, known, place.schema), merge)
        return merge

    def __str__(self) -> str:
        return f"merge({len(self.others) + 1} inputs by {', '.join(self.by)})"
