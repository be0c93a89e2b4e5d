# SPDX-License-Identifier: Apache-2.0
"""Intermediate operations: their effects on the flags, and the streams that they become."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from host.errors import UsageError
from host.operators.aggregate import Aggregate, AggregateParams, WindowAggregation
from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.row_operators import (
    Filter,
    FlatMap,
    FusedStage,
    FusedStageParams,
    Map,
    MapBatches,
    Operator,
    Peek,
    Project,
    Update,
)
from host.pipeline.sorting import Sort, SortParams, Uniq, UniqParams, key_columns
from host.query.queries import BOUNDARIES, AggregateQuery
from host.runtime import (
    ConduitExecStream,
    ConduitParams,
    ExecStreamGraph,
    Quantum,
    Stream,
    StreamParams,
    StreamResult,
)

__all__ = [
    "Aggregated",
    "Chained",
    "Decision",
    "Distinct",
    "Lazy",
    "Limit",
    "LimitParams",
    "Limited",
    "Number",
    "NumberParams",
    "Operation",
    "Place",
    "Sorted",
    "Stateful",
    "Stateless",
    "Step",
    "Unordered",
    "filtering",
    "flat_mapping",
    "fused_runs",
    "mapping",
    "mapping_batches",
    "peeking",
    "plan_steps",
    "runs_ahead",
    "selecting",
    "stops_early",
    "updating",
]

# The first rows of a stream.


@dataclass(frozen=True)
class LimitParams(ConduitParams):
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
class NumberParams(ConduitParams):
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

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            batch = self.input.access().slice(0, self.output.provide())
            count = batch.num_rows
            numbers = pa.array(np.arange(self._row, self._row + count))
            self.output.produce(batch.append_column(self.params.column, numbers))
            self._row += count
            self.input.consume(count)
            done += count
        return StreamResult.QUANTUM_EXPIRED


# Base classes of intermediate operations, with their effects on flags and columns.


@dataclass(frozen=True)
class Place:
    """The place of a stateful operation in a pipeline.

    Parameters
    ----------
    traits : Traits
        Known properties of the operation's input.
    schema : Schema
        Schema of the operation's input.
    order_matters : bool
        Whether the order of the operation's output is observed.
    """

    traits: Traits
    schema: pa.Schema
    order_matters: bool = True


class Lazy(ABC):
    """A step of a pipeline before any input has been bound.

    Attributes
    ----------
    checks_order : bool
        Whether the step itself raises an error if it relies on an order that its input has not.
    """

    checks_order = False

    @abstractmethod
    def bound(self) -> "Operation":
        """Return the step for one execution; a step with inputs of its own binds them now."""


class Operation(Lazy):
    """A step of a pipeline in an execution.

    Attributes
    ----------
    needs_order : bool
        Whether the output depends on the order of the input.
    """

    needs_order = False

    def bound(self) -> "Operation":
        return self

    @abstractmethod
    def effect(self, traits: Traits) -> Effect:
        """Return the operation's effect on the flags of an input with these ``traits``."""

    def traits(self, traits: Traits) -> Traits:
        """Return the traits of the operation's output."""
        return traits.after(self.effect(traits))

    @abstractmethod
    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the operation's output."""


class Stateful(Operation):
    """An operation that must see other rows; it ends a segment."""

    needs_order = True

    @abstractmethod
    def reason(self, place: Place) -> str:
        """Return how the operation is carried out, and why."""

    @abstractmethod
    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        """Add the streams behind ``producer``; return the last one."""

    def vanishes(self, place: Place) -> bool:
        """Return whether the operation would change nothing."""
        del place  # by default, an operation changes something everywhere
        return False


# Operations that become a chain of streams.

#: Streams with their parameters, in the order of the chain.
Chain: TypeAlias = Sequence[tuple[Stream, StreamParams]]


@dataclass(frozen=True)
class Decision:
    """The chain that an operation becomes, given the known properties of its input.

    Parameters
    ----------
    chain : sequence of (Stream, StreamParams)
        Streams of the chain; empty if the operation would change nothing.
    reason : str
        Reason for the choice, for the plan.
    """

    chain: Chain
    reason: str


class Chained(Stateful):
    """A stateful operation that becomes a chain of streams, or none."""

    @abstractmethod
    def decide(self, place: Place) -> Decision:
        """Choose the chain of streams."""

    def reason(self, place: Place) -> str:
        return self.decide(place).reason

    def vanishes(self, place: Place) -> bool:
        return not self.decide(place).chain

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        for stream, params in self.decide(place).chain:
            graph.add(stream, params)
            graph.connect(producer, stream)
            producer = stream
        return producer

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema


# Operations on each batch separately.


