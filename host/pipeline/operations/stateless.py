# SPDX-License-Identifier: Apache-2.0
"""Operations on each batch separately."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

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
from host.pipeline.operations.operation import Operation

__all__ = [
    "Stateless",
    "filtering",
    "flat_mapping",
    "mapping",
    "mapping_batches",
    "peeking",
    "selecting",
    "updating",
]


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
