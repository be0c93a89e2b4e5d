# SPDX-License-Identifier: Apache-2.0
"""Intermediate operations: what each does to the flags, and the streams that it becomes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from host.errors import UsageError
from host.operators import (
    Filter,
    FlatMap,
    Map,
    MapBatches,
    Operator,
    Peek,
    Project,
    Update,
)
from host.pipeline.flags import Effect, Flag, Traits
from host.runtime import ExecStreamGraph, Stream, StreamParams
from host.streams.fused_stage import FusedStage, FusedStageParams
from host.streams.limit import Limit, LimitParams
from host.streams.number import Number, NumberParams
from host.streams.sort import Sort, SortParams
from host.streams.sort_keys import key_columns
from host.streams.uniq import Uniq, UniqParams

__all__ = [
    "Chained",
    "Decision",
    "Distinct",
    "Lazy",
    "Limited",
    "Operation",
    "Place",
    "Sorted",
    "Stateful",
    "Stateless",
    "Unordered",
    "filtering",
    "flat_mapping",
    "mapping",
    "mapping_batches",
    "peeking",
    "selecting",
    "updating",
]

#: Streams with their parameters, one behind the other.
Chain: TypeAlias = Sequence[tuple[Stream, StreamParams]]


@dataclass(frozen=True)
class Place:
    """Where a stateful operation stands.

    Parameters
    ----------
    traits : Traits
        What is known of its input.
    schema : Schema
        Columns of its input.
    order_matters : bool
        Whether anybody can tell the order of its output.
    """

    traits: Traits
    schema: pa.Schema
    order_matters: bool = True


@dataclass(frozen=True)
class Decision:
    """What becomes of a chained operation, given what is known of its input.

    Parameters
    ----------
    chain : sequence of (Stream, StreamParams)
        The streams that it becomes; none if it would change nothing.
    reason : str
        Why, for the plan.
    """

    chain: Chain
    reason: str


class Lazy(ABC):
    """A step of a pipeline before anything has been looked at."""

    @abstractmethod
    def bound(self) -> "Operation":
        """Return the step for one execution; one with inputs of its own binds them now."""


class Operation(Lazy):
    """A step of a pipeline in an execution.

    Attributes
    ----------
    needs_order : bool
        Whether its own output depends on the order of its input.
    """

    needs_order = False

    def bound(self) -> "Operation":
        return self

    @abstractmethod
    def effect(self, traits: Traits) -> Effect:
        """Return what it does to the flags of its input, which has these ``traits``."""

    def traits(self, traits: Traits) -> Traits:
        """Return the traits of its output."""
        return traits.after(self.effect(traits))

    @abstractmethod
    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of its output."""


class Stateless(Operation):
    """An operation on each batch by itself, fused with its neighbours.

    Parameters
    ----------
    operator : Operator
        What is done.
    clear : Flag
        What is lost whatever the input.
    columns : callable, optional
        What becomes of a column of the input: its name in the output, or None if it changes or is
        left out, which ends what was known of it. By default no column changes.
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
        """The leading columns of the order that are still there, under their new names."""
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
    """Return the operation that keeps rows: what is known stays known, but not their number."""
    return Stateless(Filter(function, columns), Flag.SIZED)


def mapping(name: str, function: Callable[..., Any], columns: Sequence[str] | None) -> Stateless:
    """Return the operation that sets a column: all is kept that does not rest on the column."""
    return Stateless(Map(name, function, columns), columns=_except(name))


def updating(name: str, function: Callable[[Any], Any]) -> Stateless:
    """Return the operation that changes a column in place."""
    return Stateless(Update(name, function), columns=_except(name))


def selecting(columns: Mapping[str, str]) -> Stateless:
    """Return the operation that leaves some columns, new names by old ones."""
    renamed: dict[str, str] = {}
    for new, old in columns.items():
        renamed.setdefault(old, new)
    return Stateless(Project(columns), columns=renamed.get)


def mapping_batches(function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Stateless:
    """Return the operation that replaces batches, of which nothing is known but their order."""
    return Stateless(MapBatches(function), _ALL, columns=_nothing)


def flat_mapping(function: Callable[[pa.RecordBatch], Any], output: pa.Schema) -> Stateless:
    """Return the operation that replaces each batch by several."""
    return Stateless(FlatMap(function, output), _ALL, columns=_nothing)


def peeking(function: Callable[[pa.RecordBatch], Any]) -> Stateless:
    """Return the operation that shows batches to a function."""
    return Stateless(Peek(function))


#: What is lost when batches are replaced by others.
_ALL = Flag.SIZED | Flag.SORTED | Flag.DISTINCT


def _nothing(column: str) -> str | None:
    del column  # whatever it was
    return None


def _except(name: str) -> Callable[[str], str | None]:
    return lambda column: None if column == name else column


class Unordered(Operation):
    """Gives up the order of encounter, which may save what comes before and after some work."""

    def effect(self, traits: Traits) -> Effect:
        return Effect(clear=Flag.ORDERED | Flag.SORTED)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return "unordered()"


class Stateful(Operation):
    """An operation that must see other rows; it ends a segment."""

    needs_order = True

    @abstractmethod
    def reason(self, place: Place) -> str:
        """Say how it is done and why."""

    @abstractmethod
    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        """Add the streams behind ``producer``; return the last one."""

    def vanishes(self, place: Place) -> bool:
        """Whether it would change nothing."""
        del place  # it changes something wherever it stands
        return False


class Chained(Stateful):
    """A stateful operation that becomes streams one behind the other, or none."""

    @abstractmethod
    def decide(self, place: Place) -> Decision:
        """Choose the streams."""

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


@dataclass(frozen=True)
class Sorted(Chained):
    """Sorts by columns, ascending, nulls last; rows that tie keep their order.

    Parameters
    ----------
    by : tuple of str
        The columns.
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


@dataclass(frozen=True)
class Distinct(Chained):
    """Keeps the first of the rows that agree in all of some columns.

    Parameters
    ----------
    by : tuple of str or None
        The columns; all if None.
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


@dataclass(frozen=True)
class Limited(Chained):
    """The first rows; SHORT_CIRCUIT.

    Parameters
    ----------
    rows : int
        At most so many.
    skip : int
        Rows that are left out before.
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


def _unused(schema: pa.Schema) -> str:
    name = "number"
    while name in schema.names:
        name = f"_{name}"
    return name
