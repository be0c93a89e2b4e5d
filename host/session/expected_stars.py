# SPDX-License-Identifier: Apache-2.0
"""Where the stars of an accelerator's answer will stand, told from the tuples that it is sent."""

from collections import deque
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from host.protocol.manifest import Manifest
from host.protocol.punctuation import Closings, Grouper
from host.query.ordering import Ordering
from host.reference.arrivals import Side

__all__ = [
    "ExpectedStars",
]

Int64s = npt.NDArray[np.int64]


class ExpectedStars:
    """Keeps, for each side, before which probes the stars stand that have not been seen.

    The precision may change while tuples that are staged wait to be sent. If it does, the groups of
    a tuple are not known before its place relative to the change is. Then tuples are only noted
    when they are staged, and their groups are closed when :meth:`send` says that they have their
    place.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    ordering : Ordering
        Precision that the accelerator is set to.
    changes : bool
        Whether the precision may change.

    Attributes
    ----------
    ends : mapping of Side to array of int64
        Probes before the last star that was seen, then before each star that is still expected.
    """

    def __init__(self, manifest: Manifest, ordering: Ordering, *, changes: bool = False) -> None:
        self._manifest = manifest
        self._live = manifest.storage.cores  # number of cores that take turns to store
        self._grouper = self._new_grouper(ordering)
        self.ends = {side: np.zeros(1, np.int64) for side in Side}
        self._unstarred = dict.fromkeys(Side, 0)  # probes in closed groups without a star yet
        self._changes = changes
        self._waiting: deque[npt.NDArray[np.uint8]] = deque()  # sides of tuples without a place
        self._segments: deque[tuple[int, int]] = deque()  # tuples before, live cores
        self._sent, self._staged = 0, 0
        self._ended = False

    def stage(self, places: Mapping[Side, Int64s]) -> None:
        """Take the next tuples, given by the places of each side's among them."""
        if not self._changes:
            self._close(self._grouper.feed_places(places))
            return
        sides = np.empty(sum(map(len, places.values())), np.uint8)
        for side, mine in places.items():
            sides[mine] = side
        self._waiting.append(sides)
        self._staged += len(sides)

    def send(self, count: int) -> None:
        """Close the groups of the first ``count`` tuples; of those that had been sent, again not.

        No change of the precision comes before any of them from now on.
        """
        self._begin_segments()
        while self._sent < count:
            sides = self._waiting.popleft()
            now = (min(count, self._segments[0][0]) if self._segments else count) - self._sent
            if now < len(sides):
                self._waiting.appendleft(sides[now:])
                sides = sides[:now]
            self._close(self._grouper.feed(sides))
            self._sent += len(sides)
            self._begin_segments()
        if self._ended and self._sent == self._staged:
            self._close(self._grouper.finish())

    def change(self, ordering: Ordering) -> None:
        """Announce that the precision changes behind all tuples that were sent."""
        self._close(self._grouper.finish())
        self._grouper = self._new_grouper(ordering)

    def begin_segment(self, live: int) -> None:
        """Announce that ``live`` cores take turns to store from the next tuple on.

        SEGMENT ends the open groups. A change of the precision at the same place ends the same
        groups, so it does not matter which of the two words comes first.
        """
        self._segments.append((self._staged, live))
        self._begin_segments()

    def _begin_segments(self) -> None:
        """Begin the segments before which all tuples have their place."""
        while self._segments and self._segments[0][0] == self._sent:
            _, self._live = self._segments.popleft()
            self._close(self._grouper.finish())
            self._grouper.limit = self._limit

    def flush(self) -> None:
        """Announce that FLUSH comes behind all tuples that were staged."""
        self._ended = True
        self.send(self._sent)

    def see(self, side: Side, stars: int) -> Int64s:
        """Step over so many stars; return the ends from the one before them to the last one."""
        ends = self.ends[side]
        self.ends[side] = ends[stars:]
        return ends[: stars + 1]

    def _close(self, closed: Closings) -> None:
        for side in Side:
            of_side = closed.side == side
            total = np.cumsum(closed.probes[of_side]) + self._unstarred[side]
            starred = total[closed.star[of_side]]
            queue = self.ends[side]
            self.ends[side] = np.concatenate([queue, starred + queue[-1]])
            if len(total):
                self._unstarred[side] = int(total[-1] - (starred[-1] if len(starred) else 0))

    def _new_grouper(self, ordering: Ordering) -> Grouper:
        return Grouper(
            ordering,
            probes=self._manifest.probes,
            limit=self._limit,
            probe_bits=self._manifest.probe_bits,
        )

    @property
    def _limit(self) -> int:
        """Tuples of the other side that a group may wait for: the slack of the live cores."""
        return self._live * self._manifest.storage.slack
