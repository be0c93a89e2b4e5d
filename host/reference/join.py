# SPDX-License-Identifier: Apache-2.0
"""The reference join: the meaning of the whole kit, and the oracle of its tests.

For every tuple, in order of arrival: its results are the tuples of the other side's window at that
moment for which the predicate holds. Then it joins its own side's window.

Because a window is a range of its side's tuples, the join of a tuple is a range of ordinals and a
test of each pair. The ranges of many probes are computed at once; a band narrows them further, see
:func:`candidates`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from host.arrays import Array, Int64s, UInt64s
from host.errors import CapacityError, UsageError
from host.reference.arrivals import Arrivals, Side, places
from host.reference.predicate import DifferenceBand, Keys, Predicate, evaluate
from host.reference.window import TimeWindow, Window, window_starts

__all__ = [
    "Matches",
    "join_range",
    "reference_join",
]


#: Pairs tested at once; bounds the memory, unless a single window is larger.
BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of tuples, as indices into the arrivals, sorted by (probe, stored).

    Parameters
    ----------
    probe : array of int64
        The later tuple of each pair, the one that found it.
    stored : array of int64
        The earlier one.
    """

    probe: Int64s
    stored: Int64s

    def __len__(self) -> int:
        return len(self.probe)

    def rows(self, arrivals: Arrivals) -> tuple[Int64s, Int64s]:
        """Return ``(r, s)``: each pair's tuples as numbers among those of their own sides."""
        ordinals = arrivals.ordinals
        from_r = arrivals.side[self.probe] == Side.R
        probe, stored = ordinals[self.probe], ordinals[self.stored]
        return np.where(from_r, probe, stored), np.where(from_r, stored, probe)


def reference_join(
    arrivals: Arrivals,
    predicate: Predicate,
    window_r: Window,
    window_s: Window | None = None,
    *,
    capacity: int | None = None,
) -> Matches:
    """Join two streams over sliding windows.

    Parameters
    ----------
    arrivals : Arrivals
        Both streams, in the order of arrival.
    predicate : DifferenceBand or function
        ``predicate(r, s)``: which pairs match.
    window_r, window_s : CountWindow or TimeWindow
        Windows of the two sides; without ``window_s`` both are alike.
    capacity : int, optional
        Tuples of one side that an accelerator can hold.

    Returns
    -------
    Matches
        All pairs, sorted by (probe, stored).

    Raises
    ------
    CapacityError
        If a tuple comes when its side's time-based window holds ``capacity`` tuples already.
    UsageError
        If a time-based window meets arrivals without timestamps.
    """
    windows = {Side.R: window_r, Side.S: window_r if window_s is None else window_s}
    if arrivals.timestamp is None:
        if any(isinstance(window, TimeWindow) for window in windows.values()):
            raise UsageError("A time-based window needs arrivals with timestamps.")
        time = None
    else:
        time = places(arrivals.timestamp)
    members = {side: np.flatnonzero(arrivals.side == side) for side in Side}
    if capacity is not None:
        _require_capacity(capacity, windows, members, time)
    keys = {
        side: {name: column[members[side]] for name, column in arrivals.keys.items()}
        for side in Side
    }
    probes, stored = [], []
    for side in Side:
        mine, theirs = members[side], members[side.other]
        before = np.searchsorted(theirs, mine).astype(np.int64)
        starts = window_starts(
            windows[side.other],
            before,
            None if time is None else time[mine],
            None if time is None else time[theirs],
        )
        for probe, other in join_range(
            predicate, side, keys[side], keys[side.other], starts, before
        ):
            probes.append(mine[probe])
            stored.append(theirs[other])
    empty = np.zeros(0, np.int64)
    probe = np.concatenate([empty, *probes])
    other = np.concatenate([empty, *stored])
    order = np.lexsort((other, probe))
    return Matches(probe[order], other[order])


