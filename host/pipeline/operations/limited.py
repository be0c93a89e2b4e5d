# SPDX-License-Identifier: Apache-2.0
"""The operation that keeps only the first rows."""

from dataclasses import dataclass

from host.errors import UsageError
from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations.chained import Chained, Decision
from host.pipeline.operations.operation import Place
from host.streams.limit import Limit, LimitParams

__all__ = ["Limited"]


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
