# SPDX-License-Identifier: Apache-2.0
"""Codes for values that become known batch by batch."""

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.encode.kinds import integer_view, validity

__all__ = ["GrowingCodes", "IntegerCodes"]

UInt64s = npt.NDArray[np.uint64]


class GrowingCodes:
    """Numbers distinct values from zero, in the order of their first appearance.

    Arrow finds the distinct values of each batch; only these are looked up in a Python dictionary.
    """

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def of_values(self, array: pa.Array) -> UInt64s:
        """Return the code of every value; a null gets the code of some other value."""
        return self._spread(array.dictionary_encode())

    def of_integers(
        self, values: pa.Array, factor: int = 1, keep: npt.NDArray[np.bool_] | None = None
    ) -> UInt64s:
        """Return the code of every value, a number or a time, multiplied by ``factor``.

        Only values that ``keep`` selects and that are not null get new codes.
        """
        view = integer_view(values)
        known = validity(values)
        if keep is not None:
            known = keep if known is None else known & keep
        plain = pa.array(view) if known is None else pa.array(view, mask=~known)
        return self._spread(plain.dictionary_encode(), factor)

    def _spread(self, encoded: pa.DictionaryArray, factor: int = 1) -> UInt64s:
        uniques = encoded.dictionary.to_pylist()
        if not uniques:
            return np.zeros(len(encoded), np.uint64)
        codes = self._numbers(uniques if factor == 1 else (value * factor for value in uniques))
        indices = encoded.indices
        if indices.null_count:
            indices = indices.fill_null(0)
        return codes[indices.to_numpy(zero_copy_only=False)]

    def _numbers(self, uniques: Iterable[Hashable]) -> UInt64s:
        known = self._codes
        return np.array([known.setdefault(value, len(known)) for value in uniques], np.uint64)


class IntegerCodes:
    """Numbers distinct integers of one column, in the same way.

    All of them are looked up by Arrow, which needs no Python object for each distinct value of a
    batch.
    """

    def __init__(self) -> None:
        self._known: pa.Array | None = None

    def __len__(self) -> int:
        return 0 if self._known is None else len(self._known)

    def of_integers(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Return the code of every value, a number or a time of one type; that of a null is 0."""
        view, valid = integer_view(values), validity(values)
        plain = pa.array(view) if valid is None else pa.array(view, mask=~valid)
        known = plain.slice(0, 0) if self._known is None else self._known
        codes = pc.index_in(plain, value_set=known, skip_nulls=True)
        if codes.null_count > plain.null_count:
            fresh = pc.unique(plain.filter(codes.is_null())).drop_null()
            known = pa.concat_arrays([known, fresh])
            codes = pc.index_in(plain, value_set=known, skip_nulls=True)
        self._known = known
        found: npt.NDArray[np.int64] = codes.fill_null(0).to_numpy().astype(np.int64)
        return found
