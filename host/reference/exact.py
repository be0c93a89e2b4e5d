# SPDX-License-Identifier: Apache-2.0
"""Exact arithmetic on 64-bit columns.

Differences of 64-bit values need 65 bits, which NumPy does not support. Therefore the kit compares
*places*: unsigned numbers in the same order as the values, which can be shifted by a constant with
saturation.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["Float64s", "UInt64s", "as_integers", "places", "shifted"]

Float64s = npt.NDArray[np.float64]
UInt64s = npt.NDArray[np.uint64]

_TOP = (1 << 64) - 1
_SIGN = np.uint64(1 << 63)


def as_integers(values: npt.ArrayLike) -> npt.NDArray[np.int64] | UInt64s:
    """Return ``values`` as a contiguous array of int64, or of uint64 if they are unsigned.

    Raises
    ------
    TypeError
        If the values are not integers.
    """
    array = np.asarray(values)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise TypeError(f"Values must be integers, not {array.dtype}")
    if array.dtype.kind == "u":
        return np.ascontiguousarray(array, dtype=np.uint64)
    return np.ascontiguousarray(array, dtype=np.int64)


def places(values: npt.ArrayLike) -> UInt64s:
    """Return unsigned numbers in the same order, and at the same distances, as ``values``."""
    array = as_integers(values)
    if array.dtype == np.uint64:
        return array.view(np.uint64)
    return array.view(np.uint64) ^ _SIGN


def shifted(at: UInt64s, by: int) -> tuple[UInt64s, npt.NDArray[np.bool_]]:
    """Add ``by``, any integer, to every place.

    Returns
    -------
    places : array of uint64
        The sums, saturated at both ends.
    beyond : array of bool
        Whether the true sum lies outside 64 bits.
    """
    step = np.uint64(min(abs(by), _TOP))
    if by >= 0:
        beyond = at > np.uint64(_TOP) - step
        moved = np.where(beyond, np.uint64(_TOP), at + step)
    else:
        beyond = at < step
        moved = np.where(beyond, np.uint64(0), at - step)
    if abs(by) > _TOP:
        beyond = np.ones_like(beyond)
        moved = np.full_like(at, _TOP if by > 0 else 0)
    return moved, beyond
