# SPDX-License-Identifier: Apache-2.0
"""A model of an accelerator without timing: batches of input in, results out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from host.errors import DeviceError
from host.protocol.manifest import Manifest
from host.protocol.punctuation import Closings, Grouper
from host.protocol.segments import SEGMENTS, StorageSegments, round_size
from host.protocol.storage import StorageRule
from host.query.ordering import Ordering
from host.reference.arrivals import Side, UInt64s, places
from host.reference.join import join_range
from host.reference.predicate import EQUAL, Bounds, DifferenceBand, Keys, Predicate
from host.reference.window import CountWindow, TimeWindow, Window, window_starts
from host.runtime import ColumnLog, Columns
from sim.model.words import JoinWords

__all__ = [
    "AcceleratorModel",
    "Emission",
    "GroupEmission",
    "History",
    "Pairs",
    "Rounds",
    "Told",
    "rounds_of",
    "with_stars",
]

# The software device's memory of one side: the tuples that a later probe can still meet.

Int64s = npt.NDArray[np.int64]


class History:
    """The tuples of one side since its window began, without those that have expired.

    Parameters
    ----------
    window : CountWindow or TimeWindow
        The side's window.
    capacity : int, optional
        Number of tuples that the cores hold; older tuples are lost, whatever the window is. By
        default a window has no such limit: where cores can be masked, tuples that a masked core
        would have stored take no room, so older ones of another core are still there.
    """

    def __init__(self, window: Window, capacity: int | None = None) -> None:
        self.window = window
        self.capacity = capacity
        self._log = ColumnLog()

    @property
    def count(self) -> int:
        """Number of tuples since the window began, which is the ordinal of the next one."""
        return self._log.count

    @property
    def base(self) -> int:
        """Ordinal of the oldest stored tuple."""
        return self._log.kept

    @property
    def keys(self) -> Keys:
        """Key fields of the stored tuples, oldest first."""
        stored = self._log.stored()
        return {name: column for name, column in stored.items() if name != "timestamp"}

    @property
    def time(self) -> UInt64s:
        """Timestamps of the stored tuples."""
        return self._log.part("timestamp", self.base, self.count)

    def append(self, keys: Keys, time: UInt64s) -> None:
        """Store tuples."""
        self._log.append(Columns({**keys, "timestamp": time}))

    def starts(self, before: Int64s, now: UInt64s) -> Int64s:
        """Return the ordinal of the oldest tuple that each of several observing tuples meets.

        Parameters
        ----------
        before : array of int64
            Ordinal of the first tuple that arrives after each observer, at most ``count``.
        now : array of uint64
            Timestamp of each observer.
        """
        local = window_starts(self.window, before - self.base, now, self.time) + self.base
        return local if self.capacity is None else np.maximum(local, before - self.capacity)

    def oldest_beside(self, own: Int64s, now: UInt64s) -> Int64s:
        """Return the ordinal of the oldest tuple that is in the window beside each own tuple.

        Parameters
        ----------
        own : array of int64
            Ordinals of the side's own tuples.
        now : array of uint64
            Their timestamps.
        """
        if isinstance(self.window, CountWindow):
            return np.maximum(own + 1 - self.window.size, 0)
        return window_starts(self.window, own - self.base, now, self.time) + self.base

    def forget(self, now: UInt64s) -> None:
        """Forget the tuples that no tuple with a timestamp of ``now`` or later can meet."""
        if self.count:
            self._log.forget(int(self.starts(np.array([self.count]), now)[0]))


# Hold pairs until their group closes, then emit them in the order of the hardware.


class Pairs(NamedTuple):
    """Pairs of one side's probes with stored tuples of the other side.

    A join aggregate also needs the ``value`` of each stored tuple.
    """

    probe: Int64s
    stored: Int64s
    value: Int64s | None = None

    @classmethod
    def empty(cls) -> "Pairs":
        """Return no pairs."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


class _Side:
    """State of one side's probes: their number, and where the open group and period began."""

    def __init__(self) -> None:
        self.probes = 0  # number of probes since the device was opened
        self.grouped = 0  # number of probes in closed groups
        self.starred = 0  # number of probes before the last star
        self.pairs = Pairs.empty()  # pairs of open groups; probes count since opening