def join_range(
    predicate: Predicate,
    side: Side,
    probe_keys: Keys,
    stored_keys: Keys,
    starts: Int64s,
    stops: Int64s,
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield, in blocks, the matching pairs of probes with ranges of the stored tuples.

    Parameters
    ----------
    predicate : DifferenceBand or function
        Which pairs match.
    side : Side
        Side of the probes.
    probe_keys, stored_keys : mapping of str to array
        Key fields of the probes and of the other side's tuples.
    starts, stops : array of int64
        Range of stored tuples that each probe meets; neither ever decreases.

    Yields
    ------
    probe, stored : array of int64
        Indices of matching pairs, in no particular order.
    """
    begin = 0
    while begin < len(starts):
        # As many probes as meet about the same tuples, so that one sorting serves all of them.
        base = int(starts[begin])
        reach = base + 2 * max(int(stops[begin]) - base, 1024)
        end = max(begin + 1, int(np.searchsorted(stops, reach, side="right")))
        top = int(stops[end - 1])
        block = {name: column[begin:end] for name, column in probe_keys.items()}
        span = {name: column[base:top] for name, column in stored_keys.items()}
        low, high = starts[begin:end] - base, stops[begin:end] - base
        order, first, last = candidates(predicate, side, block, span, low, high)
        for probe, place in expand(first, last):
            other = place if order is None else order[place]
            if order is not None:
                inside = (other >= low[probe]) & (other < high[probe])
                probe, other = probe[inside], other[inside]
            left = {name: column[probe] for name, column in block.items()}
            right = {name: column[other] for name, column in span.items()}
            r, s = (left, right) if side is Side.R else (right, left)
            match = evaluate(predicate, r, s)
            yield probe[match] + begin, other[match] + base
        begin = end


def candidates(
    predicate: Predicate, side: Side, block: Keys, span: Keys, low: Int64s, high: Int64s
) -> tuple[Int64s | None, Int64s, Int64s]:
    """Choose, for each probe, a range of tuples that contains all its matches.

    A bounded field of a band confines a probe's matches to a range of the tuples sorted by that
    field. The range is searched in whatever order makes the ranges shortest: that of one of the
    bounded fields, or that of arrival, which confines them to the window.

    Returns
    -------
    order : array of int64 or None
        The order, as a permutation; None for that of arrival.
    first, last : array of int64
        The range of each probe in that order.
    """
    best: tuple[Int64s | None, Int64s, Int64s] = (None, low, high)
    if not isinstance(predicate, DifferenceBand):
        return best
    least = int((high - low).sum())
    if least < 8 * len(next(iter(span.values()), ())):  # sorting would cost more than it saves
        return best
    for name in predicate.closed_fields:
        if name not in span:
            continue
        values = places(span[name])
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        lowest, greatest, none = predicate.bounds[name].partners(block[name], side)
        first = np.searchsorted(ordered, lowest, side="left").astype(np.int64)
        last = np.searchsorted(ordered, greatest, side="right").astype(np.int64)
        last = np.where(none, first, np.maximum(first, last))
        total = int((last - first).sum())
        if total < least:
            best, least = (order, first, last), total
    return best


def expand(first: Int64s, last: Int64s, block: int = BLOCK) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield, about ``block`` at a time, every (i, j) with ``first[i] <= j < last[i]``."""
    counts = last - first
    total = np.cumsum(counts)
    begin, done = 0, 0
    while begin < len(counts):
        end = max(begin + 1, int(np.searchsorted(total, done + block, side="right")))
        some = counts[begin:end]
        index = np.repeat(np.arange(begin, end), some)
        ends = np.cumsum(some)
        place = np.arange(ends[-1]) - np.repeat(ends - some - first[begin:end], some)
        yield index, place
        begin, done = end, int(total[end - 1])


def _require_capacity(
    capacity: int,
    windows: dict[Side, Window],
    members: dict[Side, Array],
    time: UInt64s | None,
) -> None:
    """Raise for the first tuple that finds its side's time-based window full."""
    faults = []
    for side, window in windows.items():
        if isinstance(window, TimeWindow):
            assert time is not None
            mine = time[members[side]]
            before = np.arange(len(mine), dtype=np.int64)
            held = before - window_starts(window, before, mine, mine)
            full = held >= capacity
            if full.any():
                at = int(np.argmax(full))
                faults.append((int(members[side][at]), side, at, int(held.max()) + 1))
    if faults:
        _, side, ordinal, needed = min(faults)
        raise CapacityError(needed, capacity, side=side, is_timed=True, ordinal=ordinal)
