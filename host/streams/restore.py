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

    Parameters
    ----------
    with_probe : bool
        Whether pairs are handed on with their column ``probe``.
    """

    def __init__(self, *, with_probe: bool = False) -> None:
        self._held: list[Columns] = []
        self._dropped = ("stored",) if with_probe else ("probe", "stored")

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
        probe, stored = held["probe"], held["stored"]
        ready = probe < complete
        count = int(np.count_nonzero(ready))
        if not count:
            self._held = [held]
            return None
        if count == held.num_rows:
            self._held, order = [], _order(probe, stored)
        else:
            self._held = [held.take(np.flatnonzero(~ready))]
            at = np.flatnonzero(ready)
            order = at[_order(probe[at], stored[at])]
        rest = [name for name in held.arrays if name not in self._dropped]
        return Columns({name: held[name][order] for name in rest})

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
        # The groups come one after the other, which a stable sort makes use of, as it merges runs.
        return np.argsort(packed, kind="stable")
    return np.lexsort((minor, major))
