# SPDX-License-Identifier: Apache-2.0
"""A key field of codes that are assigned to the new values of a stream.

A field of few bits runs out of codes. Then they begin anew, so that different values can have one
code; :mod:`host.encode.recheck` removes the pairs of these.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.encode.dictionary import GrowingCodes
from host.encode.fields import FieldEncoder, FieldPlan, TermTypes, place_of
from host.encode.kinds import validity
from host.encode.scale import common_tick
from host.encode.values import FieldValues
from host.manifest import KeyField
from host.reference.predicate import Bounds

__all__ = ["UNBOUNDED", "CodedStreamField", "plan_coded_field"]

UNBOUNDED = 31
"""Bits of codes that no dictionary in memory runs out of."""


@dataclass(frozen=True)
class CodedStreamField(FieldPlan):
    """A field of codes for one or more equalities; every new value gets the next code."""

    field: KeyField

    @property
    def is_exact(self) -> bool:
        return self.field.bits >= UNBOUNDED

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
        return FieldValues(codes & np.uint64(self._top), place=self._place)


def plan_coded_field(field: KeyField, terms: tuple[TermTypes, ...]) -> CodedStreamField:
    """Plan the field of one or more equalities of values that become known batch by batch."""
    note = "codes of the values, shared by both sides"
    if field.bits < UNBOUNDED:
        note += "; pairs are checked exactly afterwards"
    return CodedStreamField(field.name, terms, Bounds(0, 0), note, field)
