# SPDX-License-Identifier: Apache-2.0
"""The exact places at which segments begin among the tuples that are staged."""

from collections.abc import Iterator

from host.query.segments import Segment, SegmentSchedule
from host.reference.side import Side
from host.reference.window import CountWindow, Window
from host.streams.intake import Arrived

__all__ = ["SegmentChanges"]


class SegmentChanges:
    """Cuts the tuples of an execution where segments begin.

    A segment begins right before a tuple; what comes after the last tuple is never begun. The
    ingress keeps the lists of three segments. So a segment waits, with those behind it, while a
    count-based window holds tuples of the third segment before it: it begins with the first tuple
    before which both windows have lost them. No pair depends on when it begins.

    Parameters
    ----------
    schedule : SegmentSchedule
        What decides the segments.
    window : CountWindow or TimeWindow
        Window of either side.

    Attributes
    ----------
    begun : list of Segment
        The segments that have begun, with the places where they have.
    """

    def __init__(self, schedule: SegmentSchedule, window: Window) -> None:
        self._schedule = schedule
        self._size = int(window.size) if isinstance(window, CountWindow) else None
        self._due: Segment | None = None
        self._staged = 0
        self._counts = dict.fromkeys(Side, 0)
        # Tuples of each side before the last two segments.
        self._before = dict.fromkeys(Side, (0, 0))
        self.begun: list[Segment] = []

    def cut(self, arrived: Arrived) -> Iterator[Arrived | Segment]:
        """Yield the tuples, and between them each segment that begins there."""
        while (place := self._place(arrived)) is not None:
            assert self._due is not None
            part, arrived = arrived.split(place)
            if part.count:
                self._count(part)
                yield part
            segment, self._due = Segment(self._staged, self._due.cores), None
            for side, count in self._counts.items():
                self._before[side] = (self._before[side][1], count)
            self.begun.append(segment)
            yield segment
        self._count(arrived)
        yield arrived

    def _count(self, arrived: Arrived) -> None:
        self._staged += arrived.count
        for side, tuples in arrived.sides.items():
            self._counts[side] += len(tuples.places)

    def _place(self, arrived: Arrived) -> int | None:
        """Return before which of some tuples a segment begins; None if before none of them."""
        if self._due is None:
            self._due = self._schedule.next(self._staged)
        if self._due is None:
            return None
        place = max(0, self._due.after - self._staged)
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
        previous, _ = self._before[side]
        if self._size is None or not previous:
            return 0
        return previous + self._size - self._counts[side]
