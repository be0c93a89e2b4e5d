# SPDX-License-Identifier: Apache-2.0
"""The arrays of NumPy that a column becomes, by the type of their values, and their orders."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Bools", "Float64s", "Int64s", "UInt64s", "inverse"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


def inverse(order: Array) -> Int64s:
    """Return the place of each number in an order of the numbers from 0 on."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
