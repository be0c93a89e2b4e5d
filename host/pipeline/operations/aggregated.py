# SPDX-License-Identifier: Apache-2.0
"""The operation that aggregates rows over windows of time."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from host.aggregate.execution_stream import Aggregate, AggregateParams
from host.aggregate.stream import WindowAggregation
from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations.operation import Place, Stateful
from host.query.aggregate_query import BOUNDARIES, AggregateQuery
from host.runtime import ExecStreamGraph, Stream

__all__ = ["Aggregated"]


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
            self.effect(traits), sorted_by=BOUNDARIES, distinct_by=(start, *self.query.keys)
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
