# SPDX-License-Identifier: Apache-2.0
"""The parts of an operator's description, and what follows from them."""

from dataclasses import dataclass
from functools import reduce
from math import gcd

from host.expressions import Expression, Interval, interval
from host.windowed.parts import TIME, Field, Key, Output
from host.windowed.reduction import Reduction

__all__ = ["Description"]


@dataclass(frozen=True, kw_only=True)
class Description:
    """The parts of a :class:`~host.windowed.WindowedOperator`, which says what they mean."""

    name: str
    size: int
    advance: int
    fields: tuple[Field, ...]
    right_fields: tuple[Field, ...] | None = None
    keys: tuple[Key, ...] = ()
    key_names: tuple[str, ...] | None = None
    instances: str = "multi"
    reductions: tuple[Reduction, ...] = ()
    outputs: tuple[Output, ...] | None = None
    having: Expression | None = None
    match: Expression | None = None
    in_turns: bool = False

    @property
    def kind(self) -> str:
        """What it does: ``"aggregate"``, ``"join"``, ``"join_aggregate"`` or ``"forward"``."""
        if self.match is not None:
            return "join_aggregate" if self.reductions else "join"
        return "aggregate" if self.reductions else "forward"

    @property
    def inputs(self) -> int:
        """Number of input streams, the seed's I."""
        return 1 if self.right_fields is None else 2

    @property
    def schemas(self) -> tuple[tuple[Field, ...], ...]:
        """Fields of the tuples of each input."""
        return (self.fields,) if self.right_fields is None else (self.fields, self.right_fields)

    @property
    def tuple_ranges(self) -> tuple[dict[str, Interval], ...]:
        """Ranges of what expressions may read of a tuple, for each input."""
        return tuple(
            {"timestamp": TIME, **{field.name: field.range for field in schema}}
            for schema in self.schemas
        )

    @property
    def pair_ranges(self) -> dict[str, Interval]:
        """Ranges of what expressions may read of a left and a right tuple."""
        sides = zip("lr", self.tuple_ranges, strict=True)
        return {f"{side}.{name}": at for side, ranges in sides for name, at in ranges.items()}

    @property
    def key_ranges(self) -> tuple[Interval, ...]:
        """Range of each part of a key, over all keys and inputs.

        Raises
        ------
        ExpressionError
            If an expression reads a name that the tuples of an input do not have.
        """
        if not self.keys:
            return ()
        return tuple(
            reduce(
                Interval.__or__,
                (
                    interval(key.parts[place], ranges)
                    for key in self.keys
                    for ranges in self.tuple_ranges
                ),
            )
            for place in range(len(self.keys[0].parts))
        )

    @property
    def key_fields(self) -> tuple[Field, ...]:
        """The parts of a key, each as narrow as the expressions of the keys allow."""
        assert self.key_names is not None
        return tuple(
            Field(name, at.bits, at.signed)
            for name, at in zip(self.key_names, self.key_ranges, strict=True)
        )

    @property
    def pane(self) -> int:
        """Length of a pane: each window consists of whole panes, and no smaller parts."""
        return gcd(self.size, self.advance)

    @property
    def slides_by(self) -> str:
        """How an aggregate's state slides at the least cost.

        ``"delta"`` if every reduction has an inverse: what leaves a window is taken out of its
        state. Otherwise ``"panes"``: the state is combined from those of the panes.
        """
        invertible = all(reduction.inverse is not None for reduction in self.reductions)
        return "delta" if invertible else "panes"
