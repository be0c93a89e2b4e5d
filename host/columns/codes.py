# SPDX-License-Identifier: Apache-2.0
"""Codes for values of any kind, equal on both sides if the values are, in tables and in streams."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Array, Bools, Int64s, UInt64s
from host.columns.kinds import integer_view, validity

__all__ = [
    "Codes",
    "FieldValues",
    "GrowingCodes",
    "IntegerCodes",
    "numbered",
]

# Values of a key field that are computed only where they are needed.

_MASK = (1 << 64) - 1


class FieldValues:
    """One key field of a batch's rows: ``(value * factor - minus) // divisor - place``.

    The values stay in an Arrow buffer, and :meth:`block` computes the field of some of them.

    Parameters
    ----------
    values : array of integers
        Values of any width.
    factor, minus, divisor : int
        How a value becomes a distance from the origin.
    place : int
        How far the smallest value of the field is below zero.
    """

    __slots__ = ("_divisor", "_factor", "_minus", "_place", "values")

    def __init__(
        self, values: Array, factor: int = 1, minus: int = 0, divisor: int = 1, place: int = 0
    ) -> None:
        self.values = values
        self._factor, self._divisor = factor & _MASK, divisor
        if divisor == 1:
            minus, place = minus + place, 0
        self._minus, self._place = np.uint64(minus & _MASK), np.uint64(place & _MASK)

    def __len__(self) -> int:
        return len(self.values)

    def block(self, rows: slice) -> UInt64s:
        """Return the field of some rows, modulo 2**64, in a new array."""
        block: UInt64s = self.values[rows].astype(np.uint64)
        if self._factor != 1:
            block *= np.uint64(self._factor)
        if self._minus:
            block -= self._minus
        if self._divisor != 1:
            block //= np.uint64(self._divisor)
        if self._place:
            block -= self._place
        return block

    def of_rows(self, rows: Int64s) -> "FieldValues":
        """Return the field of only the given rows, copied."""
        taken = FieldValues(self.values[rows], self._factor, 0, self._divisor)
        taken._minus, taken._place = self._minus, self._place
        return taken


# Codes for values of any kind, equal on both sides if the values are equal.


@dataclass(frozen=True)
class Codes:
    """Codes that are equal where values are equal; nulls have code zero and need a mask.

    Parameters
    ----------
    left, right : array of uint64
        Codes, which are less than ``count``.
    count : int
        Number of codes.
    """

    left: UInt64s
    right: UInt64s
    count: int


def _dense(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Codes:
    """Number the distinct values of both columns, which have one type, from zero."""
    both = pa.chunked_array([*left.chunks, *right.chunks], type=left.type)
    encoded = both.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    indices = encoded.indices
    count = len(encoded.dictionary)
    if indices.null_count:
        indices = indices.fill_null(0)
    codes = indices.to_numpy(zero_copy_only=False).astype(np.uint64)
    return Codes(codes[: len(left)], codes[len(left) :], max(count, 1))


def numbered(fields: Sequence[tuple[Array, Array]]) -> Codes:
    """Return one code for several fields of 64 bits, less than the number of rows of both sides.

    Parameters
    ----------
    fields : sequence of (array, array)
        Values of the left and of the right rows, for each field; at least one.
    """
    codes = [_close_codes(left, right) for left, right in fields]
    if len(codes) == 1:
        return codes[0]
    one = _combined(codes)
    return _close_codes(one.left, one.right)


def _close_codes(left: Array, right: Array) -> Codes:
    """Return codes that are less than the number of values, which may mean counting the distinct.

    Values that lie close enough together are their own codes, but for the least one.
    """
    least = min((int(values.min()) for values in (left, right) if len(values)), default=0)
    most = max((int(values.max()) for values in (left, right) if len(values)), default=0)
    if most - least < len(left) + len(right):
        low = left.dtype.type(least)
        return Codes((left - low).view(np.uint64), (right - low).view(np.uint64), most - least + 1)
    return _dense(_chunked(left.view(np.uint64)), _chunked(right.view(np.uint64)))


def _combined(terms: Sequence[Codes]) -> Codes:
    """Return one code for several, equal where all of them are equal."""
    result = terms[0]
    for term in terms[1:]:
        if result.count * term.count > 1 << 64:
            result = _dense(_chunked(result.left), _chunked(result.right))
            term = _dense(_chunked(term.left), _chunked(term.right))
        unit = np.uint64(term.count)
        result = Codes(
            result.left * unit + term.left,
            result.right * unit + term.right,
            result.count * term.count,
        )
    return result


def _chunked(array: UInt64s) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(array)])


# Codes for values that become known batch by batch.


class GrowingCodes:
    """Dictionary of distinct values, numbered from zero as they first appear.

    Arrow finds the distinct values of each batch; only these are looked up in a Python dictionary.
    """

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def of_values(self, array: pa.Array) -> UInt64s:
        """Return the code of every value; a null gets the code of some other value."""
        return self._spread(array.dictionary_encode())

    def of_integers(self, values: pa.Array, factor: int = 1, keep: Bools | None = None) -> UInt64s:
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


#: A table of codes has at most so many places for each value.
_SPARSE = 8


def _covering(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the range that covers two."""
    return min(one[0], other[0]), max(one[1], other[1])


