# SPDX-License-Identifier: Apache-2.0
"""Restore strict order from punctuated order."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from host.runtime import Columns

__all__ = ["StrictOrder"]

Int64s = npt.NDArray[np.int64]


class StrictOrder:
    """Holds pairs back until no earlier one can follow, and passes them on sorted.

    Pairs are sorted by ``probe``, then by ``stored``. Only pairs of the accelerator's open groups
    are held, so their number does not grow with the stream.

    Parameters
    ----------
    with_probe : bool
        Whether pairs keep their column ``probe`` when they are passed on.
    in_rounds : bool
        Whether the pairs of a probe come in the order in which they are wanted.
    """

    def __init__(self, *, with_probe: bool = False, in_rounds: bool = False) -> None:
        self._held: list[Columns] = []
        self._in_rounds = in_rounds
        self._dropped = {"stored", "origin"} | (set() if with_probe else {"probe"})

    def push(self, parts: Sequence[Columns], complete: int) -> Columns | None:
        """Take pairs; return, sorted, those whose probe is below ``complete``.

        Parameters
        ----------
        parts : sequence of Columns
            Newly decoded pairs.
        complete : int
            No pair with a probe below this number follows.
        """
        self._held += [pairs for pairs in parts if pairs.num_rows]
        if not self._held:
            return None
        held = Columns.concatenate(self._held)
        probe = held["probe"]
        stored = np.zeros_like(probe) if self._in_rounds else held["stored"]
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

    def sift(self, keep: Callable[[Columns], Columns]) -> None:
        """Leave out held pairs; ``keep`` returns those of its argument that stay."""
        self._held = [keep(pairs) for pairs in self._held]
        self._held = [pairs for pairs in self._held if pairs.num_rows]

    def least(self, column: str) -> int | None:
        """Return the smallest value of ``column`` among the held pairs; None if there are none."""
        return min((int(pairs[column].min()) for pairs in self._held), default=None)


def _order(major: Int64s, minor: Int64s) -> Int64s:
    """Return the order by ``major``, then ``minor``; both are packed in one number if they fit."""
    least = int(minor.min())
    bits = (int(minor.max()) - least).bit_length()
    start = int(major.min())
    if (int(major.max()) - start).bit_length() + bits <= 63:
        packed = ((major - start) << np.int64(bits)) | (minor - least)
        # The groups follow one another, which makes a stable sort fast because it merges sorted
        # runs.
        return np.argsort(packed, kind="stable")
    return np.lexsort((minor, major))
