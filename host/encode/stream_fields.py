# SPDX-License-Identifier: Apache-2.0
"""Plan the key fields of streams from the types of columns and from given ranges."""

from host.encode.checked_fields import CheckedField, MixedField
from host.encode.coded_field import UNBOUNDED, plan_coded_field
from host.encode.fields import (
    FieldPlan,
    TermTypes,
    bounds_of,
    place_of,
    require_coded_equality,
)
from host.encode.float_field import plan_float_field
from host.encode.placed_field import plan_placed_field
from host.encode.ranges import Ranges, span_of
from host.encode.scale import Scale, common_tick
from host.encode.table_fields import ScaledField
from host.manifest import KeyField

__all__ = ["plan_stream_field"]


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
