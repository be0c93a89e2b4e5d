# SPDX-License-Identifier: Apache-2.0
"""Key fields: distances of integers and times, near an origin or far from it, codes, floats."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as state
import math
import sys
from typing import Generic, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from host.arrays import Array, Bools, Float64s, UInt64s
from host.columns.codes import FieldValues, GrowingCodes
from host.columns.fields import (
    FieldPlan,
    TermTypes,
    bounds_of,
    place_of,
    require_coded_equality,
    wider,
)
from host.columns.kinds import (
    ColumnType,
    Ranges,
    bound_in_ticks,
    canonical_bits,
    common_tick,
    doubles,
    integer_view,
    outside,
    span_of,
    validity,
)
from host.errors import AcceleratorLimitError
from host.protocol.manifest import KeyField
from host.protocol.spread import Spread
from host.reference.predicate import Bounds

__all__ = [
    "CodedField",
    "ExactField",
    "FloatBandField",
    "FloatLimitField",
    "MixedField",
    "PlacedField",
    "UNBOUNDED",
    "plan_coded_field",
    "plan_field",
    "plan_float_field",
]

Batches = Sequence[tuple[int, pa.RecordBatch]]
N = TypeVar("N", int, float)

_MASK = (1 << 64) - 1
_CHECKED = "; pairs are checked exactly afterwards"


def plan_field(
    field: KeyField,
    terms: tuple[TermTypes, ...],
    ranges: tuple[Ranges, Ranges],
    *,
    seen: bool = False,
    strict: bool = False,
) -> FieldPlan:
    """Plan one field from the types of its columns and the ranges of some of them.

    Parameters
    ----------
    field : KeyField
        The field.
    terms : tuple of TermTypes
        The terms that it stands for: one, or several equalities.
    ranges : tuple of mapping
        Ranges of columns of the left and of the right rows.
    seen : bool
        Whether the ranges are those of all values. Otherwise values are checked as they come.
    strict : bool
        Whether a field of an equality is exact; then it is an error if there are too many values.

    Raises
    ------
    UsageError
        If the values cannot be compared as the terms require.
    """
    if terms[0].is_float_difference:
        return plan_float_field(field, terms[0])
    if len(terms) > 1 or require_coded_equality(terms[0]):
        return plan_coded_field(field, terms, strict=strict)
    (term,) = terms
    tick, factors = common_tick(*term.columns)
    span, most = span_of(term.columns, factors, ranges), (1 << field.bits) - 1
    divisor = span.step if span.high - span.low > most else 1
    top = (span.high - span.low) // divisor
    if top <= most:
        given = any(column.column in of for column, of in zip(term.columns, ranges, strict=True))
        note = "the least that their types have"
        if given:
            note = f"{span.low}" + (f" in steps of {divisor}" if divisor > 1 else "")
        # Values that are compared for equality are hashed, so their common divisor is no matter.
        step = 1 if term.term.is_equality else span.step // divisor
        return ExactField(
            field.name,
            terms,
            bounds_of(term, tick, divisor),
            f"the values, from {note}",
            field,
            factors,
            span.low,
            divisor,
            Spread(top, step),
            given and not seen,
        )
    if not term.term.is_equality:
        return _plan_placed_field(field, term)
    if strict and field.bits <= UNBOUNDED:
        return plan_coded_field(field, terms, strict=True)
    note = "the values near the first ones, codes of all others"
    note += _CHECKED if field.bits <= UNBOUNDED else ""
    return MixedField(field.name, terms, Bounds(0, 0), note, field, factors)


# A key field whose values all fit, as distances from the least one.


@dataclass(frozen=True)
class ExactField(FieldPlan):
    """A field of distances from the least value, in units that divide all of them.

    Parameters
    ----------
    field : KeyField
        The field.
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    minimum : int
        Origin, in ticks.
    divisor : int
        Number of ticks in a unit of the field.
    known : Spread
        Largest distance, and a divisor of all distances, in units of the field.
    is_checked : bool
        Whether values are checked; otherwise they are known to fit.
    """

    field: KeyField
    factors: tuple[int, int]
    minimum: int
    divisor: int
    known: Spread
    is_checked: bool

    @property
    def spread(self) -> Spread:
        return self.known

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        array = self.terms[0].columns[side].read(batch)
        view, factor = integer_view(array), self.factors[side]
        if self.is_checked:
            self._require(side, array, view, first)
        return FieldValues(view, factor, self.minimum, self.divisor, place_of(self.field))

    def _require(self, side: int, array: pa.Array, view: Array, first: int) -> None:
        beyond = _beyond(array, view, self._limits(side))
        if beyond is not None:
            self._refuse(side, view, first, int(np.argmax(beyond)))
        unit = self.divisor * self.known.step
        if unit != 1:
            exact = FieldValues(view, self.factors[side], self.minimum)
            odd = _valid(array, exact.block(slice(None)) % np.uint64(unit) != 0)
            if odd.any():
                self._refuse(side, view, first, int(np.argmax(odd)), "a range with the true step")

    def _limits(self, side: int) -> tuple[int, int]:
        room = ((1 << self.field.bits) - 1) * self.divisor
        return _limits(self.minimum, room, self.factors[side])

    def _refuse(
        self, side: int, view: Array, first: int, at: int, remedy: str | None = None
    ) -> NoReturn:
        value, field = int(view[at]), self.field
        needed = abs(value * self.factors[side] - self.minimum) // self.divisor
        if remedy is None:
            remedy = "the true range of the column, or " + wider(
                field, max(needed, 2 << field.bits)
            )
        raise AcceleratorLimitError.out_of_range(
            self.terms[0].columns[side].name,
            value,
            *self._limits(side),
            remedy=f"give {remedy}" if not remedy.startswith("the values") else remedy,
            row=first + at,
        )


def _limits(origin: int, room: int, factor: int) -> tuple[int, int]:
    """Return the least and the greatest value within ``room`` ticks from an origin."""
    return -(-origin // factor), (origin + room) // factor


def _beyond(array: pa.Array, view: Array, limits: tuple[int, int]) -> Bools | None:
    """Return which values are outside of limits, and not null; None if there is none."""
    values, (least, most) = _present(array), limits
    if not len(values) or (least <= int(values.min()) and int(values.max()) <= most):
        return None
    return _valid(array, outside(view, least, most))


def _present(array: pa.Array) -> Array:
    """Return the values that are not null, as a view if no value is null."""
    valid, view = validity(array), integer_view(array)
    return view if valid is None else view[valid]


def _valid(array: pa.Array, chosen: Bools) -> Bools:
    """Return which of the chosen values are not null."""
    valid = validity(array)
    return chosen if valid is None else chosen & valid


# Key fields whose origin the first values determine.


@dataclass
class _Learned(Generic[N]):
    """The origin of a field in one execution, once the first values have told it."""

    origin: N | None = None


@dataclass(frozen=True)
class _FloatingField(FieldPlan):
    """A field of integers as distances from an origin, with the first values in the middle.

    Parameters
    ----------
    field : KeyField
        The key field.
    factors : tuple of int
        Number of ticks in a unit of the left and of the right column.
    """

    field: KeyField
    factors: tuple[int, int]
    learned: _Learned[int] = state(init=False, repr=False, compare=False, default_factory=_Learned)

    @property
    @abstractmethod
    def room(self) -> int:
        """Largest distance that the field holds, in ticks."""

    def offset(self, side: int) -> int:
        """Return the number of ticks that is added to the values of a side."""
        del side
        return 0

    def settle(self, batches: Batches) -> None:
        if self.learned.origin is not None:
            return
        first: int | None = None
        extremes: list[int] = []
        for side, batch in batches:
            values = _present(self.terms[0].columns[side].read(batch))
            if len(values):
                factor, offset = self.factors[side], self.offset(side)
                extremes += [int(end) * factor + offset for end in (values.min(), values.max())]
                first = int(values[0]) * factor + offset if first is None else first
        if first is not None:
            low, high = min(extremes), max(extremes)
            fits = high - low <= self.room
            self.learned.origin = (low + high if fits else 2 * first) // 2 - self.room // 2

    def near(
        self, side: int, batch: pa.RecordBatch, step: int
    ) -> tuple[pa.Array, Array, FieldValues, tuple[int, int]]:
        """Return a column, its values, these in steps from the origin, and the field's limits.

        If the origin is not known, the values determine it. The limits are the least and the
        greatest value of the side within the field's range.
        """
        array, factor = self.terms[0].columns[side].read(batch), self.factors[side]
        self.settle([(side, batch)])
        origin, view = (self.learned.origin or 0) - self.offset(side), integer_view(array)
        near = FieldValues(view, factor, origin, step, place_of(self.field))
        return array, view, near, _limits(origin, self.room, factor)


@dataclass(frozen=True)
class MixedField(_FloatingField):
    """An equality whose field holds values near the first ones in one half, codes in the other.

    A field of few bits runs out of codes, as :class:`CodedField` does.
    """

    codes: GrowingCodes = state(init=False, repr=False, compare=False, default_factory=GrowingCodes)

    @property
    def is_exact(self) -> bool:
        return self.field.bits > UNBOUNDED

    @property
    def room(self) -> int:
        return (1 << (self.field.bits - 1)) - 1

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        array, view, near, limits = self.near(side, batch, 1)
        beyond = _beyond(array, view, limits)
        if beyond is None:
            return near
        values, at = near.block(slice(None)), np.flatnonzero(beyond)
        codes = self.codes.of_integers(pa.array(view[at]), self.factors[side])
        codes &= np.uint64(self.room)
        values[at] = codes + np.uint64((self.room + 1 - place_of(self.field)) & _MASK)
        return FieldValues(values)


# A key field of integers for a band, wherever they lie and however far apart.
#
# The field holds distances from an origin near the first values, in steps, and values beyond
# either end become that end. The accelerator then finds every matching pair and a few more;
# the check of their rows removes the others. So nobody has to know the range of a
# column.
#
# Values of the right side are moved by the middle of the band, so that equal field values stand
# for the middle. Two values within the band are therefore within it in the field too, even at its
# ends.

STEPS = 7
"""A band is at least 2 ** (STEPS - 1) steps wide, or its steps are single ticks."""

_MOST_STEP = 62
"""A step has at most this power of two, so that 64 bits hold more than one, however wide a band."""

_FARTHEST = 1 << 64
"""Beyond every value of a column."""


@dataclass(frozen=True)
class PlacedField(_FloatingField):
    """A field of integers in steps from an origin that the first values determine.

    Parameters
    ----------
    step : int
        Size of a step, in ticks.
    middle : int
        Middle of the band, in ticks.
    """

    step: int
    middle: int

    @property
    def is_exact(self) -> bool:
        return False

    @property
    def top(self) -> int:
        """Largest distance from the origin, in steps; 64 bits hold it in ticks."""
        return min(1 << self.field.bits, (1 << 64) // self.step) - 1

    @property
    def room(self) -> int:
        return (self.top + 1) * self.step - 1

    def offset(self, side: int) -> int:
        return self.middle if side else 0

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        array, view, near, (least, most) = self.near(side, batch, self.step)
        if _beyond(array, view, (least, most)) is None:
            return near
        place = place_of(self.field)
        values = near.block(slice(None)) + np.uint64(place)
        values[outside(view, least, _FARTHEST)] = 0
        values[outside(view, -_FARTHEST, most)] = self.top
        return FieldValues(values, place=place)


def _plan_placed_field(field: KeyField, term: TermTypes) -> PlacedField:
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
    note = f"the values{steps}, the first ones in the middle{_CHECKED}"
    return PlacedField(field.name, (term,), bounds, note, field, factors, step, middle)


# A key field of codes that are assigned to new values.
#
# A field of few bits runs out of codes. Then they begin anew, so that different values can have
# one code; the check of their rows removes the pairs of these.

UNBOUNDED = 31
"""Bits of codes that no dictionary in memory runs out of."""


def _codes() -> defaultdict[int, GrowingCodes]:
    return defaultdict(GrowingCodes)


@dataclass(frozen=True)
class CodedField(FieldPlan):
    """A field of codes for one or more equalities; every new value gets the next code.

    It has a dictionary per term, and one per further term to combine it with earlier ones.

    Parameters
    ----------
    field : KeyField
        The field.
    strict : bool
        Whether it is an error that codes run out. Otherwise they begin anew.
    """

    field: KeyField
    strict: bool = False
    values: defaultdict[int, GrowingCodes] = state(
        init=False, repr=False, compare=False, default_factory=_codes
    )
    pairs: defaultdict[int, GrowingCodes] = state(
        init=False, repr=False, compare=False, default_factory=_codes
    )

    @property
    def is_exact(self) -> bool:
        return self.strict or self.field.bits >= UNBOUNDED

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # no row is told from another
        codes, keep, top = None, None, (1 << self.field.bits) - 1
        for index, term in enumerate(self.terms):
            array = term.columns[side].read(batch)
            if term.left.kind.is_coded:
                own = self.values[index].of_values(array)
            else:
                own = self.values[index].of_integers(array, common_tick(*term.columns)[1][side])
            valid = validity(array)
            if valid is not None:
                keep = valid if keep is None else keep & valid
            if codes is None:
                codes = own
            else:
                # Codes are counted from zero, so each of the two fits in 32 bits.
                both = (codes << np.uint64(32)) | own
                codes = self.pairs[index].of_integers(pa.array(both), keep=keep)
        assert codes is not None
        if self.strict and len(codes) and int(codes.max()) > top:
            raise AcceleratorLimitError.out_of_range(
                self.terms[0].columns[side].name,
                f"more than {top + 1} distinct values",
                0,
                top,
                remedy=wider(self.field, 2 * top + 1),
            )
        return FieldValues(codes & np.uint64(top), place=place_of(self.field))


def plan_coded_field(
    field: KeyField, terms: tuple[TermTypes, ...], *, strict: bool = False
) -> CodedField:
    """Plan the field of one or more equalities; see :class:`CodedField` for ``strict``."""
    note = "codes of the values, shared by both sides"
    if field.bits < UNBOUNDED and not strict:
        note += _CHECKED
    return CodedField(field.name, terms, Bounds(0, 0), note, field, strict)


# Key fields of floating-point numbers whose difference is bounded.
#
# A key field holds integers, so the accelerator finds all matching pairs and a few more;
# the check of their rows removes the others.

QUANTA = 7
"""The width of a band is between 2 ** (QUANTA - 1) and 2 ** QUANTA quanta."""

FINEST = 40
"""A quantum is at least the middle of the band times 2 ** -FINEST, so that sums stay exact."""


def plan_float_field(field: KeyField, term: TermTypes) -> FieldPlan:
    """Plan the field of a term on floating-point columns that is not an equality."""
    what = f"In '{term.term}', bound"
    ends = (bound_in_ticks(end, term.left, 1, what) for end in (term.term.low, term.term.high))
    low, high = (None if end is None else float(end) for end in ends)
    if low is None or high is None:
        sign = 0 if low is None and high is None else (1 if high is None else -1)
        bounds = {0: Bounds(), 1: Bounds(0, None), -1: Bounds(None, 0)}[sign]
        shift = {0: 0.0, 1: low, -1: high}[sign]
        assert shift is not None
        note = "the first bits of the values in their order; pairs are checked exactly afterwards"
        return FloatLimitField(field.name, (term,), bounds, note, field, shift, sign)
    # Widen the bounds so that every difference that rounds to within them lies within.
    most = sys.float_info.max
    widest = (
        max(math.nextafter(low, -math.inf), -most),
        min(math.nextafter(high, math.inf), most),
    )
    middle = low / 2 + high / 2
    least = min(max(abs(high - low), abs(middle) * 2.0**-FINEST, 2.0**-1000), most)
    exponent = math.frexp(least)[1] - QUANTA
    shift = round(math.ldexp(middle, -exponent))
    bounds = Bounds(
        math.floor(math.ldexp(widest[0], -exponent)) - shift,
        math.ceil(math.ldexp(widest[1], -exponent)) - shift,
    )
    if low > high:
        bounds = Bounds(1, 0)
    note = f"the values in steps of 2**{exponent}; pairs are checked exactly afterwards"
    return FloatBandField(field.name, (term,), bounds, note, field, exponent, shift)


@dataclass(frozen=True)
class FloatBandField(FieldPlan):
    """A field of quanta from an origin near the first values; values beyond it become its ends.

    Differences are relative to the middle of the band, so that equal field values stand for the
    middle. Two values within the band are therefore within it in the field too, even at its ends.

    Parameters
    ----------
    exponent : int
        A quantum is two to the power of this number.
    shift : int
        Middle of the band, in quanta.
    """

    field: KeyField
    exponent: int
    shift: int
    learned: _Learned[float] = state(
        init=False, repr=False, compare=False, default_factory=_Learned
    )

    @property
    def is_exact(self) -> bool:
        return False

    @property
    def top(self) -> float:
        """Largest distance from the origin, in quanta, which a float holds."""
        return float((1 << min(self.field.bits, 52)) - 1)

    def settle(self, batches: Batches) -> None:
        for side, batch in batches:
            self._learn(self._quanta(side, batch))

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        quanta = self._quanta(side, batch)
        self._learn(quanta)
        distance = quanta - (self.learned.origin or 0.0)
        if side == 1:
            distance += self.shift
        distance = np.nan_to_num(distance, nan=0.0, posinf=self.top, neginf=0.0)
        values = np.clip(distance, 0.0, self.top).astype(np.int64)
        return FieldValues(values, place=place_of(self.field))

    def _quanta(self, side: int, batch: pa.RecordBatch) -> Float64s:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(_values(self.terms[0].columns[side], batch), -self.exponent)
        quanta: Float64s = np.floor(scaled)
        return quanta

    def _learn(self, quanta: Float64s) -> None:
        """Use the first finite number as the middle of the field."""
        if self.learned.origin is not None:
            return
        finite = np.isfinite(quanta)
        if finite.any():
            self.learned.origin = float(quanta[np.argmax(finite)]) - math.floor(self.top / 2)


@dataclass(frozen=True)
class FloatLimitField(FieldPlan):
    """A field of the first bits of ordered numbers; the bound is added to those of the right side.

    NaN is above all numbers, and its difference from any number is above every bound, as in Spark.

    Parameters
    ----------
    shift : float
        The bound.
    sign : int
        1 for a lower bound of the difference, -1 for an upper bound, 0 for no bound.
    """

    field: KeyField
    shift: float
    sign: int

    @property
    def is_exact(self) -> bool:
        return False

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        values = _values(self.terms[0].columns[side], batch)
        if side == 1 and self.sign:
            away = -math.inf * self.sign
            with np.errstate(over="ignore"):  # beyond the last double every number is within
                limit = np.nextafter(values + np.nextafter(self.shift, away), away)
            # The difference from NaN is above the bound; no number is below minus infinity.
            values = np.where(np.isnan(values), -np.inf, limit)
        ranks = _ranks(values) >> np.uint64(64 - self.field.bits)
        return FieldValues(ranks, place=place_of(self.field))


def _values(column: ColumnType, batch: pa.RecordBatch) -> Float64s:
    return doubles(batch.column(column.column))


def _ranks(values: Float64s) -> UInt64s:
    """Return integers in the order of ``values``; NaN is the largest, and -0.0 equals 0.0."""
    bits = canonical_bits(values)
    ordered = bits ^ ((bits >> np.int64(63)) & np.int64((1 << 63) - 1))
    ranks: UInt64s = ordered.view(np.uint64) ^ np.uint64(1 << 63)
    return ranks
