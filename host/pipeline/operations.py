# SPDX-License-Identifier: Apache-2.0
"""Operations on more than a batch: their effects on flags, and the streams that they become."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from host.files.reading import format_of
from host.files.writing import Write, table_file
from host.operators.aggregate import Aggregate, AggregateParams, WindowAggregation
from host.operators.windowed import unused
from host.pipeline.flags import Chained, Decision, Effect, Flag, Operation, Place, Stateful, Traits
from host.pipeline.row_operators import Filter, FusedStage, FusedStageParams, Project, Stateless
from host.pipeline.sorting import Sort, SortParams, Uniq, UniqParams, key_columns
from host.query.quantities import whole
from host.query.queries import BOUNDARIES, AggregateQuery
from host.runtime import (
    BufferState,
    ConduitExecStream,
    ExecStream,
    ExecStreamGraph,
    Quantum,
    Stream,
    StreamParams,
    StreamResult,
)

__all__ = [
    "Aggregated",
    "Distinct",
    "FileSink",
    "FileSinkParams",
    "Limit",
    "LimitParams",
    "Limited",
    "Number",
    "NumberParams",
    "Sorted",
    "Step",
    "Teed",
    "Unordered",
    "fused_runs",
    "plan_steps",
    "runs_ahead",
    "short_circuits",
    "stops_early",
]

# The first rows of a stream.


@dataclass(frozen=True)
class LimitParams(StreamParams):
    """Parameters of :class:`Limit`.

    Parameters
    ----------
    rows : int
        Number of rows that pass.
    skip : int
        Number of rows that are skipped before.
    """

    rows: int
    skip: int = 0


class Limit(ConduitExecStream[LimitParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that passes rows on without copying, and ends as soon as it has enough.

    The scheduler then closes the streams before it.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._left = 0
        self._skip = 0

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._left, self._skip = self.params.rows, self.params.skip

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            if not self._left:
                return self.finish()
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            batch = self.input.access()
            if self._skip:
                taken = min(self._skip, batch.num_rows)
                self._skip -= taken
            else:
                taken = min(self._left, self.output.provide(), batch.num_rows)
                self._left -= taken
                self.output.produce(batch.slice(0, taken))
            self.input.consume(taken)
            done += taken
        return StreamResult.QUANTUM_EXPIRED


# A stream that numbers rows.


@dataclass(frozen=True)
class NumberParams(StreamParams):
    """Parameters of :class:`Number`.

    Parameters
    ----------
    column : str
        Name of the new last column.
    """

    column: str


class Number(ConduitExecStream[NumberParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that adds the number of each row, counted from zero over the whole stream."""

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._row = 0

    def take(self, batch: pa.RecordBatch, room: int) -> int:
        batch = batch.slice(0, room)
        numbers = pa.array(np.arange(self._row, self._row + batch.num_rows))
        self.output.produce(batch.append_column(self.params.column, numbers))
        self._row += batch.num_rows
        self.input.consume(batch.num_rows)
        return batch.num_rows


# The operation that gives up the order of rows.


class Unordered(Operation):
    """Operation that gives up the order of encounter, which may save work around it."""

    def effect(self, traits: Traits) -> Effect:
        return Effect(clear=Flag.ORDERED | Flag.SORTED)

    def __str__(self) -> str:
        return "unordered()"


# The operation that keeps only the first rows.


@dataclass(frozen=True)
class Limited(Chained):
    """Operation that keeps the first rows; SHORT_CIRCUIT.

    Parameters
    ----------
    rows : int
        Largest number of rows to keep.
    skip : int
        Number of rows to skip before.
    """

    rows: int
    skip: int = 0

    def __post_init__(self) -> None:
        for name in ("rows", "skip"):
            whole(getattr(self, name), f"limit takes as {name} a whole number", 0)

    def effect(self, traits: Traits) -> Effect:
        known = traits.has(Flag.SIZED) and traits.rows is not None
        return Effect(
            inject=Flag.SHORT_CIRCUIT | (Flag.SIZED if known else Flag.NONE),
            clear=Flag.NONE if known else Flag.SIZED,
        )

    def traits(self, traits: Traits) -> Traits:
        rows = None if traits.rows is None else min(self.rows, max(0, traits.rows - self.skip))
        return traits.after(self.effect(traits), rows=rows)

    def decide(self, place: Place) -> Decision:
        rows = place.traits.rows
        if rows is not None and not self.skip and rows <= self.rows:
            return Decision([], f"vanishes: its input is SIZED, {rows} rows")
        return Decision(
            [(Limit(), LimitParams(rows=self.rows, skip=self.skip))],
            "closes what comes before it when it has its rows",
        )

    def __str__(self) -> str:
        return f"limit({self.rows})" if not self.skip else f"limit({self.rows}, skip={self.skip})"


