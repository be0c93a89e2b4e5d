# SPDX-License-Identifier: Apache-2.0
"""Codes for values of any kind, equal on both sides if the values are equal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.kinds import Column

__all__ = ["Codes", "codes_of_columns", "codes_of_distances", "combined", "dense"]

UInt64s = npt.NDArray[np.uint64]


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


def dense(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Codes:
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


def codes_of_columns(left: Column, right: Column) -> Codes:
    """Number the values of two columns of a coded kind, or of two integer columns."""
    if left.kind.is_coded:
        return dense(left.data, right.data)
    arrays = [column.integers for column in (left, right)]
    low = dense(*(_chunked(array.view(np.uint64)) for array in arrays))
    # Two values are equal if and only if their lower 64 bits and their signs are equal.
    signs = [(array < 0).astype(np.uint64) for array in arrays]
    return combined([low, Codes(signs[0], signs[1], 2)])


def codes_of_distances(left: UInt64s, right: UInt64s) -> Codes:
    """Number the values of two integer or temporal columns, given as distances."""
    return dense(_chunked(left), _chunked(right))


def combined(terms: Sequence[Codes]) -> Codes:
    """Return one code for several, equal where all of them are equal."""
    result = terms[0]
    for term in terms[1:]:
        if result.count * term.count > 1 << 64:
            result = dense(_chunked(result.left), _chunked(result.right))
            term = dense(_chunked(term.left), _chunked(term.right))
        unit = np.uint64(term.count)
        result = Codes(
            result.left * unit + term.left,
            result.right * unit + term.right,
            result.count * term.count,
        )
    return result


def _chunked(array: UInt64s) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(array)])
