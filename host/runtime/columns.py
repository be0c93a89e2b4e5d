# SPDX-License-Identifier: Apache-2.0
"""A batch of NumPy arrays of one length: the struct of arrays between streams."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Columns"]

Array = npt.NDArray[Any]


class Columns:
    """Named arrays of one length.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        One-dimensional arrays of the same length, at least one.
    """

    __slots__ = ("arrays", "num_rows")

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise ValueError(f"Columns must have one length, not {sorted(lengths)}")
        self.arrays = dict(arrays)
        self.num_rows: int = lengths.pop()

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def slice(self, offset: int = 0, length: int | None = None) -> "Columns":
        """Return the rows from ``offset`` as views."""
        stop = None if length is None else offset + length
        return Columns({name: array[offset:stop] for name, array in self.arrays.items()})

    def take(self, rows: npt.NDArray[np.int64]) -> "Columns":
        """Return copies of the given ``rows``."""
        return Columns({name: array[rows] for name, array in self.arrays.items()})

    def copy(self) -> "Columns":
        """Return the same rows in new arrays, which can be written into."""
        return Columns({name: array.copy() for name, array in self.arrays.items()})

    def read_only(self) -> "Columns":
        """Return the same arrays as views that raise ``ValueError`` on writing."""
        views = {name: array.view() for name, array in self.arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return Columns(views)

    @staticmethod
    def concatenate(batches: Sequence["Columns"]) -> "Columns":
        """Return all rows of ``batches`` in order; several batches are copied once.

        All batches must have columns of the same names.
        """
        if len(batches) == 1:
            return batches[0]
        return Columns(
            {
                name: np.concatenate([batch.arrays[name] for batch in batches])
                for name in batches[0].arrays
            }
        )

    def __repr__(self) -> str:
        return f"<Columns {', '.join(self.arrays)}: {self.num_rows} rows>"
