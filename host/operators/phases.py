# SPDX-License-Identifier: Apache-2.0
"""An aggregation in two phases: parts of the rows by panes, then windows of the parts' results.

Every part of the input can be reduced by itself, and only its panes have to meet those of the other
parts. Both phases are aggregations again, so they have one meaning and one implementation.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np
import pyarrow as pa

from host.operators.aggregate import Array, narrowed, whole_numbers
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES, Aggregate, AggregateQuery
from host.query.words import Span

__all__ = [
    "Phases",
]

#: How the results of panes are combined.
_AGAIN = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True)
class Phases:
    """The two aggregations that an aggregation consists of.

    Parameters
    ----------
    query : AggregateQuery
        The aggregation as a whole.
    """

    query: AggregateQuery

    @property
    def panes(self) -> AggregateQuery:
        """The first phase: windows that do not overlap, as long as a pane."""
        pane = _pane(self.query)
        states = {self.state_column(state): state for state in self._states}
        return AggregateQuery(
            time=self.query.time, window=pane, on=self.query.on, aggregates=states, parts=True
        )

    @property
    def windows(self) -> AggregateQuery:
        """The second phase, whose input is the result of the first one, of all parts."""
        again = {
            self.state_column(state): Aggregate(_AGAIN[state.function], self.state_column(state))
            for state in self._states
        }
        return AggregateQuery(
            time=BOUNDARIES[0],
            window=self.query.window,
            advance=self.query.advance,
            on=self.query.on,
            aggregates=again,
            parts=True,
        )

    def finished(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return the results of the aggregation as a whole, from those of the second phase."""
        kept = len(BOUNDARIES) + len(self.query.on)
        columns = [*batch.columns[:kept]]
        for name, one in self.query.aggregates.items():
            column = batch.column(self.state_column(_state_of(one)))
            if one.function == "mean":
                counts = batch.column(self.state_column(Aggregate("count", one.column)))
                divisors = np.maximum(_numbers(counts).astype(np.float64), 1)
                column = _array(_numbers(column).astype(np.float64) / divisors, column)
            elif one.function in ("sum", "count"):
                column = _array(narrowed(_numbers(column), name), column)
            columns.append(column.cast(schema.field(name).type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def state_column(self, state: Aggregate) -> str:
        """Return the column of a state in results of the first phase; no key is called like it.

        Parameters
        ----------
        state : Aggregate
            A count, a sum, a least or a greatest value that an aggregate of the query needs; a mean
            needs the sum and the count of its column.
        """
        name = f"state{self._states.index(state)}"
        while name in self.query.on:
            name = f"_{name}"
        return name

    @property
    def _states(self) -> list[Aggregate]:
        found: list[Aggregate] = []
        for one in self.query.aggregates.values():
            found.append(_state_of(one))
            if one.function == "mean":
                found.append(Aggregate("count", one.column))
        return list(dict.fromkeys(found))


def _state_of(one: Aggregate) -> Aggregate:
    return Aggregate("sum", one.column) if one.function == "mean" else one


def _pane(query: AggregateQuery) -> Span:
    window, advance = query.window, query.advance
    if isinstance(window, Duration) and isinstance(advance, Duration):
        return Duration(gcd(window.nanoseconds, advance.nanoseconds))
    assert isinstance(window, int)
    assert isinstance(advance, int)
    return gcd(window, advance)


def _numbers(column: pa.Array) -> Array:
    """Return numbers, whose sums are wide decimals; nulls become zero."""
    if pa.types.is_decimal(column.type):
        return whole_numbers(column)
    values: Array = column.fill_null(0).to_numpy(zero_copy_only=False)
    return values


def _array(values: Array, like: pa.Array) -> pa.Array:
    """Return values with the nulls of another array."""
    mask: Array = like.is_null().to_numpy(zero_copy_only=False)
    return pa.array(values, mask=mask if mask.any() else None)