# The operation that also writes its rows to a file.


@dataclass(frozen=True)
class FileSinkParams(StreamParams):
    """Parameters of :class:`FileSink`.

    Parameters
    ----------
    path : Path
        The file; its ending decides the format.
    schema : pa.Schema
        Columns of the rows.
    """

    path: Path
    schema: pa.Schema


class FileSink(ExecStream[FileSinkParams]):
    """Stream that writes its input to a file, which appears when all of it has been written.

    It takes all rows, however few of them its producer's other consumers want.
    """

    fan_in, fan_out = 1, 0
    retains_input = False

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._file: AbstractContextManager[Write] | None = None

    @property
    def can_early_close(self) -> bool:
        return False

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._file = table_file(self.params.schema, self.params.path)
        self._write = self._file.__enter__()

    def execute(self, quantum: Quantum) -> StreamResult:
        (rows,) = self.inputs
        done = 0
        while done < quantum.rows:
            if rows.state is BufferState.EOS:
                file, self._file = self._file, None
                assert file is not None
                file.__exit__(None, None, None)
                return StreamResult.EOS
            if not rows.demand():
                return StreamResult.BUF_UNDERFLOW
            batch = rows.access()
            self._write(batch)
            rows.consume()
            done += batch.num_rows
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        file, self._file = self._file, None
        if file is not None:  # what has been written is dropped
            stopped = GeneratorExit()
            with suppress(GeneratorExit):
                file.__exit__(GeneratorExit, stopped, None)


@dataclass(frozen=True)
class Teed(Stateful):
    """Operation that passes rows on, and writes them, or some of them, to a file, too.

    Parameters
    ----------
    path : str or Path
        The file; its ending decides the format.
    keep : Filter, optional
        Which rows the file gets; by default all.
    """

    path: str | Path
    keep: Filter | None = None

    def effect(self, traits: Traits) -> Effect:
        del traits
        return Effect(clear=Flag.SIZED)  # the rows are wanted, not only their number

    def schema(self, schema: pa.Schema) -> pa.Schema:
        format_of(self.path)
        return schema

    def reason(self, place: Place) -> str:
        del place
        return "the rows go to two readers, by reference"

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        sink = graph.add(
            FileSink(f"file {str(self.path)!r}"), FileSinkParams(Path(self.path), place.schema)
        )
        all_columns = Project({name: name for name in place.schema.names})
        passed = graph.add(FusedStage("rows"), FusedStageParams([all_columns]))
        written = producer
        if self.keep is not None:
            written = graph.add(FusedStage("written rows"), FusedStageParams([self.keep]))
            graph.connect(producer, written)
        graph.connect(written, sink)
        graph.connect(producer, passed)
        return passed

    def __str__(self) -> str:
        some = "" if self.keep is None else f", {self.keep}"
        return f"tee({str(self.path)!r}{some})"


# The operation that sorts by columns.


@dataclass(frozen=True)
class Sorted(Chained):
    """Sort by columns, ascending, nulls last; rows that tie keep their order.

    Parameters
    ----------
    by : tuple of str
        Columns to sort by.
    """

    by: tuple[str, ...]

    def effect(self, traits: Traits) -> Effect:
        return Effect(inject=Flag.SORTED | Flag.ORDERED)

    def traits(self, traits: Traits) -> Traits:
        if traits.is_sorted_by(self.by):
            return traits
        return traits.after(self.effect(traits), sorted_by=self.by)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        key_columns(schema, self.by)
        return schema

    def decide(self, place: Place) -> Decision:
        if place.traits.is_sorted_by(self.by):
            known = ", ".join(place.traits.sorted_by)
            return Decision([], f"vanishes: its input is SORTED by {known}")
        return Decision([(Sort(), SortParams(by=self.by))], "external sort")

    def __str__(self) -> str:
        return f"sorted({', '.join(self.by)})"