class IntegerCodes:
    """Dictionary of distinct integers of one column, numbered in the same way.

    They are looked up in a table if they lie close together, else by Arrow: neither needs a Python
    object for each distinct value of a batch.
    """

    def __init__(self) -> None:
        self._known: pa.Array | None = None
        self._range: tuple[int, int] | None = None  # least and greatest known value
        self._table = np.zeros(0, np.int64)  # codes by value from `_least` on; -1 is unknown
        self._least = 0

    def __len__(self) -> int:
        return 0 if self._known is None else len(self._known)

    def of_integers(self, values: pa.Array) -> Int64s:
        """Return the code of every value, a number or a time of one type; that of a null is 0."""
        view, valid = integer_view(values), validity(values)
        some = view if valid is None else view[valid]
        if len(some):
            ends = int(some.min()), int(some.max())
            self._range = ends = _covering(self._range or ends, ends)
            room = _SPARSE * (len(some) + len(self))
            if ends[1] - ends[0] < room and ends[0] >= -(1 << 63) and ends[1] < 1 << 63:
                found = self._of_table(some, ends)
                if valid is None:
                    return found
                codes = np.zeros(len(view), np.int64)
                codes[valid] = found
                return codes
            self._table = np.zeros(0, np.int64)
        return self._of_arrow(view, valid)

    def _of_table(self, values: Array, ends: tuple[int, int]) -> Int64s:
        """Return the codes of values between two ends, by a table of all numbers between them."""
        if not (self._least <= ends[0] and ends[1] < self._least + len(self._table)):
            self._least = ends[0]
            self._table = np.full(ends[1] - ends[0] + 1, -1, np.int64)
            if self._known is not None:
                at = self._known.to_numpy().astype(np.int64) - self._least
                self._table[at] = np.arange(len(at))
        places = values.astype(np.int64) - self._least
        codes = self._table[places]
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            fresh = places[unknown]
            self._table[fresh[::-1]] = -1 - unknown[::-1]  # of equal values, the first one stays
            fresh = fresh[self._table[fresh] == -1 - unknown]
            self._table[fresh] = np.arange(len(fresh)) + len(self)
            added = pa.array((fresh + self._least).astype(values.dtype))
            known = added.slice(0, 0) if self._known is None else self._known
            self._known = pa.concat_arrays([known, added])
            codes = self._table[places]
        return codes

    def _of_arrow(self, view: Array, valid: Bools | None) -> Int64s:
        plain = pa.array(view) if valid is None else pa.array(view, mask=~valid)
        known = plain.slice(0, 0) if self._known is None else self._known
        codes = pc.index_in(plain, value_set=known, skip_nulls=True)
        if codes.null_count > plain.null_count:
            fresh = pc.unique(plain.filter(codes.is_null())).drop_null()
            known = pa.concat_arrays([known, fresh])
            codes = pc.index_in(plain, value_set=known, skip_nulls=True)
        self._known = known
        found: Int64s = codes.fill_null(0).to_numpy().astype(np.int64)
        return found
