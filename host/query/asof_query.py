# SPDX-License-Identifier: Apache-2.0
"""The description of an as-of join of two tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from host.errors import UsageError
from host.query.durations import Duration, as_duration
from host.query.join_query import JoinQuery, Term
from host.reference.direction import Direction
from host.reference.join_type import JoinType
from host.reference.window import CountWindow, TimeWindow

__all__ = ["AsofQuery"]


@dataclass(frozen=True, kw_only=True)
class AsofQuery:
    """Which right row each left row is joined with; :mod:`host.reference.asof` has the meaning.

    A null in a ``by`` column equals nothing, as in SQL. A null in an ``on`` column is an error,
    because such a row has no place in time.

    Parameters
    ----------
    on : (str, str)
        The left and the right column of time: integers, dates or timestamps.
    by : sequence of (str, str)
        The left and the right columns that must be equal; may be empty.
    direction : Direction or str
        Where the right row lies in time.
    tolerance : int, Duration or timedelta, optional
        Largest distance in time: a duration for temporal columns, a whole number for others.
    allow_exact_matches : bool
        Whether a right row with the same time counts.
    how : JoinType or str
        ``LEFT``: every left row is in the result, with nulls if no right row is found. ``INNER``:
        only the left rows for which one is found.
    sorted : bool
        Whether both tables are declared sorted by time; a time that decreases is then an error.
        Otherwise rows are sorted.
    suffix : str
        Appended to the names of right columns that the left table also has.
    """

    on: tuple[str, str]
    by: Sequence[tuple[str, str]] = ()
    direction: Direction = Direction.BACKWARD
    tolerance: int | Duration | timedelta | None = None
    allow_exact_matches: bool = True
    how: JoinType = JoinType.LEFT
    sorted: bool = False
    suffix: str = "_right"

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", Direction.of(self.direction))
        object.__setattr__(self, "how", JoinType.of(self.how))
        object.__setattr__(self, "on", tuple(self.on))
        object.__setattr__(self, "by", tuple((left, right) for left, right in self.by))
        if self.how not in (JoinType.LEFT, JoinType.INNER):
            raise UsageError(
                f"An as-of join is 'left' (every left row comes) or 'inner' (only those with a "
                f"right row), not {self.how.value!r}."
            )
        tolerance = self.tolerance
        if isinstance(tolerance, timedelta):
            tolerance = as_duration(tolerance)
            object.__setattr__(self, "tolerance", tolerance)
        number = tolerance.nanoseconds if isinstance(tolerance, Duration) else tolerance
        if number is None:
            return
        if isinstance(number, bool) or not isinstance(number, int):
            raise UsageError(
                f"A tolerance is a whole number, a duration or None, not {self.tolerance!r}."
            )
        if number < 0:
            raise UsageError(f"A tolerance must not be negative, but is {self.tolerance}.")

    @property
    def pairs(self) -> JoinQuery:
        """The join whose pairs are the candidates: equal keys, and a window that is the tolerance.

        Columns of an as-of join are encoded as those of this one. Without a tolerance no time is
        too far away; the window then has no unit, and its size does not matter.
        """
        tolerance = self.tolerance
        return JoinQuery(
            terms=tuple(Term(left, right) for left, right in self.by),
            order=self.on,
            window=(
                CountWindow(1)
                if tolerance is None
                else TimeWindow(tolerance)
                if isinstance(tolerance, int)
                else tolerance
            ),
            sorted=self.sorted,
            suffix=self.suffix,
            how=JoinType.LEFT,
        )

    def __str__(self) -> str:
        found = {
            Direction.BACKWARD: "the last right row with right.{1} {2}= left.{0}",
            Direction.FORWARD: "the first right row with right.{1} {3}= left.{0}",
            Direction.NEAREST: "the right row whose {1} is nearest to left.{0}",
        }[self.direction].format(*self.on, "<", ">")
        if not self.allow_exact_matches:
            found = (
                f"{found}, the same time left out"
                if self.direction is Direction.NEAREST
                else found.replace("= left", " left")
            )
        equal = "".join(f" and left.{left} = right.{right}" for left, right in self.by)
        within = "" if self.tolerance is None else f", at most {self.tolerance} away"
        return f"{self.how} as-of join: {found}{equal}{within}"
