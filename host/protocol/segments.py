# SPDX-License-Identifier: Apache-2.0
"""The storage rule over segments and rounds, the windows that fit, and the counters of a device."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from host.arrays import Int64s, UInt64s
from host.errors import AcceleratorLimitError, CapacityError, UsageError
from host.protocol.manifest import JoinAggregateManifest, Manifest
from host.protocol.storage import StorageRule, require_stored
from host.reference.arrivals import Side
from host.reference.window import CountWindow, Window

__all__ = [
    "FullestCore",
    "SEGMENTS",
    "StorageSegments",
    "growth",
    "hardware_time",
    "largest_window",
    "longest_round",
    "outgrown",
    "require_capacity",
    "require_live",
    "require_pairs",
    "round_size",
    "side_label",
    "time_text",
]

# The storage rule over segments: from some tuple on, other cores take turns to store.


#: Most segments that a count-based window of either side holds tuples of.
SEGMENTS = 3


def require_live(live: Sequence[int], cores: int) -> None:
    """Raise unless these are some of so many cores, each once."""
    if not live or len(set(live)) < len(live) or not all(0 <= core < cores for core in live):
        raise UsageError(
            f"A segment needs at least one core, each of 0 to {cores - 1} at most once, not "
            f"{list(live)}; give it the numbers of the live cores."
        )


class _Segment(NamedTuple):
    """Tuples from ``first`` on, which the cores of ``live`` store in turn."""

    first: int
    live: Int64s
    rank: Int64s  # by core: its place in `live`, or -1
    base: Int64s  # by core: number of tuples that it has stored before the segment


class StorageSegments:
    """Where the cores keep the tuples of one side, over any number of segments.

    Parameters
    ----------
    rule : StorageRule
        Shape of the storage.

    Attributes
    ----------
    live : array of int64
        The cores that take turns to store, in this order.
    """

    def __init__(self, rule: StorageRule) -> None:
        self._rule = rule
        self.live: Int64s = np.arange(rule.cores)
        self._segments: list[_Segment] = []
        self.restart()

    @property
    def fewest(self) -> int:
        """The fewest cores of a segment that is not forgotten."""
        return min(len(segment.live) for segment in self._segments)

    def restart(self) -> None:
        """Begin an empty window: the live cores stay, and ordinals restart at zero."""
        self._segments = [self._segment(0, np.zeros(self._rule.cores, np.int64))]

    def begin(self, count: int, live: Sequence[int]) -> None:
        """Begin a segment after ``count`` tuples, in which the cores of ``live`` store.

        Raises
        ------
        UsageError
            If there is no core, an unknown one, or one twice.
        """
        require_live(live, self._rule.cores)
        last = self._segments[-1]
        base = last.base + _turns(np.int64(count) - last.first, last.rank, len(last.live))
        if not count:  # no tuple is in the segments before
            self._segments.clear()
        self.live = np.array(live, np.int64)
        self._segments.append(self._segment(count, base))

    def forget(self, ordinal: int) -> None:
        """Forget the segments that end before the tuple ``ordinal``."""
        while len(self._segments) > 1 and self._segments[1].first <= ordinal:
            del self._segments[0]

    def number(self, ordinal: int) -> int:
        """Return how many segments have begun after the one of the tuple ``ordinal``."""
        return sum(segment.first > ordinal for segment in self._segments)

    def locals(self, ordinals: Int64s) -> tuple[Int64s, Int64s]:
        """Return the core of each tuple, and the tuple's number among those of that core."""
        if self._is_plain():
            return ordinals % self._rule.cores, ordinals // self._rule.cores
        core, local = np.zeros_like(ordinals), np.zeros_like(ordinals)
        for segment in self._segments:
            mine = ordinals >= segment.first
            turns, rank = np.divmod(ordinals[mine] - segment.first, len(segment.live))
            core[mine] = segment.live[rank]
            local[mine] = segment.base[core[mine]] + turns
        return core, local

    def slots(self, local: Int64s) -> tuple[Int64s, Int64s]:
        """Return row and lane of tuples, given by their numbers within their core."""
        return (local // self._rule.lanes) % self._rule.ring_rows, local % self._rule.lanes

    def held(self, begin: Int64s, end: Int64s, core: Int64s) -> Int64s:
        """Return how many of the tuples from ``begin`` until before ``end`` are in ``core``."""
        return self._before(end, core) - self._before(begin, core)

    def ordinals(self, before: Int64s, core: Int64s, row: Int64s, lane: Int64s) -> Int64s:
        """Return the stored tuples of pairs; see :meth:`StorageRule.ordinals`."""
        if self._is_plain():
            return self._rule.ordinals(before, core, row, lane)
        known = core < self._rule.cores
        newest = self._before(before, np.where(known, core, 0)) - 1
        local = newest - (newest - row * self._rule.lanes - lane) % self._rule.slots
        ordinals = np.full_like(local, -1)
        for segment in self._segments:
            rank, base = (by_core[np.where(known, core, 0)] for by_core in segment[2:])
            mine = (rank >= 0) & (local >= base) & known
            found = segment.first + (local - base) * len(segment.live) + rank
            ordinals[mine] = found[mine]
        stored = (local >= 0) & (ordinals >= 0) & (ordinals < before)
        require_stored(stored, before, core, row, lane)
        return ordinals

    def _is_plain(self) -> bool:
        """Return whether all cores have stored in the order of their numbers since the start."""
        only = self._segments[0]
        if len(self._segments) > 1 or only.first:
            return False
        return np.array_equal(only.live, np.arange(self._rule.cores))

    def _segment(self, first: int, base: Int64s) -> _Segment:
        rank = np.full(self._rule.cores, -1, np.int64)
        rank[self.live] = np.arange(len(self.live))
        return _Segment(first, self.live, rank, base)

    def _before(self, ordinals: Int64s | np.int64, core: Int64s) -> Int64s:
        """Return how many tuples before ``ordinals`` are stored in ``core``."""
        first = np.array([segment.first for segment in self._segments])
        at = np.searchsorted(first, ordinals, side="right") - 1
        # By segment, and by core in it; the last segment of those that begin together counts.
        rank, base = (np.stack(of) for of in list(zip(*self._segments, strict=True))[2:])
        live = np.array([len(segment.live) for segment in self._segments])
        own = rank[at, core]
        count: Int64s = base[at, core] + _turns(ordinals - first[at], own, live[at])
        return np.where(at >= 0, count, 0)


def _turns(count: Int64s | np.int64, rank: Int64s, live: Int64s | int) -> Int64s:
    """Return how many of the first ``count`` tuples of a segment the core of a rank stores."""
    turns: Int64s = np.maximum(-(-(count - rank) // live), 0)
    return np.where(rank >= 0, turns, 0)


# How many tuples of a count-based window a core will hold at most once other cores store.


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


# The rounds of stored tuples, after which an accelerator with rounds sends stars.

#: A ring holds so many rounds at least.
PER_RING = 4


def longest_round(manifest: Manifest) -> int:
    """Return the largest number of tuples in a round of the hardware."""
    return manifest.storage.ring_rows * manifest.storage.lanes // PER_RING


def round_size(manifest: Manifest, value: int) -> int:
    """Return how many tuples a round has after INNER with this value; zero for no rounds.

    It is the largest power of two that divides the value, or the longest round.
    """
    return min(value & -value, longest_round(manifest)) if value else 0


# Check before any tuple is sent whether the windows of a join fit an accelerator.


def largest_window(timestamps: UInt64s, lifespan: int, capacity: int) -> tuple[int, int | None]:
    """Measure the largest extent of a time-based window.

    Parameters
    ----------
    timestamps : array of uint64
        Timestamps of one side, ascending.
    lifespan : int
        Lifespan of the window, in units of the timestamps.
    capacity : int
        Tuples of one side that the accelerator holds.

    Returns
    -------
    needed : int
        Number of tuples in the window at its largest.
    first : int or None
        Number of the first tuple that finds ``capacity`` tuples in the window, after expiry.
    """
    if not len(timestamps):
        return 0, None
    width = np.uint64(min(lifespan, (1 << 64) - 1))
    oldest = np.where(timestamps >= width, timestamps - width, np.uint64(0))
    begins = np.searchsorted(timestamps, oldest, side="left")
    held = np.arange(len(timestamps)) - begins
    full = held >= capacity
    return int(held.max()) + 1, int(np.argmax(full)) if full.any() else None


def require_pairs(manifest: Manifest) -> None:
    """Raise unless an accelerator sends the pairs of a join.

    Raises
    ------
    AcceleratorLimitError
        If it is a join aggregate.
    """
    if isinstance(manifest, JoinAggregateManifest):
        raise AcceleratorLimitError(
            "The accelerator is a join aggregate, which sends what the matches of each left row "
            "are reduced to, and no pairs",
            "ask `aggregate_matches` for aggregates, or use a bundle that was generated without "
            "--value-bits",
        )


def require_capacity(window: Window, manifest: Manifest) -> None:
    """Raise unless the accelerator can hold a count-based window.

    Raises
    ------
    CapacityError
        If the window is larger than the capacity.
    """
    if isinstance(window, CountWindow) and window.size > manifest.capacity:
        raise CapacityError(
            int(window.size),
            manifest.capacity,
            cores=manifest.storage.cores,
            engine=manifest.engine,
        )


def outgrown(
    manifest: Manifest, side: object, needed: int | None = None, ordinal: int | None = None
) -> CapacityError:
    """Return the error of a time-based window that an accelerator cannot hold."""
    return CapacityError(
        needed, manifest.capacity, side=side, is_timed=True, ordinal=ordinal,
        cores=manifest.storage.cores, engine=manifest.engine,
    )  # fmt: skip


def side_label(side: Side) -> str:
    """Return a name of a side for messages, such as ``R (left)``."""
    return f"{side.name} ({'left' if side is Side.R else 'right'})"


# Convert the cycles of a simulated device into time in hardware.

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def hardware_time(cycles: int, manifest: Manifest) -> str | None:
    """Describe how long a number of cycles takes in hardware; None if that is not known.

    Parameters
    ----------
    cycles : int
        Clock cycles that the devices ran, added up; zero for a device without a clock.
    manifest : Manifest
        Manifest of the devices. It has no clock if neither they nor a twin was ever routed.
    """
    clock = manifest.clock
    if not cycles or clock is None:
        return None
    text = (
        f"{cycles:,} cycles: {time_text(cycles / (clock.mhz * 1e6))} at {clock.mhz:,.1f} MHz, the "
        f"routed clock of {'its twin ' if clock.twin else ''}`{clock.preset}` on an "
        f"{clock.device} of grade {clock.speed}"
    )
    if clock.capacity < manifest.capacity:
        text += f", which holds windows of up to {clock.capacity:,} tuples a side"
    if clock.earlier_design is not None:
        text += f"; its routing report is of an earlier design ({clock.earlier_design})"
    return text


def time_text(seconds: float) -> str:
    """Return a time as text, in the largest unit that does not make it less than one."""
    size, unit = next((each for each in _UNITS if seconds >= 0.95 * each[0]), _UNITS[-1])
    return f"{seconds / size:,.1f} {unit}"


# By how much the counters of a device grow.


def growth(manifest: Manifest, then: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return the growth of each counter, which begins again at zero after its last bit."""
    return {
        counter.name: (now[counter.name] - then[counter.name]) % (1 << counter.bits)
        for counter in manifest.counters
        if counter.name in then and counter.name in now
    }
