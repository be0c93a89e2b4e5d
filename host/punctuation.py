# SPDX-License-Identifier: Apache-2.0
"""Where groups of probes end and where the stars stand, for each ordering precision."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.arrivals import Arrivals
from host.ordering import Ordering
from host.reference import Matches
from host.side import Side

__all__ = ["Closings", "Group", "Grouper", "punctuate"]

Int64s = npt.NDArray[np.int64]

_NEVER = 1 << 62


class Closings(NamedTuple):
    """Groups in the order in which they closed; one row each.

    Attributes
    ----------
    position : array of int64
        Which tuple closed the group, counted from the start of the fed sequence.
    side : array of int64
        Side of its probes.
    probes : array of int64
        How many there are.
    star : array of bool
        Whether a star follows the group's results.
    """

    position: Int64s
    side: Int64s
    probes: Int64s
    star: npt.NDArray[np.bool_]


class _Open:
    """The open group of one side."""

    def __init__(self) -> None:
        self.count = 0  # probes in the group
        self.since_star = 0  # probes since the side's last star
        self.others = 0  # tuples of the other side since the group's first probe


class Grouper:
    """Decides after which tuple a group of probes ends, as the accelerator's ingress does.

    A group ends with its ``probes``-th probe, with the ``period``-th probe since its side's last
    star, or with the ``limit``-th tuple of the other side after its first probe. While ``period``
    is at most ``probes``, a star follows every group. Otherwise it follows only the one that
    contains the ``period``-th probe.

    Parameters
    ----------
    ordering : Ordering
        The period of the stars.
    probes : int
        Probes in a full group.
    limit : int, optional
        ``cores * slack`` of the accelerator; without it groups wait as long as it takes.
    probe_bits : int, optional
        Width of the probe index: a period of zero, or a longer one, means ``2 ** probe_bits``.
    """

    def __init__(
        self,
        ordering: Ordering,
        *,
        probes: int = 1,
        limit: int | None = None,
        probe_bits: int | None = None,
    ) -> None:
        longest = _NEVER if probe_bits is None else 1 << probe_bits
        self.probes = probes
        self.period = min(ordering.period or longest, longest)
        self.free = self.period > probes
        self.limit = _NEVER if limit is None else limit
        self._open = {side: _Open() for side in Side}

    def feed(self, sides: npt.NDArray[np.integer]) -> Closings:
        """Take the next tuples, given by their sides, and return the groups that they close."""
        parts = []
        for side in Side:
            mine = np.flatnonzero(sides == side)
            if min(self.probes, self.period) == 1:
                ends, counts, star = self._close_each(self._open[side], mine)
            else:
                others = np.flatnonzero(sides == side.other)
                ends, counts, star = self._close_full(self._open[side], mine, others)
            parts.append(Closings(ends, np.full(len(ends), side, np.int64), counts, star))
        position, sides_closed, probes = (
            np.concatenate([part[column] for part in parts]) for column in range(3)
        )
        star = np.concatenate([part.star for part in parts])
        # A word that closes both groups closes R's first; R's rows come first already.
        order = np.argsort(position, kind="stable")
        return Closings(position[order], sides_closed[order], probes[order], star[order])

    def finish(self) -> Closings:
        """Close both sides with a star each, R first, unless nothing came since the last star."""
        rows = [(0, side, group.count) for side, group in self._open.items() if group.since_star]
        self._open = {side: _Open() for side in Side}
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return Closings(columns[0], columns[1], columns[2], np.ones(len(rows), np.bool_))

    def _close_each(
        self, group: _Open, mine: Int64s
    ) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_]]:
        """Groups of one probe."""
        probes_since = group.since_star + np.arange(1, len(mine) + 1)
        star = probes_since % self.period == 0
        group.since_star = (group.since_star + len(mine)) % self.period
        return mine, np.ones(len(mine), np.int64), star

    def _close_full(
        self, group: _Open, mine: Int64s, others: Int64s
    ) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_]]:
        """Go from the end of each group to the end of the next one."""
        places, other_places = mine.tolist(), others.tolist()
        others_before = np.searchsorted(others, mine).tolist()
        mine_before = np.searchsorted(mine, others).tolist()
        ends, counts, stars = [], [], []
        taken = 0  # of mine
        passed = 0  # of the others, counted in group.others
        while group.count or taken < len(places):
            if not group.count:
                group.others, passed = 0, others_before[taken]
            full = taken + min(self.probes - group.count, self.period - group.since_star) - 1
            late = passed + self.limit - group.others - 1
            full_at = places[full] if full < len(places) else _NEVER
            late_at = other_places[late] if late < len(other_places) else _NEVER
            if full_at == late_at == _NEVER:
                group.count += len(places) - taken
                group.since_star += len(places) - taken
                group.others += len(other_places) - passed
                break
            more = (full + 1 if full_at < late_at else mine_before[late]) - taken
            star = not self.free or group.since_star + more == self.period
            ends.append(min(full_at, late_at))
            counts.append(group.count + more)
            stars.append(star)
            group.since_star = 0 if star else group.since_star + more
            group.count = 0
            taken += more
        return np.array(ends, np.int64), np.array(counts, np.int64), np.array(stars, np.bool_)


class Group(NamedTuple):
    """Probes whose results leave together.

    Attributes
    ----------
    side : Side
        Side of the probes.
    probes : array of int64
        The probes, as indices into the arrivals.
    star : bool
        Whether a star of this side follows.
    matches : array of int64
        Their results, as indices into the matches, in the order of emission.
    """

    side: Side
    probes: Int64s
    star: bool
    matches: Int64s


def punctuate(
    matches: Matches,
    arrivals: Arrivals,
    ordering: Ordering,
    *,
    probes: int = 1,
    limit: int | None = None,
    probe_bits: int | None = None,
    cores: int = 1,
) -> Iterator[Group]:
    """Say which results leave together, in which order, and where the stars stand.

    The sequence is what an accelerator emits for ``arrivals`` and a final FLUSH, provided the
    period is at most ``probes``; with a longer one, or none, results may move freely between two
    stars of their side.

    Parameters
    ----------
    matches : Matches
        Result of :func:`host.reference.reference_join`.
    arrivals : Arrivals
        What was joined.
    ordering : Ordering
        Precision.
    probes, limit, probe_bits
        As for :class:`Grouper`.
    cores : int
        Join cores: inside a group, results are ordered by core, age of the stored tuple, probe.

    Yields
    ------
    Group
        In the order of emission.
    """
    grouper = Grouper(ordering, probes=probes, limit=limit, probe_bits=probe_bits)
    closed = [grouper.feed(arrivals.side), grouper.finish()]
    members = {side: np.flatnonzero(arrivals.side == side) for side in Side}
    stored = arrivals.ordinals[matches.stored]
    order = np.lexsort((matches.probe, stored // cores, stored % cores))
    by_side = {side: order[arrivals.side[matches.probe[order]] == side] for side in Side}
    ends = {
        side: np.cumsum(np.concatenate([part.probes[part.side == side] for part in closed]))
        for side in Side
    }
    queues = {}
    for side in Side:
        number = arrivals.ordinals[matches.probe[by_side[side]]]
        group = np.searchsorted(ends[side], number, side="right")
        by_side[side] = by_side[side][np.argsort(group, kind="stable")]
        limits = np.searchsorted(np.sort(group), np.arange(len(ends[side]) + 1))
        queues[side] = iter(zip(np.r_[0, ends[side]], limits[:-1], limits[1:], strict=False))
    for part in closed:
        for number, count, star in zip(part.side, part.probes, part.star, strict=True):
            side = Side(int(number))
            begin, low, high = next(queues[side])
            some = members[side][begin : begin + count]
            yield Group(side, some, bool(star), by_side[side][low:high])
