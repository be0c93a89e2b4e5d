# SPDX-License-Identifier: Apache-2.0
"""Strict order out of punctuated order."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from host.runtime import Columns

__all__ = ["StrictOrder"]

Int64s = npt.NDArray[np.int64]


class StrictOrder:
    """Holds pairs back until no earlier one can come, and hands them on sorted.

    Pairs are sorted by ``probe``, then by ``stored``. What is held belongs to the open groups of
    the accelerator, so it does not grow with the stream.
    """

    def __init__(self) -> None:
        self._held: list[Columns] = []
        self._by_probe = True  # whether it was enough so far to sort by probe

    def push(self, parts: Sequence[Columns], complete: int) -> Columns | None:
        """Take pairs; return, sorted, those whose probe is below ``complete``.

        Parameters
        ----------
        parts : sequence of Columns
            Newly decoded.
        complete : int
            No pair of a probe below this number follows.
        """
        self._held += [pairs for pairs in parts if pairs.num_rows]
        if not self._held:
            return None
        held = Columns.concatenate(self._held)
        ready = held["probe"] < complete
        count = int(np.count_nonzero(ready))
        if not count:
            self._held = [held]
            return None
        if count == held.num_rows:
            self._held, done = [], held
        else:
            self._held = [held.take(np.flatnonzero(~ready))]
            done = held.take(np.flatnonzero(ready))
        return done.take(self._order(done["probe"], done["stored"]))

    def _order(self, probe: Int64s, stored: Int64s) -> Int64s:
        """Sort by ``probe``, then ``stored``."""
        start = int(probe.min())
        if self._by_probe and int(probe.max()) - start < 1 << 16:
            # Groups of one core come with `stored` ascending, so a radix sort is all it takes.
            order = np.argsort((probe - start).astype(np.uint16), kind="stable")
            major, minor = probe[order], stored[order]
            if ((major[1:] > major[:-1]) | (minor[1:] > minor[:-1])).all():
                return order
            self._by_probe = False
        return _order(probe, stored)

    def least(self, column: str) -> int | None:
        """Least value of ``column`` among the pairs that are held; None if there are none."""
        return min((int(pairs[column].min()) for pairs in self._held), default=None)


def _order(major: Int64s, minor: Int64s) -> Int64s:
    """Sort by ``major``, then ``minor``: by one packed number when both fit."""
    least = int(minor.min())
    bits = (int(minor.max()) - least).bit_length()
    start = int(major.min())
    if (int(major.max()) - start).bit_length() + bits <= 63:
        packed = ((major - start) << np.int64(bits)) | (minor - least)
        return np.argsort(packed).astype(np.int64, copy=False)
    return np.lexsort((minor, major)).astype(np.int64, copy=False)
