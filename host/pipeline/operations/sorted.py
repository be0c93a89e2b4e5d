# SPDX-License-Identifier: Apache-2.0
"""The operation that sorts by columns."""

from dataclasses import dataclass

import pyarrow as pa

from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations.chained import Chained, Decision
from host.pipeline.operations.operation import Place
from host.streams.sort import Sort, SortParams
from host.streams.sort_keys import key_columns

__all__ = ["Sorted"]


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
