# SPDX-License-Identifier: Apache-2.0
"""The exact places at which segments begin among the tuples that are staged."""

from collections.abc import Iterator

from host.cores.failed_cores import NewTurns
from host.cores.free_lists import FreeLists
from host.query.segments import Segment, SegmentSchedule
from host.reference.window import Window
from host.tuples.intake import Arrived

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
        self._lists = FreeLists(window)
        self._due: Segment | None = None
        self.begun: list[Segment] = []

    def cut(self, arrived: Arrived) -> Iterator[Arrived | Segment]:
        """Yield the tuples, and between them each segment that begins there."""
        while (place := self._place(arrived)) is not None:
            assert self._due is not None
            part, arrived = arrived.split(place)
            if part.count:
                self._lists.count(part)
                yield part
            segment, self._due = Segment(self._lists.staged, self._due.cores), None
            self._lists.begin()
            self.begun.append(segment)
            yield segment
        self._lists.count(arrived)
        yield arrived

    def go_on(self, turns: NewTurns) -> None:
        """Take note of the segment that follows a failure, behind all tuples so far."""
        self._lists.go_on(turns)

    def _place(self, arrived: Arrived) -> int | None:
        """Return before which of some tuples a segment begins; None if before none of them."""
        if self._due is None:
            self._due = self._schedule.next(self._lists.staged)
        if self._due is None:
            return None
        free = self._lists.place(arrived)
        if free is None:
            return None
        place = max(free, self._due.after - self._lists.staged)
        return place if place < arrived.count else None
