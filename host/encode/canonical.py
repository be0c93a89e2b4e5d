# SPDX-License-Identifier: Apache-2.0
"""Convert arrays whose values are not compared bit by bit into a form that is."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.errors import KeyRangeError
from host.reference.exact import Float64s

__all__ = [
    "DECIMAL_DIGITS",
    "canonical_binary",
    "canonical_bits",
    "canonical_float",
    "doubles",
    "unscaled",
]

Int64s = npt.NDArray[np.int64]

#: Decimals are measured in units of ten to the power of minus this number.
DECIMAL_DIGITS = 38


def canonical_binary(array: pa.Array) -> pa.Array:
    """Return binary values of any layout as ``large_binary``."""
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return array.cast(pa.large_binary())


def canonical_float(array: pa.Array) -> pa.Array:
    """Return floating-point numbers as int64 that are equal where SQL treats the numbers as equal.

    All NaN are equal to each other, and -0.0 is equal to 0.0. Nulls are kept.
    """
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(canonical_bits(doubles(array)), mask=None if valid.all() else ~valid)


def doubles(array: pa.Array) -> Float64s:
    """Return floating-point numbers as doubles; nulls become NaN."""
    values: Float64s = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def canonical_bits(values: Float64s) -> Int64s:
    """Return the bits of doubles, with the same bits for all NaN, and with -0.0 as 0.0."""
    canonical = values + 0.0  # turns -0.0 into 0.0
    canonical[np.isnan(canonical)] = np.nan
    bits: Int64s = canonical.view(np.int64)
    return bits


def unscaled(array: pa.Array, name: str) -> pa.Array:
    """Return decimals as int64, in units of their last digit; nulls are kept.

    Raises
    ------
    KeyRangeError
        If a decimal in these units does not fit in 64 bits.
    """
    kind = array.type
    wide = array.cast(pa.decimal128(DECIMAL_DIGITS, kind.scale))
    valid = wide.is_valid().to_numpy(zero_copy_only=False)
    data = wide.buffers()[1]
    if data is None or not len(wide):
        return pa.array(np.zeros(len(array), np.int64), mask=None if valid.all() else ~valid)
    words = np.frombuffer(data, np.int64, 2 * (len(wide) + wide.offset))[2 * wide.offset :]
    low, high = words[0::2], words[1::2]
    beyond = valid & (high != low >> np.int64(63))
    if beyond.any():
        value = array[int(np.argmax(beyond))].as_py()
        limit = (1 << 63) - 1
        raise KeyRangeError(
            name,
            f"{value} (in units of 1e-{kind.scale}, of which 64 bits must hold the number)",
            -limit,
            limit,
            remedy="cast the column to fewer digits",
        )
    return pa.array(low, mask=None if valid.all() else ~valid)