# The operation that leaves out repeated rows.


@dataclass(frozen=True)
class Distinct(Chained):
    """Operation that keeps the first of the rows that agree in some columns.

    Parameters
    ----------
    by : tuple of str or None
        Columns that are compared; all if None.
    fail : bool
        Whether a repeated row is an error instead.
    """

    by: tuple[str, ...] | None = None
    fail: bool = False

    def effect(self, traits: Traits) -> Effect:
        return Effect(inject=Flag.DISTINCT, clear=Flag.SIZED)

    def traits(self, traits: Traits) -> Traits:
        by = self.by or ()
        if by and traits.is_distinct_by(by):
            return traits
        return traits.after(self.effect(traits), distinct_by=by)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        key_columns(schema, self.by)
        return schema

    def decide(self, place: Place) -> Decision:
        traits, schema = place.traits, place.schema
        by = key_columns(schema, self.by)
        if traits.is_distinct_by(by):
            known = ", ".join(traits.distinct_by)
            return Decision([], f"vanishes: its input is DISTINCT by {known}")
        leading = traits.sorted_by[: len(by)]
        if traits.has(Flag.SORTED) and set(leading) == set(by):
            return Decision(
                [(Uniq(), UniqParams(by=leading, fail_on_duplicate=self.fail))],
                f"compares neighbours: its input is SORTED by {', '.join(leading)}",
            )
        unique: list[tuple[Stream, StreamParams]] = [
            (Sort(), SortParams(by=by)),
            (Uniq(), UniqParams(by=by, fail_on_duplicate=self.fail)),
        ]
        if not (place.order_matters and traits.has(Flag.ORDERED)):
            return Decision(unique, "sorts and compares neighbours; no order to restore")
        number = unused("number", schema.names)
        return Decision(
            [
                (Number(), NumberParams(column=number)),
                *unique,
                (Sort(), SortParams(by=(number,))),
                (
                    FusedStage(),
                    FusedStageParams([Project({name: name for name in schema.names})]),
                ),
            ],
            "sorts, compares neighbours, and sorts back into the order of encounter",
        )

    def __str__(self) -> str:
        return f"distinct({', '.join([*(self.by or ()), *['fail=True'] * self.fail])})"


# The operation that aggregates rows over windows of time.


@dataclass(frozen=True)
class Aggregated(Stateful):
    """Operation that aggregates rows over windows of time.

    Parameters
    ----------
    query : AggregateQuery
        The aggregation.
    device : str, optional
        URI of the accelerator that keeps the windows; by default, the host does.
    started : callable, optional
        Called with the stream of each execution, whose ``work`` has counts of rows and results.
    """

    checks_order = True

    query: AggregateQuery
    device: str | None = None
    started: Callable[[Aggregate], None] | None = None

    def effect(self, traits: Traits) -> Effect:
        return Effect(inject=Flag.SORTED | Flag.ORDERED | Flag.DISTINCT, clear=Flag.SIZED)

    def traits(self, traits: Traits) -> Traits:
        start = BOUNDARIES[0]
        after = traits.after(
            self.effect(traits), sorted_by=BOUNDARIES, distinct_by=(start, *self.query.on)
        )
        return Traits(after.flags, None, after.sorted_by, after.distinct_by)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return WindowAggregation(schema, self.query).schema

    def reason(self, place: Place) -> str:
        where = "" if self.device is None else f"; windows are kept by {self.device}"
        if self._in_order(place):
            return f"results leave as windows end: its input is SORTED by {self.query.time}{where}"
        return f"results leave at the end: its input is not known to be sorted by time{where}"

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        stream = Aggregate()
        in_order = self._in_order(place)
        graph.add(stream, AggregateParams(self.query, place.schema, in_order, self.device))
        graph.connect(producer, stream)
        if self.started is not None:
            self.started(stream)
        return stream

    def _in_order(self, place: Place) -> bool:
        return self.query.sorted or place.traits.is_sorted_by((self.query.time,))

    def __str__(self) -> str:
        return f"aggregate({self.query})"