class Stateless(Operation):
    """An operation on each batch separately, which is fused with its neighbours.

    Parameters
    ----------
    operator : Operator
        The operator that is applied.
    clear : Flag
        Flags that the operation clears for any input.
    columns : callable, optional
        Maps an input column to its name in the output, or to None if the column changes or is left
        out, so that known properties of it are lost. By default, no column changes.
    """

    def __init__(
        self,
        operator: Operator,
        clear: Flag = Flag.NONE,
        columns: Callable[[str], str | None] | None = None,
    ) -> None:
        self.operator = operator
        self._clear = clear
        self._column = (lambda name: name) if columns is None else columns

    def effect(self, traits: Traits) -> Effect:
        clear = self._clear
        if not self._kept_order(traits):
            clear |= Flag.SORTED
        if any(self._column(name) is None for name in traits.distinct_by):
            clear |= Flag.DISTINCT
        return Effect(clear=clear)

    def traits(self, traits: Traits) -> Traits:
        after = traits.after(self.effect(traits))
        kept = ((self._column(old), known) for old, known in after.ranges.items())
        return replace(
            after,
            sorted_by=self._kept_order(traits) if after.sorted_by else (),
            distinct_by=tuple(
                name for old in after.distinct_by if (name := self._column(old)) is not None
            ),
            ranges={name: known for name, known in kept if name is not None},
        )

    def _kept_order(self, traits: Traits) -> tuple[str, ...]:
        """Return the leading sort columns that remain, under their new names."""
        kept: list[str] = []
        for old in traits.sorted_by:
            new = self._column(old)
            if new is None:
                break
            kept.append(new)
        return tuple(kept)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return self.operator.schema(schema)

    def __str__(self) -> str:
        return str(self.operator)


def filtering(function: Callable[..., Any], columns: Sequence[str] | None) -> Stateless:
    """Return the operation that filters rows: all properties but their number stay known."""
    return Stateless(Filter(function, columns), Flag.SIZED)


def mapping(name: str, function: Callable[..., Any], columns: Sequence[str] | None) -> Stateless:
    """Return the operation that sets a column: properties of other columns stay known."""
    return Stateless(Map(name, function, columns), columns=_except(name))


def updating(name: str, function: Callable[[Any], Any]) -> Stateless:
    """Return the operation that changes a column in place."""
    return Stateless(Update(name, function), columns=_except(name))


def selecting(columns: Mapping[str, str]) -> Stateless:
    """Return the operation that keeps some columns, given as new names by old ones."""
    renamed: dict[str, str] = {}
    for new, old in columns.items():
        renamed.setdefault(old, new)
    return Stateless(Project(columns), columns=renamed.get)


def mapping_batches(function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Stateless:
    """Return the operation that replaces batches; only the order of the rows stays known."""
    return Stateless(MapBatches(function), _ALL, columns=_nothing)


def flat_mapping(function: Callable[[pa.RecordBatch], Any], output: pa.Schema) -> Stateless:
    """Return the operation that replaces each batch by several."""
    return Stateless(FlatMap(function, output), _ALL, columns=_nothing)


def peeking(function: Callable[[pa.RecordBatch], Any]) -> Stateless:
    """Return the operation that shows batches to a function."""
    return Stateless(Peek(function))


#: Flags that are lost when batches are replaced by others.
_ALL = Flag.SIZED | Flag.SORTED | Flag.DISTINCT


def _nothing(column: str) -> str | None:
    del column  # properties of every column are lost
    return None


def _except(name: str) -> Callable[[str], str | None]:
    return lambda column: None if column == name else column


# The operation that gives up the order of rows.


class Unordered(Operation):
    """Give up the order of encounter, which may save work before and after this operation."""

    def effect(self, traits: Traits) -> Effect:
        return Effect(clear=Flag.ORDERED | Flag.SORTED)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return "unordered()"


# The operation that keeps only the first rows.


@dataclass(frozen=True)
class Limited(Chained):
    """Keep the first rows; SHORT_CIRCUIT.

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
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise UsageError(
                    f"limit takes whole numbers of at least 0 as {name}, not {value!r}."
                )

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
    """Keep the first of the rows that agree in all of some columns.

    Parameters
    ----------
    by : tuple of str or None
        Columns that are compared; all if None.
    """

    by: tuple[str, ...] | None = None

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
                [(Uniq(), UniqParams(by=leading))],
                f"compares neighbours: its input is SORTED by {', '.join(leading)}",
            )
        unique: list[tuple[Stream, StreamParams]] = [
            (Sort(), SortParams(by=by)),
            (Uniq(), UniqParams(by=by)),
        ]
        if not (place.order_matters and traits.has(Flag.ORDERED)):
            return Decision(unique, "sorts and compares neighbours; no order to restore")
        number = _unused(schema)
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
        return f"distinct({', '.join(self.by or ())})"


def _unused(schema: pa.Schema) -> str:
    name = "number"
    while name in schema.names:
        name = f"_{name}"
    return name


# The operation that aggregates rows over windows of time.


@dataclass(frozen=True)
class Aggregated(Stateful):
    """Aggregate rows over windows of time.

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


def runs_ahead(steps: Sequence[Step], ahead: bool) -> bool:
    """Return whether the streams before ``steps`` may make more than one batch at a time.

    A join gathers small batches, so several should be available. A limit should get no more batches
    than it needs.

    Parameters
    ----------
    steps : sequence of Step
        The following steps; the first stateful one decides.
    ahead : bool
        Result if there is no stateful step.
    """
    for step in steps:
        if isinstance(step.operation, Stateful) and not step.vanishes:
            return not isinstance(step.operation, Limited)
    return ahead


def stops_early(steps: Sequence[Step]) -> bool:
    """Return whether a limit can be reached before the first step has seen all of its input."""
    for step in steps:
        if isinstance(step.operation, Limited | Sorted) and not step.vanishes:
            return isinstance(step.operation, Limited)
    return False
