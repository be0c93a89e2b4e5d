# SPDX-License-Identifier: Apache-2.0
"""A key field of integers for a band, wherever they lie and however far apart.

The field holds distances from an origin near the first values, in steps, and values beyond either
end become that end. The accelerator then finds every matching pair and a few more;
:mod:`host.encode.recheck` removes the others. So nobody has to know the range of a column.

Values of the right side are moved by the middle of the band, so that equal field values stand for
the middle. Two values within the band are therefore within it in the field too, even at its ends.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.encode.fields import FieldEncoder, FieldPlan, TermTypes, bounds_of, place_of
from host.encode.floating import FloatingEncoder
from host.encode.ranges import outside
from host.encode.scale import common_tick
from host.encode.values import FieldValues
from host.manifest import KeyField
from host.reference.predicate import Bounds

__all__ = ["PlacedField", "plan_placed_field"]

STEPS = 7
"""A band is at least 2 ** (STEPS - 1) steps wide, or its steps are single ticks."""

_MOST_STEP = 62
"""A step has at most this power of two, so that 64 bits hold more than one, however wide a band."""

_FARTHEST = 1 << 64
"""Beyond every value of a column."""


@dataclass(frozen=True)
class PlacedField(FieldPlan):
    """A field of integers in steps from an origin that the first values determine.

    Parameters
    ----------
    field : KeyField
        The key field.
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    step : int
        Size of a step, in ticks.
    middle : int
        Middle of the band, in ticks.
    """

    field: KeyField
    factors: tuple[int, int]
    step: int
    middle: int

    @property
    def is_exact(self) -> bool:
        return False

    @property
    def top(self) -> int:
        """Largest distance from the origin, in steps; 64 bits hold it in ticks."""
        return min(1 << self.field.bits, (1 << 64) // self.step) - 1

    def start(self) -> FieldEncoder:
        return _PlacedEncoder(self)


class _PlacedEncoder(FloatingEncoder):
    def __init__(self, plan: PlacedField) -> None:
        room = (plan.top + 1) * plan.step - 1
        super().__init__(plan.terms[0], plan.factors, room, offsets=(0, plan.middle))
        self._plan = plan
        self._place = place_of(plan.field)

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        plan = self._plan
        array, view = self._read(side, batch)
        near = FieldValues(view, plan.factors[side], self._origin(side), plan.step, self._place)
        if self._all_within(side, array):
            return near
        least, most = self._limits(side)
        values = near.block(slice(None)) + np.uint64(self._place)
        values[outside(view, least, _FARTHEST)] = 0
        values[outside(view, -_FARTHEST, most)] = plan.top
        return FieldValues(values, place=self._place)


def plan_placed_field(field: KeyField, term: TermTypes) -> PlacedField:
    """Plan the field of a term on integers that is not an equality."""
    tick, factors = common_tick(*term.columns)
    low, high = (getattr(bounds_of(term, tick, 1), name) for name in ("low", "high"))
    step, middle, bounds = 1, 0, Bounds()
    if low is not None and high is not None:
        step = 1 << min(max(0, max(high - low, 0).bit_length() - STEPS), _MOST_STEP)
        middle = (low + high) // 2
        bounds = Bounds((low - middle) // step, -((middle - high) // step))
        if low > high:
            bounds = Bounds(1, 0)
    elif low is not None:
        middle, bounds = low, Bounds(0, None)
    elif high is not None:
        middle, bounds = high, Bounds(None, 0)
    steps = "" if step == 1 else f" in steps of {step}"
    note = f"the values{steps}, the first ones in the middle; pairs are checked exactly afterwards"
    return PlacedField(field.name, (term,), bounds, note, field, factors, step, middle)
