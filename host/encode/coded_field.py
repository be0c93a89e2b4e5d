# SPDX-License-Identifier: Apache-2.0
"""A key field of codes that are assigned to the new values of a stream."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.dictionary import GrowingCodes
from host.encode.fields import FieldEncoder, FieldPlan, TermTypes, place_of, wider
from host.encode.kinds import validity
from host.encode.scale import common_tick
from host.encode.values import FieldValues
from host.errors import KeyRangeError
from host.manifest import KeyField

__all__ = ["CodedStreamField", "refuse_codes"]


@dataclass(frozen=True)
class CodedStreamField(FieldPlan):
    """A field of codes for one or more equalities; every new value gets the next code."""

    field: KeyField

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
        codes, count, keep = None, 0, None
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
                codes, count = own, len(known)
            else:
                # Codes are counted from zero, so each of the two fits in 32 bits.
                both = (codes << np.uint64(32)) | own
                pairs = self._pairs[index - 1]
                codes = pairs.of_integers(pa.array(both), keep=keep)
                count = len(pairs)
        assert codes is not None
        if count - 1 > self._top:
            fits = codes <= self._top
            refuse_codes(self._plan.terms[0], side, self._plan.field, count, first, fits)
        return FieldValues(codes, place=self._place)


def refuse_codes(
    term: TermTypes,
    side: int,
    field: KeyField,
    count: int,
    first: int,
    fits: npt.NDArray[np.bool_],
) -> NoReturn:
    """Raise an error that names the first value of a batch whose code does not fit the field."""
    raise KeyRangeError(
        term.columns[side].name,
        f"{count} distinct values (with those of {term.columns[1 - side].name!r})",
        0,
        (1 << field.bits) - 1,
        remedy=wider(field, count - 1),
        row=first + int(np.argmin(fits)),
    )
