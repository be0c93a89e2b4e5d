# SPDX-License-Identifier: Apache-2.0
"""Key fields of floating-point numbers whose difference is bounded."""

from collections.abc import Sequence
from dataclasses import dataclass
import math
import sys

import numpy as np
import pyarrow as pa

from host.columns.codes import FieldValues
from host.columns.fields import FieldEncoder, FieldPlan, TermTypes, place_of
from host.columns.kinds import ColumnType, canonical_bits, doubles
from host.columns.scale import bound_in_ticks
from host.protocol.manifest import KeyField
from host.reference.arrivals import Float64s, UInt64s
from host.reference.predicate import Bounds

__all__ = [
    "FloatBandField",
    "FloatLimitField",
    "plan_float_field",
]

# Key fields of floating-point numbers whose difference is bounded.
#
# A key field holds integers, so the accelerator finds all matching pairs and a few more;
# the check of their rows removes the others.

Batches = Sequence[tuple[int, pa.RecordBatch]]

QUANTA = 7
"""The width of a band is between 2 ** (QUANTA - 1) and 2 ** QUANTA quanta."""

FINEST = 40
"""A quantum is at least the middle of the band times 2 ** -FINEST, so that sums stay exact."""


def plan_float_field(field: KeyField, term: TermTypes) -> FieldPlan:
    """Plan the field of a term on floating-point columns that is not an equality."""
    what = f"In '{term.term}', bound"
    low, high = (
        None if bound is None else float(bound)
        for bound in (
            bound_in_ticks(bound, term.left, 1, what) for bound in (term.term.low, term.term.high)
        )
    )
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

    @property
    def is_exact(self) -> bool:
        return False

    def start(self) -> FieldEncoder:
        return _BandEncoder(self)


class _BandEncoder(FieldEncoder):
    def __init__(self, plan: FloatBandField) -> None:
        self._plan = plan
        self._columns = plan.terms[0].columns
        self._top = float((1 << min(plan.field.bits, 52)) - 1)
        self._place = place_of(plan.field)
        self._origin: float | None = None

    def settle(self, batches: Batches) -> None:
        for side, batch in batches:
            self._learn(self._quanta(side, batch))

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        del first  # every value can be encoded
        quanta = self._quanta(side, batch)
        self._learn(quanta)
        distance = quanta - (0.0 if self._origin is None else self._origin)
        if side == 1:
            distance += self._plan.shift
        distance = np.nan_to_num(distance, nan=0.0, posinf=self._top, neginf=0.0)
        return FieldValues(np.clip(distance, 0.0, self._top).astype(np.int64), place=self._place)

    def _quanta(self, side: int, batch: pa.RecordBatch) -> Float64s:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(_values(self._columns[side], batch), -self._plan.exponent)
        quanta: Float64s = np.floor(scaled)
        return quanta

    def _learn(self, quanta: Float64s) -> None:
        """Use the first finite number as the middle of the field."""
        if self._origin is not None:
            return
        finite = np.isfinite(quanta)
        if finite.any():
            self._origin = float(quanta[np.argmax(finite)]) - math.floor(self._top / 2)


@dataclass(frozen=True)
class FloatLimitField(FieldPlan, FieldEncoder):
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

    def start(self) -> FieldEncoder:
        return self

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
