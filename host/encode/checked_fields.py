# SPDX-License-Identifier: Apache-2.0
"""Key fields of streams whose values must be checked, because their types allow too many."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.coded_field import UNBOUNDED
from host.encode.dictionary import GrowingCodes
from host.encode.fields import FieldEncoder, FieldPlan, place_of, wider
from host.encode.floating import FloatingEncoder
from host.encode.kinds import validity
from host.encode.ranges import outside
from host.encode.spread import Spread
from host.encode.values import FieldValues
from host.errors import KeyRangeError
from host.manifest import KeyField

__all__ = ["CheckedField", "MixedField"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class CheckedField(FieldPlan):
    """A field of distances from the least value of a given range; all values are checked.

    Parameters
    ----------
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    divisor : int
        Number of ticks in a unit of the field.
    minimum : int
        Origin, in ticks.
    top : int
        Largest distance from the origin in units of the field.
    """

    field: KeyField
    factors: tuple[int, int]
    divisor: int
    minimum: int
    top: int

    @property
    def spread(self) -> Spread:
        return Spread(self.top)

    def start(self) -> FieldEncoder:
        return _CheckedEncoder(self)


class _CheckedEncoder(FloatingEncoder):
    def __init__(self, plan: CheckedField) -> None:
        room = ((1 << plan.field.bits) - 1) * plan.divisor
        super().__init__(plan.terms[0], plan.factors, room, minimum=plan.minimum)
        self._plan = plan
        self._divisor = plan.divisor
        self._place = place_of(plan.field)

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        array, view = self._read(side, batch)
        if not self._all_within(side, array):
            beyond = _valid(array, outside(view, *self._limits(side)))
            self._refuse(side, view, first, int(np.argmax(beyond)))
        factor, minimum = self._plan.factors[side], self._plan.minimum
        if self._divisor != 1:
            self._require_steps(side, array, view, first)
        return FieldValues(view, factor, minimum, self._divisor, self._place)

    def _require_steps(self, side: int, array: pa.Array, view: Array, first: int) -> None:
        exact = FieldValues(view, self._plan.factors[side], self._plan.minimum)
        odd = _valid(array, exact.block(slice(None)) % np.uint64(self._divisor) != 0)
        if odd.any():
            self._refuse(side, view, first, int(np.argmax(odd)), "a range with the true step")

    def _refuse(
        self, side: int, view: Array, first: int, at: int, remedy: str | None = None
    ) -> NoReturn:
        factor, minimum, value = self._plan.factors[side], self._plan.minimum, int(view[at])
        field = self._plan.field
        needed = abs(value * factor - minimum) // self._divisor
        if remedy is None:
            remedy = "the true range of the column, or " + wider(
                field, max(needed, 2 << field.bits)
            )
        raise KeyRangeError(
            self._term.columns[side].name,
            value,
            *self._limits(side),
            remedy=f"give {remedy}" if not remedy.startswith("the values") else remedy,
            row=first + at,
        )


@dataclass(frozen=True)
class MixedField(FieldPlan):
    """An equality whose field holds values near the first ones in one half, codes in the other.

    A field of few bits runs out of codes; see :mod:`host.encode.coded_field`.
    """

    field: KeyField
    factors: tuple[int, int]

    @property
    def is_exact(self) -> bool:
        return self.field.bits > UNBOUNDED

    def start(self) -> FieldEncoder:
        return _MixedEncoder(self)


class _MixedEncoder(FloatingEncoder):
    def __init__(self, plan: MixedField) -> None:
        self._half = 1 << (plan.field.bits - 1)
        super().__init__(plan.terms[0], plan.factors, self._half - 1)
        self._plan = plan
        self._place = place_of(plan.field)
        self._codes = GrowingCodes()

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        array, view = self._read(side, batch)
        factor = self._plan.factors[side]
        near = FieldValues(view, factor, self._origin(side), 1, self._place)
        if self._all_within(side, array):
            return near
        values = near.block(slice(None))
        at = np.flatnonzero(_valid(array, outside(view, *self._limits(side))))
        codes = self._codes.of_integers(pa.array(view[at]), factor)
        codes &= np.uint64(self._half - 1)
        values[at] = codes + np.uint64((self._half - self._place) & _MASK)
        return FieldValues(values)


def _valid(array: pa.Array, chosen: Bools) -> Bools:
    """Return which of the chosen values are not null."""
    valid = validity(array)
    return chosen if valid is None else chosen & valid
