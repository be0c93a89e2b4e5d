# SPDX-License-Identifier: Apache-2.0
"""Which cores hold tuples of the windows, and whether further tuples would fit them."""

from collections.abc import Mapping, Sequence
import copy

import numpy as np

from host.hardware.storage import StorageRule
from host.hardware.storage_segments import SEGMENTS, Int64s, StorageSegments
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import CountWindow, Window
from host.runtime import Columns
from host.tuples.intake import Arrived
from host.tuples.side_log import SideLog

__all__ = ["CoreContents", "fewest_cores"]


def fewest_cores(manifest: Manifest, window: Window) -> int:
    """Return how few cores always hold a count-based window, however they change.

    That can be one more than there are: then no change is safe. For a time-based window it is 1,
    as its size is not known.
    """
    if not isinstance(window, CountWindow):
        return 1
    room = manifest.storage.sub_window - SEGMENTS  # each core can get a tuple more in each
    cores = manifest.storage.cores
    return min(cores + 1, -(-int(window.size) // room)) if room > 0 else cores + 1


class CoreContents:
    """Follows both windows of an execution as tuples are staged.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    window : CountWindow or TimeWindow
        Window of either side.
    cores : sequence of int
        The cores that take turns at first.

    Attributes
    ----------
    live : sequence of int
        The cores that take turns.
    """

    def __init__(self, manifest: Manifest, window: Window, cores: Sequence[int]) -> None:
        self._cores, self._room = manifest.storage.cores, manifest.storage.sub_window
        self._size: int | None = None
        self._lifespan = np.uint64(0)
        if isinstance(window, CountWindow):
            self._size = int(window.size)
        else:
            self._lifespan = np.uint64(window.lifespan)
        self._logs = {side: SideLog() for side in Side}
        self._rule = StorageRule.of(manifest.storage)
        self._segments = {side: StorageSegments(self._rule) for side in Side}
        self.live: Sequence[int] = ()
        self.begin(cores)

    def begin(self, cores: Sequence[int]) -> None:
        """Let other cores store the tuples that are staged from now on."""
        self.live = cores
        for side, segments in self._segments.items():
            segments.begin(self._logs[side].count, cores)

    def restart(self, cores: Sequence[int], first: Mapping[Side, int]) -> None:
        """Let these cores alone hold the tuples of each side from ``first`` on, and store others.

        The accelerator was cleared after a failure, and these tuples are sent again.
        """
        self.live = cores
        for side in Side:
            self._segments[side] = StorageSegments(self._rule)
            self._segments[side].begin(first[side], cores)

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""
        for side, times in _times(arrived).items():
            self._logs[side].append(Columns({"time": times}))
        for side, log in self._logs.items():
            oldest = self._oldest(side)
            log.forget(oldest)
            self._segments[side].forget(oldest)

    @property
    def held(self) -> tuple[int, int]:
        """Number of tuples in the windows of R and of S."""
        r, s = (self._logs[side].count - self._oldest(side) for side in Side)
        return r, s

    @property
    def latest(self) -> int:
        """Time of the last tuple; zero if there is none."""
        times = [log.at("time", log.count - 1) for log in self._logs.values() if log.count]
        return max(times, default=0)

    @property
    def counts(self) -> tuple[int, int]:
        """Tuples of R and of S that have been staged."""
        return self._logs[Side.R].count, self._logs[Side.S].count

    @property
    def on(self) -> int:
        """Number of cores that take turns, or hold a tuple of a window."""
        used = self._fullest > 0
        used[list(self.live)] = True
        return int(used.sum())

    @property
    def emptiest(self) -> list[int]:
        """All cores, by the tuples that each holds of the side of which it holds more."""
        order: list[int] = np.argsort(self._fullest, kind="stable").tolist()
        return order

    @property
    def _fullest(self) -> Int64s:
        """For each core, how many tuples it holds of the side of which it holds more."""
        every, most = np.arange(self._cores), np.zeros(self._cores, np.int64)
        for side, segments in self._segments.items():
            begin = np.full(self._cores, self._oldest(side))
            end = np.full(self._cores, self._logs[side].count)
            most = np.maximum(most, segments.held(begin, end, every))
        return most

    def fits(self, arrived: Arrived, cores: Sequence[int]) -> bool:
        """Return whether every core has room if ``cores`` store these tuples of a stream."""
        for side, times in _times(arrived).items():
            if not len(times):
                continue
            log, segments = self._logs[side], copy.deepcopy(self._segments[side])
            if list(cores) != list(self.live):
                segments.begin(log.count, cores)
            own = log.count + np.arange(len(times))
            core, _ = segments.locals(own)
            held = segments.held(self._oldest_beside(side, own, times), own, core)
            if (held >= self._room).any():
                return False
        return True

    def _oldest(self, side: Side) -> int:
        """Return the number of the oldest tuple in the window of a side."""
        log = self._logs[side]
        if self._size is not None:
            return max(0, log.count - self._size)
        if not log.count:
            return 0
        kept = log.part("time", log.kept, log.count)
        return log.kept + int(self._begin_of(kept, np.uint64(self.latest)))

    def _oldest_beside(self, side: Side, own: Int64s, times: UInt64s) -> Int64s:
        """Return the numbers of the oldest tuples of the side when each of ``own`` is stored."""
        if self._size is not None:
            return np.maximum(0, own - self._size)
        log = self._logs[side]
        stored = log.part("time", log.kept, log.count) if log.count else times[:0]
        every = np.concatenate([stored, times])
        return log.kept + self._begin_of(every, times)

    def _begin_of(self, times: UInt64s, now: UInt64s | np.uint64) -> Int64s:
        """Return the index of the first of ascending ``times`` that is in the window at ``now``."""
        least = now - np.minimum(now, self._lifespan)
        return np.searchsorted(times, least).astype(np.int64)


def _times(arrived: Arrived) -> dict[Side, UInt64s]:
    """Return the times of the tuples of each side."""
    return {side: tuples.times for side, tuples in arrived.sides.items()}
