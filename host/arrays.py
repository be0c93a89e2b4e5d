# SPDX-License-Identifier: Apache-2.0
"""The arrays of NumPy that a column becomes, by the type of their values."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Bools", "Float64s", "Int64s", "UInt64s"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
