# SPDX-License-Identifier: Apache-2.0
"""When the ingress has a free list of cores, which every segment needs."""

from host.cores.failed_cores import NewTurns
from host.hardware.storage_segments import SEGMENTS
from host.reference.side import Side
from host.reference.window import CountWindow, Window
from host.tuples.intake import Arrived

__all__ = ["FreeLists"]


class FreeLists:
    """Counts the tuples of both sides, and tells before which of them a segment may begin.

    The ingress keeps the lists of three segments. A segment can therefore begin only once no
    count-based window holds tuples of the third segment before it. If fewer lists are used, the
    ingress has one for a segment that cannot wait.

    Parameters
    ----------
    window : CountWindow or TimeWindow
        Window of either side.
    lists : int
        Lists that are used.

    Attributes
    ----------
    staged : int
        Tuples of both sides so far.
    counts : dict of Side to int
        Tuples of each side so far.
    """

    def __init__(self, window: Window, lists: int = SEGMENTS) -> None:
        self._size = int(window.size) if isinstance(window, CountWindow) else None
        self.staged = 0
        self.counts = dict.fromkeys(Side, 0)
        # Tuples of each side before the last segments, of which all lists but one are.
        self._none = (0,) * (lists - 1)
        self._before = dict.fromkeys(Side, self._none)

    def count(self, arrived: Arrived) -> None:
        """Count tuples, which come next."""
        self.staged += arrived.count
        for side, tuples in arrived.sides.items():
            self.counts[side] += len(tuples.places)

    def begin(self) -> None:
        """Begin a segment with the next tuple."""
        for side, count in self.counts.items():
            self._before[side] = (*self._before[side][1:], count)

    def go_on(self, turns: NewTurns) -> None:
        """Begin the segment that follows a failure.

        If the accelerator was cleared, all lists are free, and the tuples of the windows are in
        that segment.
        """
        if turns.first is None:
            self.begin()
        else:
            self._before = dict.fromkeys(Side, self._none)

    def place(self, arrived: Arrived) -> int | None:
        """Return the first of the next tuples before which a segment may begin; None if none."""
        place = 0
        for side in Side:
            needed = self._needed(side)
            if needed > 0:
                tuples = arrived.sides.get(side)
                if tuples is None or needed > len(tuples.places):
                    return None
                place = max(place, int(tuples.places[needed - 1]) + 1)
        return place if place < arrived.count else None

    def _needed(self, side: Side) -> int:
        """Return how many tuples of a side must come before the next segment may begin."""
        previous = self._before[side][0]
        if self._size is None or not previous:
            return 0
        return previous + self._size - self.counts[side]
