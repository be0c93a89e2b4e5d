# SPDX-License-Identifier: Apache-2.0
"""Where ranges of time begin, and whether they pay, by how the rows lie in time."""

from dataclasses import dataclass

from host.query.queries import JoinQuery
from host.reference.arrivals import Side
from host.reference.window import CountWindow
from spark_offload.planning.profile import OrderProfile

__all__ = ["PAYING_ROWS", "Cut", "RangeRule"]

PAYING_ROWS = 250_000
"""Rows of both inputs for which a partition pays: they take longer than cutting ranges does."""

MOST_HALO = 0.5
"""Most rows in the halo of a range, for each row of its own, if it is cut unasked."""


@dataclass(frozen=True)
class Cut:
    """Ranges of time.

    Parameters
    ----------
    starts : tuple of int
        First order numbers of all ranges but the first.
    note : str
        How many ranges there are and why.
    """

    starts: tuple[int, ...]
    note: str


@dataclass(frozen=True)
class RangeRule:
    """How the rows of a join are cut into ranges, once it is known how they lie in time.

    Parameters
    ----------
    query : JoinQuery
        The join.
    width : int or None
        Of a time-based window in order numbers; None if it is count-based.
    ranges : int
        How many ranges there are to be; unasked, at most.
    asked : bool
        Whether the user asked for that number.
    """

    query: JoinQuery
    width: int | None
    ranges: int
    asked: bool

    def cut(self, profile: OrderProfile) -> Cut:
        """Cut the rows into ranges; unasked, into as many as pay."""
        return self._as_asked(profile) if self.asked else self._unasked(profile)

    def _as_asked(self, profile: OrderProfile) -> Cut:
        starts = profile.starts(self.ranges)
        note = f"the number as asked for; {self._halo_text(profile, starts)}"
        empty = self.ranges - len(starts) - 1
        if empty:
            note += f"; {empty} of them empty, since rows of one time stay together"
        return Cut(starts, note)

    def _unasked(self, profile: OrderProfile) -> Cut:
        count = min(self.ranges, profile.total // PAYING_ROWS)
        if count < 2:
            return Cut((), f"{profile.total:,} rows are too few for ranges of time to pay")
        starts = profile.starts(count)
        share = self._halo_share(profile, starts)
        while starts and share * (len(starts) + 1) / len(starts) > MOST_HALO:
            count = max(2, count // 2) if count > 2 else 1
            starts = profile.starts(count)
            share = self._halo_share(profile, starts) if starts else share
        if not starts:
            if profile.least == profile.greatest:
                return Cut((), "all rows have one time")
            note = f"halos would dominate: two ranges of time would add {share:.0%} of the rows"
            return Cut((), note)
        number = "one for each core that Spark has" if count == self.ranges else "as many as pay"
        note = f"{number}; {self._halo_text(profile, starts)}"
        if len(starts) + 1 < count:
            note += f"; {len(starts) + 1} instead of {count}, since rows of one time stay together"
        return Cut(starts, note)

    def _halo_text(self, profile: OrderProfile, starts: tuple[int, ...]) -> str:
        return f"halos add about {self._halo_share(profile, starts):.1%} of the rows"

    def _halo_share(self, profile: OrderProfile, starts: tuple[int, ...]) -> float:
        total = max(1, profile.total)
        # How many widths of the window the halos of either side reach back.
        reaches = [2 if self.query.how.tracks(side.other) else 1 for side in Side]
        if self.width is not None:
            return sum(
                rows / total * profile.halo_share(starts, self.width * reach)
                for rows, reach in zip(profile.rows, reaches, strict=True)
            )
        window = self.query.window
        size = window.size if isinstance(window, CountWindow) else 0
        halo = 0.0
        for rows, others, reach in zip(profile.rows, profile.rows[::-1], reaches, strict=True):
            # While the other side has so many rows, this one has more or fewer.
            met = size * rows / max(1, others) if reach > 1 else 0
            halo += min(size + met, rows)
        return len(starts) * halo / total