# Plan the operations of a pipeline: the properties before and after each, and the decisions.


@dataclass(frozen=True)
class Step:
    """An operation of a pipeline in its place.

    Parameters
    ----------
    operation : Operation
        The operation.
    place : Place
        Known properties of the operation's input, and whether the order of its output matters.
    after : Traits
        Known properties of the operation's output.
    output : Schema
        Schema of the operation's output.
    segment : int
        Number of the segment, from one; a stateful operation that does not vanish ends a segment.
    """

    operation: Operation
    place: Place
    after: Traits
    output: pa.Schema
    segment: int

    @property
    def vanishes(self) -> bool:
        """Whether the operation has no effect in this place and becomes no stream."""
        if isinstance(self.operation, Stateful):
            return self.operation.vanishes(self.place)
        return isinstance(self.operation, Unordered)

    @property
    def reason(self) -> str:
        """What the operation becomes, and why."""
        if isinstance(self.operation, Stateful):
            return self.operation.reason(self.place)
        if isinstance(self.operation, Stateless):
            return ""
        return "vanishes: it only says that the order does not matter"


def plan_steps(
    operations: Sequence[Operation], traits: Traits, schema: pa.Schema, *, ordered: bool
) -> list[Step]:
    """Return the steps of a pipeline, from the known properties of its source.

    Parameters
    ----------
    operations : sequence of Operation
        Operations, in order.
    traits : Traits
        Properties of the source.
    schema : Schema
        Schema of the source.
    ordered : bool
        Whether the terminal operation observes the order.
    """
    matters = _order_matters(operations, ordered)
    steps: list[Step] = []
    segment = 1
    for operation, wanted in zip(operations, matters, strict=True):
        if not wanted:
            # The order is not observed: the operations before need not keep it for its own sake.
            traits = traits.unordered()
        step = Step(
            operation,
            Place(traits, schema, wanted),
            operation.traits(traits),
            operation.schema(schema),
            segment,
        )
        steps.append(step)
        traits, schema = step.after, step.output
        segment += isinstance(operation, Stateful) and not step.vanishes
    return steps


def _order_matters(operations: Sequence[Operation], ordered: bool) -> list[bool]:
    """Return, for each operation, whether the order of its output is observed by a later one."""
    result = []
    for operation in reversed(operations):
        if isinstance(operation, Unordered):
            ordered = False
        result.append(ordered)
        ordered = ordered or operation.needs_order
    return result[::-1]


def fused_runs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps that do not vanish; neighbouring stateless steps come together."""
    run: list[Step] = []
    for step in steps:
        if step.vanishes:
            continue
        if isinstance(step.operation, Stateless):
            run.append(step)
            continue
        if run:
            yield run
        yield [step]
        run = []
    if run:
        yield run


def short_circuits(operation: Operation) -> bool:
    """Return whether an operation may need less than all of its input: SHORT_CIRCUIT."""
    return Flag.SHORT_CIRCUIT in operation.effect(Traits()).inject


def runs_ahead(steps: Sequence[Step], ahead: bool) -> bool:
    """Return whether the streams before ``steps`` may make more than one batch at a time.

    A join gathers small batches, so several are pushed to it. From what comes before a
    SHORT_CIRCUIT operation, batches are pulled, so that there are no more of them than it needs.

    Parameters
    ----------
    steps : sequence of Step
        The following steps; the first stateful one decides.
    ahead : bool
        Result if there is no stateful step.
    """
    for step in steps:
        if isinstance(step.operation, Stateful) and not step.vanishes:
            return not short_circuits(step.operation)
    return ahead


def stops_early(steps: Sequence[Step]) -> bool:
    """Return whether enough may have come before the first step has seen all of its input."""
    for step in steps:
        ends = short_circuits(step.operation)
        if (ends or isinstance(step.operation, Sorted)) and not step.vanishes:
            return ends
    return False