def with_stars(words: UInt64s, stars: UInt64s, after: Int64s) -> UInt64s:
    """Return words with a star behind the first ``after[n]`` of them, for each star ``n``.

    Parameters
    ----------
    words, stars : array of uint64
        Result words, one in each row.
    after : array of int64
        For each star, the number of words before it; never less than for the star before.
    """
    merged = np.empty((len(words) + len(stars), words.shape[1]), np.uint64)
    is_star = np.zeros(len(merged), np.bool_)
    is_star[after + np.arange(len(stars))] = True
    merged[~is_star] = words
    merged[is_star] = stars
    return merged


class Told(NamedTuple):
    """Faults that stars and marks report besides overflows.

    Attributes
    ----------
    disorder, illegal : bool
        Whether timestamps have decreased, and whether an illegal word has come.
    failed : int or None
        Core that has failed.
    """

    disorder: bool
    illegal: bool
    failed: int | None = None


class Rounds(NamedTuple):
    """The rounds that have a star, for each probe: from ``first`` until before ``end``."""

    first: Int64s
    end: Int64s

    @classmethod
    def empty(cls) -> "Rounds":
        """Return the rounds of no probes."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


def rounds_of(
    segments: StorageSegments,
    size: int,
    start: Int64s,
    before: Int64s,
    mute: npt.NDArray[np.bool_],
) -> Rounds:
    """Return the rounds that have a star, for probes that see ``start`` until ``before``.

    A round has a star if the last tuple of the round of any core is in the window. The cores that
    ``mute`` flags are none.
    """
    cores = segments.live[~mute[segments.live]]
    if not len(cores):
        return Rounds(np.zeros_like(start), np.zeros_like(start))
    begin = np.zeros((len(start), 1), np.int64)
    low = segments.held(begin, start[:, None], cores[None])
    high = segments.held(begin, before[:, None], cores[None])
    first, end = low // size, high // size  # the first of the rounds that end at or after `low`
    some = first < end
    none = ~some.any(axis=1)
    first = np.where(some, first, np.iinfo(np.int64).max).min(axis=1)
    end = np.where(some, end, 0).max(axis=1)
    return Rounds(np.where(none, 0, first), np.where(none, 0, end))


class GroupEmission(ABC):
    """Turns what probes find into result words, group by group.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words and the storage rule.

    Attributes
    ----------
    segments : dict of Side to StorageSegments
        Where each side's tuples are stored.
    round_size : int
        Number of tuples of a core in a round; zero if results do not come in rounds.
    none : array of uint64
        No result.
    """

    def __init__(self, manifest: Manifest) -> None:
        rule = StorageRule.of(manifest)
        self.segments = {side: StorageSegments(rule) for side in Side}
        self.none = np.zeros((0, manifest.result.columns), np.uint64)
        self.round_size = 0

    def see(self, side: Side, start: Int64s, before: Int64s, mute: npt.NDArray[np.bool_]) -> None:
        """Note which stored tuples the next probes see; only if results come in rounds."""
        raise NotImplementedError

    def drop(self, core: int) -> None:
        """Lose what open groups have found in ``core``; only if cores have gates."""
        raise NotImplementedError

    @abstractmethod
    def add(self, side: Side, probes: int, pairs: Pairs) -> None:
        """Add the pairs of the next ``probes`` probes of ``side``, whose probes count from zero."""

    @abstractmethod
    def mark(self, overflowed: Mapping[Side, bool], told: Told) -> UInt64s:
        """Return a mark as a result word."""

    @abstractmethod
    def emit(
        self, closings: Closings, overflow: npt.NDArray[np.bool_], told: Told
    ) -> tuple[UInt64s, int]:
        """Return the words of closed groups and their stars, and the number of words but stars.

        Parameters
        ----------
        closings : Closings
            The closed groups.
        overflow : array of bool
            For each group, whether its star reports that the window its probes met has overflowed.
        told : Told
            What else the stars report.
        """


class Emission(GroupEmission):
    """Turns pairs into result words.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words and the storage rule.
    """

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self._codec = JoinWords(manifest)
        self._probes = 1 << manifest.probe_bits  # the index of a probe wraps at this number
        self._sides = {side: _Side() for side in Side}
        self._rounds = dict.fromkeys(Side, Rounds.empty())  # of probes that were added

    def see(self, side: Side, start: Int64s, before: Int64s, mute: npt.NDArray[np.bool_]) -> None:
        """Note which stored tuples the next probes of ``side`` see, from ``start`` on.

        The cores that ``mute`` flags answer nothing.

        Only if results come in rounds; the groups of these probes close before the next ones come.
        """
        self._rounds[side] = rounds_of(
            self.segments[side.other], self.round_size, start, before, mute
        )

    def add(self, side: Side, probes: int, pairs: Pairs) -> None:
        """Add the pairs of the next ``probes`` probes of ``side``, whose probes count from zero."""
        state = self._sides[side]
        state.pairs = Pairs(
            np.concatenate([state.pairs.probe, pairs.probe + state.probes]),
            np.concatenate([state.pairs.stored, pairs.stored]),
        )
        state.probes += probes

    def mark(self, overflowed: Mapping[Side, bool], told: Told) -> UInt64s:
        """Return a mark as a result word."""
        flags = sum(overflowed[side] << side for side in Side)
        return self._codec.pack_punctuation(self._codec.mark, 0, flags, *told)

    def drop(self, core: int) -> None:
        """Lose the pairs of open groups whose stored tuples are in ``core``."""
        for side, state in self._sides.items():
            cores, _ = self.segments[side.other].locals(state.pairs.stored)
            kept = cores != core
            state.pairs = Pairs(state.pairs.probe[kept], state.pairs.stored[kept])

    def emit(
        self, closings: Closings, overflow: npt.NDArray[np.bool_], told: Told
    ) -> tuple[UInt64s, int]:
        """See :meth:`GroupEmission.emit`."""
        if not len(closings.side):
            return self.none, 0
        ranks, index, cores, numbers, sides = [], [], [], [], []
        for side in Side:
            rank, probe, other = self._leave(side, closings)
            ranks.append(rank)
            index.append(probe)
            core, local = self.segments[side.other].locals(other)
            cores.append(core)
            numbers.append(local)
            sides.append(np.full(len(rank), side, np.int64))
        rank, probe, core, local, of_side = (
            np.concatenate(part) for part in (ranks, index, cores, numbers, sides)
        )
        size = self.round_size
        round_ = local // size if size else np.zeros_like(local)
        order = np.lexsort((probe, local, core, round_, rank))
        rank, round_, probe, core, local, of_side = (
            column[order] for column in (rank, round_, probe, core, local, of_side)
        )
        row, lane = self.segments[Side.R].slots(local)
        pairs = self._codec.pack_pairs(of_side, probe, core, row, lane)

        stars = np.flatnonzero(closings.star)
        of_star = closings.side[stars]
        flags = overflow[stars].astype(np.int64) << (1 - of_star)
        ends = self._codec.pack_punctuation(self._codec.star, of_star, flags, *told)
        if size:
            return self._in_rounds(closings, (rank, round_, pairs), (stars, ends)), len(rank)
        after = np.searchsorted(rank, stars, side="right")
        return with_stars(pairs, ends, after), len(rank)

    def _in_rounds(
        self,
        closings: Closings,
        pairs: tuple[Int64s, Int64s, UInt64s],
        stars: tuple[Int64s, UInt64s],
    ) -> UInt64s:
        """Return the words of groups of one probe each, with the stars of rounds between them.

        Parameters
        ----------
        closings : Closings
            The closed groups, each of them with a star.
        pairs : tuple of arrays
            Group, round and word of every pair, in order.
        stars : tuple of arrays
            Group and word of every star.
        """
        groups, rounds = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for side in Side:
            of_side = np.flatnonzero(closings.side == side)
            first, end = self._rounds[side]
            counts = end - first
            begins = np.cumsum(counts) - counts
            groups = np.concatenate([groups, np.repeat(of_side, counts)])
            numbers = np.arange(counts.sum()) + np.repeat(first - begins, counts)
            rounds = np.concatenate([rounds, numbers])
        after = np.full(len(stars[0]), np.iinfo(np.int64).max)
        parts = [
            (pairs[0], pairs[1], pairs[2]),
            (groups, rounds, self._codec.pack_inner_stars(closings.side[groups])),
            (stars[0], after, stars[1]),
        ]
        group, round_, words = (np.concatenate(column) for column in zip(*parts, strict=True))
        kind = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        ordered: UInt64s = words[np.lexsort((kind, round_, group))]
        return ordered

    def _leave(self, side: Side, closings: Closings) -> tuple[Int64s, Int64s, Int64s]:
        """Return group, probe index and stored tuple of the pairs whose groups are closed."""
        state = self._sides[side]
        groups = np.flatnonzero(closings.side == side)
        ends = state.grouped + np.cumsum(closings.probes[groups])
        star_ends = np.where(closings.star[groups], ends, state.starred)
        periods = np.maximum.accumulate(np.concatenate([[state.starred], star_ends]))
        if len(groups):
            state.grouped, state.starred = int(ends[-1]), int(periods[-1])
        group = np.searchsorted(ends, state.pairs.probe, side="right")
        leaving = group < len(groups)
        probe, stored, group = (
            column[leaving] for column in (state.pairs.probe, state.pairs.stored, group)
        )
        state.pairs = Pairs(state.pairs.probe[~leaving], state.pairs.stored[~leaving])
        return groups[group], (probe - periods[group]) % self._probes, stored


# A model of an accelerator without timing: batches of input in, results out.

#: Position of a fault that does not occur.
NEVER = 1 << 62


class AcceleratorModel:
    """State of an accelerator between two input words.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    custom : function, optional
        Predicate of a custom comparator.

    Attributes
    ----------
    counters : dict of str to int
        The counters that do not count cycles.
    """

    def __init__(self, manifest: Manifest, custom: Callable[[Any, Any], Any] | None = None) -> None:
        self.manifest = manifest
        self.counters = dict.fromkeys(
            ("tuples_r", "tuples_s", "comparisons", "results", "stars", "marks", "disorder"), 0
        )
        self.counters["illegal"] = 0
        self._custom = custom
        self._bounds = {key.name: Bounds() for key in manifest.keys}
        self._windows: dict[Side, Window] = dict.fromkeys(Side, CountWindow(manifest.capacity))
        self._emission = self._make_emission()
        self._live = manifest.storage.cores  # number of cores that take turns
        self._listed: list[int] = []  # cores of the next segment
        self._drifted = dict.fromkeys(Side, False)  # windows that may hold tuples of two segments
        self._masked = np.zeros(self._live, np.bool_)  # by core
        self._failed = np.zeros(self._live, np.bool_)  # by core; not masked since
        self._set_precision(1)
        self._clear()

    @property
    def predicate(self) -> Predicate:
        """The predicate at this place in the stream."""
        if self._custom is not None:
            return self._custom
        if not self.manifest.bounded:
            return DifferenceBand({key.name: EQUAL for key in self.manifest.keys})
        return DifferenceBand(self._bounds)

    def tuples(
        self, sides: npt.NDArray[np.uint8], keys: Keys, timestamp: npt.NDArray[Any]
    ) -> UInt64s:
        """Process tuples; return the results of the groups that they close, one per row."""
        time = places(timestamp)
        count = self._until_disorder(time)
        sides, time = sides[:count], time[:count]
        keys = {name: column[:count] for name, column in keys.items()}
        members = {side: np.flatnonzero(sides == side) for side in Side}
        earlier = {side: self._histories[side].count for side in Side}
        for side, mine in members.items():
            own = {name: column[mine] for name, column in keys.items()}
            self._histories[side].append(own, time[mine])
            self.counters[f"tuples_{side.name.lower()}"] += len(mine)
        overflowed = self._overflowed
        faults = {side: self._overflow(side, earlier[side], members[side], time) for side in Side}
        for side, mine in members.items():
            before = earlier[side.other] + np.searchsorted(members[side.other], mine)
            own = {name: column[mine] for name, column in keys.items()}
            self._emission.add(side, len(mine), self._join(side, own, time[mine], before))
            if self._emission.round_size:
                seen = self._histories[side.other]
                start = seen.starts(before, time[mine]) if seen.count else before
                self._emission.see(side, start, before, self._mute)
        if count:
            for history in self._histories.values():
                history.forget(time[-1:])
        return self._emit(self._grouper.feed(sides), overflowed, faults, self._told(False))

    def control(self, operation: str, index: int, value: int) -> UInt64s:
        """Execute a control word; return the results that it causes, one per row."""
        if operation in ("BOUND_LOW", "BOUND_HIGH"):
            self._set_bound(operation, index, value)
            return self._emission.none
        if operation == "CORE" or (operation == "SEGMENT" and not self._may_begin()):
            self._append(value if operation == "CORE" else None)
            return self._emission.none
        if operation in ("MASK", "UNMASK") and not 0 <= value < len(self._masked):
            return self._emission.none
        words = [self._finish()]
        if operation in ("CLEAR", "FLUSH", "PRECISION", "INNER"):
            words.append(self._emission.mark(self._overflowed, self._told(self._disorder)))
            self.counters["marks"] += 1
        if operation == "CLEAR":
            self._clear()
        elif operation == "PRECISION":
            self._set_precision(value)
        elif operation == "INNER":
            self._set_precision(1)
            if not any(self._drifted.values()):
                self._emission.round_size = round_size(self.manifest, value)
        elif operation == "SEGMENT":
            self._begin_segment()
        elif operation in ("MASK", "UNMASK"):
            self._mask(value, masked=operation == "MASK")
        elif operation in ("COORDINATE", "DISTINCT", "CELL"):
            self._forget_windows()
        elif operation in ("WINDOW", "LIFESPAN"):
            side = Side(index)
            self._windows[side] = self._window(operation, value)
            self._histories[side] = self._history(side)
            self._emission.segments[side].restart()
            self._drifted[side] = False
        return np.concatenate(words)

    def fail(self, core: int) -> None:
        """Let a core fail: it answers nothing from now on, which stars and marks tell until MASK.

        Raises
        ------
        DeviceError
            If there is no such core, or the accelerator would not notice.
        """
        if "MASK" not in self.manifest.operations or not 0 <= core < len(self._failed):
            raise DeviceError(
                f"Core {core} cannot fail in the model: it takes one of {len(self._failed)} cores "
                f"that have gates; generate the bundle with --failure-cycles."
            )
        self._failed[core] = ~self._masked[core]
        self._full[:, core] = False
        self._emission.drop(core)

    def _mask(self, core: int, *, masked: bool) -> None:
        """Mask a core, which tells of no overflow from now on, or let it take part again."""
        if masked or self._mute[core]:
            self._full[:, core] = False
        self._masked[core] = masked
        self._failed[core] = False

    @property
    def _overflowed(self) -> dict[Side, bool]:
        """Whether a core that answers has overflowed, by side."""
        return {side: bool(self._full[side].any()) for side in Side}

    def _told(self, disorder: bool) -> Told:
        """Return what stars and marks report; of failed cores, the first one without a mask."""
        failed = int(np.argmax(self._failed)) if self._failed.any() else None
        return Told(disorder, self._illegal, failed)

    @property
    def _mute(self) -> npt.NDArray[np.bool_]:
        """The cores that answer nothing."""
        return self._masked | self._failed

    def drop_illegal(self) -> None:
        """Process an illegal word, which all stars and marks report until CLEAR."""
        self._illegal = True
        self.counters["illegal"] += 1

    def _may_begin(self) -> bool:
        """Return whether SEGMENT may come: its list has cores, and there is room for a list."""
        back = 0  # segments between the oldest tuple of either side and the next tuple
        for side, history in self._histories.items():
            if isinstance(history.window, CountWindow) and history.count:
                oldest = max(history.count - history.window.size, 0)
                back = max(back, self._emission.segments[side].number(oldest))
        return bool(self._listed) and back < SEGMENTS - 1

    def _append(self, core: int | None) -> None:
        """Append a core to the list of the next segment; an illegal word gives no legal core."""
        if core is None or core in self._listed or not 0 <= core < self.manifest.storage.cores:
            self.drop_illegal()
        else:
            self._listed.append(core)

    def _begin_segment(self) -> None:
        for side, segments in self._emission.segments.items():
            segments.begin(self._histories[side].count, self._listed)
        self._grouper.limit = len(self._listed) * self.manifest.storage.slack
        self._live = len(self._listed)
        self._listed.clear()
        filled = {side: history.count > 0 for side, history in self._histories.items()}
        self._drifted = {side: self._drifted[side] or filled[side] for side in Side}
        if any(filled.values()):
            self._emission.round_size = 0

    def _window(self, operation: str, value: int) -> Window:
        """Return the window that a control word sets, limited to the supported range."""
        if operation == "LIFESPAN":
            longest = (1 << self.manifest.timestamp_bits) - 1
            return TimeWindow(min(max(value, 0), longest))
        return CountWindow(min(max(value, 1), self.manifest.capacity))

    def _clear(self) -> None:
        self._forget_windows()
        self._listed.clear()
        # By side and core: whether the window has outgrown the core, which it tells until CLEAR.
        self._full = np.zeros((len(Side), self.manifest.storage.cores), np.bool_)
        self._illegal = False
        self._disorder = False
        self._newest = places(np.zeros(1, np.uint64))
        self.counters["disorder"] = 0

    def _history(self, side: Side) -> History:
        """Return an empty window of a side."""
        can_mask = "MASK" in self.manifest.operations
        return History(self._windows[side], None if can_mask else self.manifest.capacity)

    def _forget_windows(self) -> None:
        self._histories = {side: self._history(side) for side in Side}
        for segments in self._emission.segments.values():
            segments.restart()
        self._drifted = dict.fromkeys(Side, False)

    def _set_precision(self, value: int) -> None:
        self._emission.round_size = 0
        longest = 1 << self.manifest.probe_bits
        self._grouper = Grouper(
            Ordering(value if value >= 0 else longest),
            probes=self.manifest.probes,
            limit=self._live * self.manifest.storage.slack,
            probe_bits=self.manifest.probe_bits,
        )

    def _set_bound(self, operation: str, index: int, value: int) -> None:
        key = self.manifest.keys[index]
        bounds = self._bounds[key.name]
        least, most = -(1 << key.bits), (1 << key.bits) - 1
        if operation == "BOUND_LOW":
            low = None if value <= least else min(value, most)
            self._bounds[key.name] = Bounds(low, bounds.high)
        else:
            high = None if value >= most else max(value, least)
            self._bounds[key.name] = Bounds(bounds.low, high)

    def _until_disorder(self, time: UInt64s) -> int:
        """Return the number of tuples before a timestamp decreases; later tuples are dropped."""
        if self._disorder:
            return 0
        if not self.manifest.timestamp_bits or not len(time):
            return len(time)
        falls = np.flatnonzero(time < np.concatenate([self._newest, time[:-1]]))
        self._newest = time[-1:].copy()
        if not len(falls):
            return len(time)
        self._disorder = True
        self.counters["disorder"] = 1
        return int(falls[0])

    def _overflow(self, side: Side, first: int, mine: Int64s, time: UInt64s) -> int:
        """Note which cores overflow; return the position of the first tuple without room.

        It is ``NEVER`` if all tuples have room.
        """
        history = self._histories[side]
        if not len(mine):
            return NEVER
        own = first + np.arange(len(mine))
        segments = self._emission.segments[side]
        core, _ = segments.locals(own)
        held = segments.held(history.oldest_beside(own, time[mine]), own, core)
        full = (held >= self.manifest.storage.sub_window) & ~self._mute[core]
        self._full[side, core[full]] = True
        return int(mine[np.argmax(full)]) if full.any() else NEVER

    def _make_emission(self) -> GroupEmission:
        """Return what turns pairs into result words."""
        return Emission(self.manifest)

    def _join(self, side: Side, keys: Keys, time: UInt64s, before: Int64s) -> Pairs:
        """Return the pairs that probes of ``side`` find."""
        history = self._histories[side.other]
        if not history.count or not len(before):
            return Pairs.empty()
        starts = history.starts(before, time)
        self.counters["comparisons"] += int((before - starts).sum())
        base = history.base
        found = list(
            join_range(self.predicate, side, keys, history.keys, starts - base, before - base)
        )
        probe = np.concatenate([probe for probe, _ in found])
        stored = np.concatenate([stored for _, stored in found]) + base
        if self._mute.any():
            core, _ = self._emission.segments[side.other].locals(stored)
            kept = ~self._mute[core]
            probe, stored = probe[kept], stored[kept]
        return Pairs(probe, stored)

    def _finish(self) -> UInt64s:
        """Return the words of the groups that a control word closes."""
        told = self._told(self._disorder)
        return self._emit(self._grouper.finish(), self._overflowed, {}, told)

    def _emit(
        self,
        closings: Closings,
        overflowed: dict[Side, bool],
        faults: dict[Side, int],
        told: Told,
    ) -> UInt64s:
        """Return the words of closed groups; a star reports the faults before its group's end.

        ``overflowed`` are the sides that had overflowed before, ``faults`` the positions of the
        tuples that overflow a side.
        """
        overflow = np.zeros(len(closings.side), np.bool_)
        for side in Side:
            late = overflowed[side] | (closings.position > faults.get(side, NEVER))
            overflow |= (closings.side == side.other) & late
        words, pairs = self._emission.emit(closings, overflow, told)
        self.counters["results"] += pairs
        self.counters["stars"] += len(words) - pairs
        return words
