# SPDX-License-Identifier: Apache-2.0
"""Runs of equal rows, among rows that are sorted."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["run_begins"]


def run_begins(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Return which rows differ from the one before in any of their columns; the first one does."""
    changes = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    begins: npt.NDArray[np.bool_] = np.concatenate([[True], changes])[: len(columns[0])]
    return begins
