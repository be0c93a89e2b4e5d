# SPDX-License-Identifier: Apache-2.0
"""The operation that leaves out repeated rows."""

from dataclasses import dataclass

import pyarrow as pa

from host.operators import (
    Project,
)
from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations.chained import Chained, Decision
from host.pipeline.operations.operation import Place
from host.runtime import Stream, StreamParams
from host.streams.fused_stage import FusedStage, FusedStageParams
from host.streams.number import Number, NumberParams
from host.streams.sort import Sort, SortParams
from host.streams.sort_keys import key_columns
from host.streams.uniq import Uniq, UniqParams

__all__ = ["Distinct"]


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
