# SPDX-License-Identifier: Apache-2.0
"""A model of an accelerator without timing: batches of input in, results out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from host.device.emission import Emission, GroupEmission, Pairs
from host.device.history import History
from host.device.rounds import round_size
from host.errors import DeviceError
from host.hardware.punctuation import Closings, Grouper
from host.hardware.storage_segments import SEGMENTS
from host.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.exact import UInt64s, places
from host.reference.join import join_range
from host.reference.predicate import EQUAL, Bounds, DifferenceBand, Keys, Predicate
from host.reference.side import Side
from host.reference.window import CountWindow, TimeWindow, Window

__all__ = ["AcceleratorModel"]

Int64s = npt.NDArray[np.int64]

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
        if self.manifest.comparator == "equality":
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
        return self._emit(self._grouper.feed(sides), overflowed, faults, disorder=False)

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
            words.append(
                self._emission.mark(
                    self._overflowed,
                    disorder=self._disorder,
                    illegal=self._illegal,
                    failed=self._told,
                )
            )
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

    @property
    def _told(self) -> int | None:
        """The first core that has failed and is not masked."""
        return int(np.argmax(self._failed)) if self._failed.any() else None

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
        return self._emit(self._grouper.finish(), self._overflowed, {}, disorder=self._disorder)

    def _emit(
        self,
        closings: Closings,
        overflowed: dict[Side, bool],
        faults: dict[Side, int],
        *,
        disorder: bool,
    ) -> UInt64s:
        """Return the words of closed groups; a star reports the faults before its group's end.

        ``overflowed`` are the sides that had overflowed before, ``faults`` the positions of the
        tuples that overflow a side.
        """
        overflow = np.zeros(len(closings.side), np.bool_)
        for side in Side:
            late = overflowed[side] | (closings.position > faults.get(side, NEVER))
            overflow |= (closings.side == side.other) & late
        words, pairs = self._emission.emit(
            closings, overflow, disorder=disorder, illegal=self._illegal, failed=self._told
        )
        self.counters["results"] += pairs
        self.counters["stars"] += len(words) - pairs
        return words
