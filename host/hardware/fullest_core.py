# SPDX-License-Identifier: Apache-2.0
"""How many tuples of a count-based window a core will hold at most once other cores store."""

from collections.abc import Sequence

import numpy as np

from host.hardware.storage import StorageRule
from host.hardware.storage_segments import SEGMENTS, StorageSegments

__all__ = ["FullestCore"]


class FullestCore:
    """Follows one side's count-based window through segments, and looks ahead.

    Parameters
    ----------
    rule : StorageRule
        Shape of the storage.
    size : int
        Tuples in the window.
    room : int
        Tuples that a core holds.
    """

    def __init__(self, rule: StorageRule, size: int, room: int) -> None:
        self._segments = StorageSegments(rule)
        self._size, self._room = size, room

    def begin(self, count: int, live: Sequence[int]) -> None:
        """Begin a segment of the cores of ``live`` after ``count`` tuples of the side."""
        self._segments.forget(max(0, count - self._size))
        self._segments.begin(count, live)

    def needed(self, count: int) -> int:
        """Return how many tuples the fullest core will hold, if the segment never ends.

        Parameters
        ----------
        count : int
            Tuples of the side before the segment in force. Tuple after tuple of it, and until the
            window has only its tuples, the window is weighed in each core.

        Returns
        -------
        int
            Exact if it is more than the cores hold, and none has overflowed before; otherwise it
            may be an upper bound.
        """
        live = self._segments.live
        fewest = min(self._segments.fewest, len(live))
        bound = -(-self._size // fewest) + SEGMENTS - 1
        if bound <= self._room:
            return bound
        ends = count + 1 + np.arange(self._size)
        begins = np.maximum(ends - self._size, 0)
        return max(
            int(self._segments.held(begins, ends, np.full_like(ends, core)).max()) for core in live
        )
