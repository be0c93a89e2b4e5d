# SPDX-License-Identifier: Apache-2.0
"""Strict order out of punctuated order."""

import numpy as np
import numpy.typing as npt

from host.runtime import Columns

__all__ = ["StrictOrder"]


class StrictOrder:
    """Holds pairs back until no earlier one can come, and hands them on sorted.

    Pairs are sorted by ``probe``, then by ``stored``. What is held belongs to the open groups of
    the accelerator, so it does not grow with the stream.
    """

    def __init__(self) -> None:
        self._held: list[Columns] = []

    def push(self, pairs: Columns, complete: int) -> Columns | None:
        """Take ``pairs``; return, sorted, those whose probe is below ``complete``.

        Parameters
        ----------
        pairs : Columns
            Newly decoded.
        complete : int
            No pair of a probe below this number follows.
        """
        if pairs.num_rows:
            self._held.append(pairs)
        if not self._held:
            return None
        held = Columns.concatenate(self._held)
        ready = held["probe"] < complete
        if not ready.any():
            self._held = [held]
            return None
        rest = np.flatnonzero(~ready)
        self._held = [held.take(rest)] if len(rest) else []
        done = held if not len(rest) else held.take(np.flatnonzero(ready))
        return done.take(_order(done["probe"], done["stored"]))

    def least(self, column: str) -> int | None:
        """Least value of ``column`` among the pairs that are held; None if there are none."""
        return min((int(pairs[column].min()) for pairs in self._held), default=None)


def _order(major: npt.NDArray[np.int64], minor: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sort by ``major``, then ``minor``: by one packed number when both fit."""
    least = int(minor.min())
    bits = (int(minor.max()) - least).bit_length()
    start = int(major.min())
    if (int(major.max()) - start).bit_length() + bits <= 63:
        packed = ((major - start) << np.int64(bits)) | (minor - least)
        return np.argsort(packed).astype(np.int64, copy=False)
    return np.lexsort((minor, major)).astype(np.int64, copy=False)
