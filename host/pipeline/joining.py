# SPDX-License-Identifier: Apache-2.0
"""Operations on several pipelines: the join on a device, and the merge of sorted rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from host.columns.encoding import joined_schema
from host.devices import Device
from host.errors import UsageError
from host.pipeline.execution import Execution
from host.pipeline.flags import Effect, Flag, Place, Stateful, Traits
from host.pipeline.operations import Sorted
from host.pipeline.sorting import SortedMerge, SortedMergeParams, key_columns
from host.query.ordering import Ordering
from host.query.queries import Query
from host.runtime import ExecStreamGraph, Stream
from host.session.join import JoinStream, add_join
from host.session.params import JoinOptions, plan_join

__all__ = [
    "Joined",
    "Merged",
]


class Feed(Protocol):
    """Another pipeline, as an input."""

    def execution(self, *, ordered: bool = True, is_checked: bool = False) -> Execution:
        """Bind the source of the pipeline, and plan its execution."""


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

    right: Feed | Execution
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
        stream, outlet = add_join(graph, inputs, params)
        if self.started is not None:
            self.started(stream)
        return outlet

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

    others: Sequence[Feed | Execution]
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
