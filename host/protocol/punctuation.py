# SPDX-License-Identifier: Apache-2.0
"""Where groups of probes end and where the stars stand, for each ordering precision."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.arrays import Bools, Int64s
from host.query.ordering import Ordering
from host.reference.arrivals import Side

__all__ = [
    "Closings",
    "Grouper",
]


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
    star: Bools


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
        Width of the probe index: a longer period means ``2 ** probe_bits``. A period of zero means
        no star but those of :meth:`finish`.
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
        self.period = min(ordering.period, longest) or _NEVER
        self.free = self.period > probes
        self.limit = _NEVER if limit is None else limit
        self._open = {side: _Open() for side in Side}

    def feed(self, sides: npt.NDArray[np.integer]) -> Closings:
        """Take the next tuples, given by their sides, and return the groups that they close."""
        return self.feed_places({side: np.flatnonzero(sides == side) for side in Side})

    def feed_places(self, places: Mapping[Side, Int64s]) -> Closings:
        """The same, given by the places of each side's tuples in the fed sequence, ascending."""
        parts = []
        for side in Side:
            if min(self.probes, self.period) == 1:
                ends, counts, star = self._close_each(self._open[side], places[side])
            else:
                ends, counts, star = self._close_full(
                    self._open[side], places[side], places[side.other]
                )
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

    def _close_each(self, group: _Open, mine: Int64s) -> tuple[Int64s, Int64s, Bools]:
        """Groups of one probe."""
        probes_since = group.since_star + np.arange(1, len(mine) + 1)
        star = probes_since % self.period == 0
        group.since_star = (group.since_star + len(mine)) % self.period
        return mine, np.ones(len(mine), np.int64), star

    def _close_full(
        self, group: _Open, mine: Int64s, others: Int64s
    ) -> tuple[Int64s, Int64s, Bools]:
        """Go from the end of each group to the end of the next one.

        Runs of groups that are full before they are late follow from the places alone; any other
        group is closed by itself.
        """
        closed: list[tuple[Int64s, Int64s, Bools]] = []
        taken = 0  # of mine
        passed = 0  # of the others, counted in group.others
        alone, patience = 0, 1  # groups to close by themselves before a run is tried again
        while group.count or taken < len(mine):
            if not group.count:
                if not alone:
                    run = self._full_run(group, mine, taken)
                    if len(run[0]):
                        closed.append(run)
                        taken += int(run[1].sum())
                        patience = 1
                        continue
                    alone, patience = patience, min(2 * patience, 64)
                alone -= 1
                group.others, passed = 0, int(mine[taken]) - taken
            full = taken + min(self.probes - group.count, self.period - group.since_star) - 1
            late = passed + self.limit - group.others - 1
            full_at = int(mine[full]) if full < len(mine) else _NEVER
            late_at = int(others[late]) if late < len(others) else _NEVER
            if full_at == late_at == _NEVER:
                group.count += len(mine) - taken
                group.since_star += len(mine) - taken
                group.others += len(others) - passed
                break
            more = (full + 1 if full_at < late_at else late_at - late) - taken
            star = not self.free or group.since_star + more == self.period
            closed.append(
                (
                    np.array([min(full_at, late_at)]),
                    np.array([group.count + more]),
                    np.array([star]),
                )
            )
            group.since_star = 0 if star else group.since_star + more
            group.count = 0
            taken += more
        closed.append((np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)))
        ends, counts, stars = zip(*closed, strict=True)
        return np.concatenate(ends), np.concatenate(counts), np.concatenate(stars)

    def _full_run(self, group: _Open, mine: Int64s, taken: int) -> tuple[Int64s, Int64s, Bools]:
        """Close the groups that follow, from one that begins, as long as none is late."""
        left = len(mine) - taken
        since = group.since_star
        limits = self._full_ends(since, left // min(self.probes, self.period) + 2)
        limits = limits[: int(np.searchsorted(limits, left, side="right"))]
        starts = taken + np.concatenate([np.zeros(1, np.int64), limits[:-1]])[: len(limits)]
        lasts = taken + limits - 1
        ends = mine[lasts]
        # Before a tuple stand its place, less those of its own side, of the others.
        in_time = (ends - lasts) - (mine[starts] - starts) < self.limit
        count = len(limits) if in_time.all() else int(np.argmin(in_time))
        limits, ends = limits[:count], ends[:count]
        if count:
            group.since_star = (since + int(limits[-1])) % self.period
        counts = limits - np.concatenate([np.zeros(1, np.int64), limits[:-1]])[:count]
        return ends, counts, (since + limits) % self.period == 0

    def _full_ends(self, since: int, count: int) -> Int64s:
        """How many probes come to the ends of the next full groups, ``since`` after a star."""
        numbers = np.arange(count)
        here = -(-(self.period - since) // self.probes)  # groups up to the next star
        each = -(-self.period // self.probes)  # … and from star to star
        first = np.minimum(since + (numbers + 1) * self.probes, self.period)
        periods, place = np.divmod(numbers - here, each)
        later = self.period * (periods + 1) + np.minimum((place + 1) * self.probes, self.period)
        return np.where(numbers < here, first, later) - since
