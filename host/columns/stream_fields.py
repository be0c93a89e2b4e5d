# SPDX-License-Identifier: Apache-2.0
"""Key fields of streams: planned from types and ranges, coded or checked batch by batch."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.columns.band_fields import plan_float_field, plan_placed_field
from host.columns.codes import FieldValues, GrowingCodes
from host.columns.fields import (
    FieldEncoder,
    FieldPlan,
    FloatingEncoder,
    TermTypes,
    bounds_of,
    place_of,
    require_coded_equality,
    wider,
)
from host.columns.kinds import Ranges, outside, span_of, validity
from host.columns.scale import Scale, common_tick
from host.columns.table_fields import ScaledField
from host.errors import KeyRangeError
from host.protocol.manifest import KeyField
from host.protocol.spread import Spread
from host.reference.predicate import Bounds

__all__ = [
    "CheckedField",
    "CodedStreamField",
    "MixedField",
    "UNBOUNDED",
    "plan_coded_field",
    "plan_stream_field",
]

# A key field of codes that are assigned to the new values of a stream.
#
# A field of few bits runs out of codes. Then they begin anew, so that different values can have
# one code; :mod:`host.columns.fields` removes the pairs of these.

UNBOUNDED = 31
"""Bits of codes that no dictionary in memory runs out of."""


@dataclass(frozen=True)
class CodedStreamField(FieldPlan):
    """A field of codes for one or more equalities; every new value gets the next code.

    Parameters
    ----------
    field : KeyField
        The field.
    strict : bool
        Whether it is an error that codes run out. Otherwise they begin anew.
    """

    field: KeyField
    strict: bool = False

    @property
    def is_exact(self) -> bool:
        return self.strict or self.field.bits >= UNBOUNDED

    def start(self) -> FieldEncoder:
        return _CodedEncoder(self)


class _CodedEncoder(FieldEncoder):
    """Has a dictionary per term, and one per further term to combine it with earlier ones."""

    def __init__(self, plan: CodedStreamField) -> None:
        self._plan = plan
        self._factors = [common_tick(*term.columns)[1] for term in plan.terms]
        self._values = [GrowingCodes() for _ in plan.terms]
        self._pairs = [GrowingCodes() for _ in plan.terms[1:]]
        self._top = (1 << plan.field.bits) - 1
        self._place = place_of(plan.field)

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        codes, keep = None, None
        for index, term in enumerate(self._plan.terms):
            array = term.columns[side].read(batch)
            known = self._values[index]
            if term.left.kind.is_coded:
                own = known.of_values(array)
            else:
                own = known.of_integers(array, self._factors[index][side])
            valid = validity(array)
            if valid is not None:
                keep = valid if keep is None else keep & valid
            if codes is None:
                codes = own
            else:
                # Codes are counted from zero, so each of the two fits in 32 bits.
                both = (codes << np.uint64(32)) | own
                codes = self._pairs[index - 1].of_integers(pa.array(both), keep=keep)
        assert codes is not None
        if self._plan.strict and len(codes) and int(codes.max()) > self._top:
            term = self._plan.terms[0]
            raise KeyRangeError(
                term.columns[side].name,
                f"more than {self._top + 1} distinct values",
                0,
                self._top,
                remedy=wider(self._plan.field, 2 * self._top + 1),
            )
        return FieldValues(codes & np.uint64(self._top), place=self._place)


def plan_coded_field(field: KeyField, terms: tuple[TermTypes, ...]) -> CodedStreamField:
    """Plan the field of one or more equalities of values that become known batch by batch."""
    note = "codes of the values, shared by both sides"
    if field.bits < UNBOUNDED:
        note += "; pairs are checked exactly afterwards"
    return CodedStreamField(field.name, terms, Bounds(0, 0), note, field)


# Key fields of streams whose values must be checked, because their types allow too many.

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

    A field of few bits runs out of codes; see :mod:`host.columns.stream_fields`.
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


# Plan the key fields of streams from the types of columns and from given ranges.


def plan_stream_field(
    field: KeyField, terms: tuple[TermTypes, ...], ranges: tuple[Ranges, Ranges]
) -> FieldPlan:
    """Plan one field from the types of its columns and the ranges of some of them.

    Raises
    ------
    UsageError
        If the values cannot be compared as the terms require.
    """
    if terms[0].is_float_difference:
        return plan_float_field(field, terms[0])
    if len(terms) > 1 or require_coded_equality(terms[0]):
        return plan_coded_field(field, terms)
    (term,) = terms
    tick, factors = common_tick(*term.columns)
    top = (1 << field.bits) - 1
    span = span_of(term.columns, factors, ranges)
    divisor = span.step if span.high - span.low > top else 1
    fits = (span.high - span.low) // divisor <= top
    bounds = bounds_of(term, tick, divisor)
    given = any(column.column in of for column, of in zip(term.columns, ranges, strict=True))
    if fits and not given:
        scale = Scale(tick, factors, span.low, span.high - span.low)
        return ScaledField(
            field.name,
            terms,
            bounds,
            "the values, from the least that their types have",
            scale,
            place_of(field),
        )
    if fits:
        note = f"the values, from {span.low}" + (f" in steps of {divisor}" if divisor > 1 else "")
        top = (span.high - span.low) // divisor
        return CheckedField(field.name, terms, bounds, note, field, factors, divisor, span.low, top)
    if term.term.is_equality:
        note = "the values near the first ones, codes of all others"
        if field.bits <= UNBOUNDED:
            note += "; pairs are checked exactly afterwards"
        return MixedField(field.name, terms, bounds, note, field, factors)
    return plan_placed_field(field, term)
