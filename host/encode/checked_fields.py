# SPDX-License-Identifier: Apache-2.0
"""Key fields of streams whose values must be checked, because their types allow too many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.coded_field import refuse_codes
from host.encode.dictionary import GrowingCodes
from host.encode.fields import FieldEncoder, FieldPlan, place_of, wider
from host.encode.kinds import integer_view, validity
from host.encode.ranges import outside
from host.encode.spread import Spread
from host.encode.values import FieldValues
from host.errors import KeyRangeError
from host.manifest import KeyField

__all__ = ["CheckedField", "MixedField"]

Array = npt.NDArray[Any]
Batches = Sequence[tuple[int, pa.RecordBatch]]

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class CheckedField(FieldPlan):
    """A field of distances from an origin, given or taken from the first values; all are checked.

    Parameters
    ----------
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    divisor : int
        Number of ticks in a unit of the field.
    minimum : int or None
        Origin in ticks; None if the first values determine it.
    top : int or None
        Largest distance from the origin in units of the field, if known.
    """

    field: KeyField
    factors: tuple[int, int]
    divisor: int
    minimum: int | None
    top: int | None = None

    @property
    def spread(self) -> Spread | None:
        return None if self.top is None else Spread(self.top)

    def start(self) -> FieldEncoder:
        return _CheckedEncoder(self)


class _Floating(FieldEncoder):
    """An encoder that places the first values in the middle of the field's range."""

    def __init__(
        self,
        plan: "CheckedField | MixedField",
        minimum: int | None,
        room: int,
    ) -> None:
        self._plan = plan
        self._term = plan.terms[0]
        self._minimum = minimum
        self._room = room  # range of the field, in ticks
        self._place = place_of(plan.field)

    def settle(self, batches: Batches) -> None:
        if self._minimum is not None:
            return
        first: int | None = None
        extremes: list[int] = []
        for side, batch in batches:
            array = self._term.columns[side].read(batch)
            values = _present(array)
            if len(values):
                factor = self._plan.factors[side]
                extremes += [int(values.min()) * factor, int(values.max()) * factor]
                first = int(values[0]) * factor if first is None else first
        if first is not None:
            low, high = min(extremes), max(extremes)
            fits = high - low <= self._room
            self._minimum = (low + high if fits else 2 * first) // 2 - self._room // 2

    def _read(self, side: int, batch: pa.RecordBatch) -> tuple[pa.Array, Array]:
        array = self._term.columns[side].read(batch)
        self.settle([(side, batch)])
        return array, integer_view(array)

    def _strangers(self, side: int, array: pa.Array, view: Array) -> npt.NDArray[np.bool_] | None:
        """Return which values are outside the field's range; None if none are."""
        minimum, factor = self._minimum or 0, self._plan.factors[side]
        least, most = -(-minimum // factor), (minimum + self._room) // factor
        values = _present(array)
        if not len(values) or (least <= int(values.min()) and int(values.max()) <= most):
            return None
        beyond = outside(view, least, most)
        valid = validity(array)
        return beyond if valid is None else beyond & valid


class _CheckedEncoder(_Floating):
    def __init__(self, plan: CheckedField) -> None:
        super().__init__(plan, plan.minimum, ((1 << plan.field.bits) - 1) * plan.divisor)
        self._divisor = plan.divisor

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        array, view = self._read(side, batch)
        beyond = self._strangers(side, array, view)
        if beyond is not None:
            self._refuse(side, view, first, int(np.argmax(beyond)))
        factor, minimum = self._plan.factors[side], self._minimum or 0
        if self._divisor != 1:
            self._require_steps(side, array, view, first)
        return FieldValues(view, factor, minimum, self._divisor, self._place)

    def _require_steps(self, side: int, array: pa.Array, view: Array, first: int) -> None:
        exact = FieldValues(view, self._plan.factors[side], self._minimum or 0)
        odd = exact.block(slice(None)) % np.uint64(self._divisor) != 0
        valid = validity(array)
        odd = odd if valid is None else odd & valid
        if odd.any():
            self._refuse(side, view, first, int(np.argmax(odd)), "a range with the true step")

    def _refuse(
        self, side: int, view: Array, first: int, at: int, remedy: str | None = None
    ) -> NoReturn:
        factor, minimum, value = self._plan.factors[side], self._minimum or 0, int(view[at])
        field = self._plan.field
        needed = abs(value * factor - minimum) // self._divisor
        if remedy is None:
            remedy = "the true range of the column, or " + wider(
                field, max(needed, 2 << field.bits)
            )
        raise KeyRangeError(
            self._term.columns[side].name,
            value,
            -(-minimum // factor),
            (minimum + self._room) // factor,
            remedy=f"give {remedy}" if not remedy.startswith("the values") else remedy,
            row=first + at,
        )


@dataclass(frozen=True)
class MixedField(FieldPlan):
    """An equality whose field holds values near the first ones in one half, codes in the other."""

    field: KeyField
    factors: tuple[int, int]

    def start(self) -> FieldEncoder:
        return _MixedEncoder(self)


class _MixedEncoder(_Floating):
    def __init__(self, plan: MixedField) -> None:
        self._half = 1 << (plan.field.bits - 1)
        super().__init__(plan, None, self._half - 1)
        self._codes = GrowingCodes()

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        array, view = self._read(side, batch)
        factor = self._plan.factors[side]
        near = FieldValues(view, factor, self._minimum or 0, 1, self._place)
        beyond = self._strangers(side, array, view)
        if beyond is None:
            return near
        values = near.block(slice(None))
        at = np.flatnonzero(beyond)
        codes = self._codes.of_integers(pa.array(view[at]), factor)
        if len(self._codes) > self._half:
            fits = np.ones(len(view), np.bool_)
            fits[at] = codes < self._half
            count = self._half + len(self._codes)
            refuse_codes(self._term, side, self._plan.field, count, first, fits)
        values[at] = codes + np.uint64((self._half - self._place) & _MASK)
        return FieldValues(values)


def _present(array: pa.Array) -> Array:
    """Return the values that are not null, as a view if no value is null."""
    valid, view = validity(array), integer_view(array)
    return view if valid is None else view[valid]
