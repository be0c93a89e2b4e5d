# SPDX-License-Identifier: Apache-2.0
"""The types of joins, and the meaning and the order of outer, semi and anti joins."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from host.arrays import Int64s
from host.errors import UsageError
from host.reference.arrivals import Arrivals, Side, places, shifted
from host.reference.join import Matches
from host.reference.window import CountWindow, Window

__all__ = [
    "Direction",
    "JoinType",
    "NO_ROW",
    "named",
    "reference_rows",
    "strict_order",
]

# A choice among few, by its name.

E = TypeVar("E", bound=Enum)


def named(
    kind: type[E], what: str, value: object, others: Mapping[str, E] = MappingProxyType({})
) -> E:
    """Return a member itself, or that of a name, in which case and underscores do not matter.

    Parameters
    ----------
    kind : type of Enum
        Whose values are the names.
    what : str
        The word that the member is given by, for the message.
    value : object
        A member, or a name.
    others : mapping, optional
        Members by further names, in lower case and without underscores.

    Raises
    ------
    UsageError
        If there is no such member.
    """
    if isinstance(value, kind):
        return value
    known = {member.value.replace("_", ""): member for member in kind} | dict(others)
    found = known.get(value.lower().replace("_", "")) if isinstance(value, str) else None
    if found is None:
        names = ", ".join(repr(member.value) for member in kind)
        raise UsageError(f"{what} must be one of {names}, not {value!r}.")
    return found


# Types of joins: whether the result has pairs, rows without a partner, or both.

NO_ROW = -1
"""Row number that stands for the missing row where a row comes alone."""


class JoinType(Enum):
    """Inner, outer, semi and anti joins.

    A row is *matched* if it is in a pair of the inner join. The result of an inner join is these
    pairs. The result of a left, right or full outer join also has, once, every unmatched row of the
    left side, of the right side or of both, with nulls in the columns of the other side. The result
    of a left semi join is every matched left row, that of a left anti join every unmatched left
    row; both have each row once, and only the left columns.

    The value of a member is its name in messages and plans.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    LEFT_SEMI = "left_semi"
    LEFT_ANTI = "left_anti"

    @classmethod
    def of(cls, how: "JoinType | str") -> "JoinType":
        """Return the type called ``how``, in any spelling that Spark accepts.

        Raises
        ------
        UsageError
            If there is no such type.
        """
        return named(cls, "how", how, _SPELLINGS)

    def tracks(self, side: Side) -> bool:
        """Return whether rows of ``side`` come alone, be it the unmatched or the matched ones."""
        if self in (JoinType.INNER, JoinType.FULL):
            return self is JoinType.FULL
        return (side is Side.S) == (self is JoinType.RIGHT)

    @property
    def has_pairs(self) -> bool:
        """Whether the result has pairs, and therefore the right columns."""
        return self not in (JoinType.LEFT_SEMI, JoinType.LEFT_ANTI)

    @property
    def wants_matched(self) -> bool:
        """Whether the one-sided rows are the matched ones."""
        return self is JoinType.LEFT_SEMI

    @property
    def answer(self) -> str:
        """Description of the result, in words."""
        return _ANSWERS[self]

    def nulls(self, side: Side) -> bool:
        """Return whether the columns of ``side`` can be null because a row is missing."""
        return self.has_pairs and self.tracks(side.other)

    def __str__(self) -> str:
        outer = self in (JoinType.LEFT, JoinType.RIGHT, JoinType.FULL)
        return f"{self.value} outer" if outer else self.value.replace("_", " ")


_ANSWERS = {
    JoinType.INNER: "the pairs",
    JoinType.LEFT: "the pairs, and every left row that is in none",
    JoinType.RIGHT: "the pairs, and every right row that is in none",
    JoinType.FULL: "the pairs, and every row of either side that is in none",
    JoinType.LEFT_SEMI: "every left row that is in a pair, once",
    JoinType.LEFT_ANTI: "every left row that is in no pair",
}

_SPELLINGS = {
    "leftouter": JoinType.LEFT,
    "rightouter": JoinType.RIGHT,
    "outer": JoinType.FULL,
    "fullouter": JoinType.FULL,
    "semi": JoinType.LEFT_SEMI,
    "anti": JoinType.LEFT_ANTI,
}


# Where an as-of join looks for the partner of a row: earlier, later, or on both sides.


class Direction(Enum):
    """The side of a left row's time on which its right row lies, as in pandas' ``merge_asof``.

    ``BACKWARD`` takes the last right row that is not later, ``FORWARD`` the first one that is not
    earlier, ``NEAREST`` the one of these two that is closer, and the earlier one if both are
    equally close. The value of a member is its name in messages and plans.
    """

    BACKWARD = "backward"
    FORWARD = "forward"
    NEAREST = "nearest"

    @classmethod
    def of(cls, direction: "Direction | str") -> "Direction":
        """Return the direction called ``direction``.

        Raises
        ------
        UsageError
            If there is no such direction.
        """
        return named(cls, "direction", direction)

    @property
    def looks_back(self) -> bool:
        """Whether an earlier right row can be a partner."""
        return self is not Direction.FORWARD

    @property
    def looks_ahead(self) -> bool:
        """Whether a later right row can be a partner."""
        return self is not Direction.BACKWARD


# The reference join of every type: the meaning and the order of outer, semi and anti joins.
#
# Pairs come by the arrival of their later row, then of their earlier row. A one-sided row
# comes when it leaves the window, because nothing that arrives later can match it. It comes
# before the pairs of the row that pushes it out.
#
# In a time-based window, a row is pushed out by the first row whose timestamp exceeds the sum of
# its timestamp and the lifespan. In a count-based window of n tuples, it is pushed out by the row
# of its own side that comes n rows after it. A row that is never pushed out comes at the end.
# Rows that leave together come in their order of arrival.


def reference_rows(
    arrivals: Arrivals, matches: Matches, window: Window, how: JoinType
) -> tuple[Int64s, Int64s]:
    """Return the results of a join of any type, given the pairs of the inner join.

    Parameters
    ----------
    arrivals : Arrivals
        Both streams, in the order of arrival.
    matches : Matches
        The pairs of the inner join.
    window : CountWindow or TimeWindow
        Window of either side.
    how : JoinType
        Type of the join.

    Returns
    -------
    r, s : array of int64
        Tuples of each result, as numbers within their own sides, in strict order; ``NO_ROW`` for a
        missing row.
    """
    pairs = matches.rows(arrivals)
    found = [pairs] if how.has_pairs else []
    for side in Side:
        if how.tracks(side):
            matched = np.zeros(int(np.count_nonzero(arrivals.side == side)), np.bool_)
            matched[pairs[side]] = True
            alone = np.flatnonzero(matched == how.wants_matched)
            none = np.full(len(alone), NO_ROW, np.int64)
            found.append((alone, none) if side is Side.R else (none, alone))
    r, s = (np.concatenate(rows) for rows in zip(*found, strict=True))
    order = strict_order(arrivals, window, r, s)
    return r[order], s[order]


def strict_order(arrivals: Arrivals, window: Window, r: Int64s, s: Int64s) -> Int64s:
    """Return the strict order of results, as a permutation.

    Parameters
    ----------
    arrivals : Arrivals
        Both streams, in the order of arrival.
    window : CountWindow or TimeWindow
        Window of either side.
    r, s : array of int64
        Tuples of each result, as numbers within their own sides, or ``NO_ROW``.
    """
    later = np.empty(len(r), np.int64)  # number of the arrival at which a result comes
    earlier = np.empty(len(r), np.int64)
    members = {side: np.flatnonzero(arrivals.side == side) for side in Side}
    both = (r != NO_ROW) & (s != NO_ROW)
    own = members[Side.R][r[both]], members[Side.S][s[both]]
    later[both], earlier[both] = np.maximum(*own), np.minimum(*own)
    for side, mine, other in ((Side.R, r, s), (Side.S, s, r)):
        alone = other == NO_ROW
        earlier[alone] = members[side][mine[alone]]
        later[alone] = _departures(arrivals, window, members[side])[mine[alone]]
    return np.lexsort((earlier, both, later))


def _departures(arrivals: Arrivals, window: Window, members: Int64s) -> Int64s:
    """Return, for each tuple of a side, the number of the arrival that pushes it out."""
    if isinstance(window, CountWindow):
        beyond = np.full(min(window.size, len(members)), len(arrivals), np.int64)
        return np.concatenate([members[window.size :], beyond])
    if arrivals.timestamp is None:
        raise UsageError("A time-based window needs arrivals with timestamps.")
    time = places(arrivals.timestamp)
    last, _ = shifted(time[members], int(window.lifespan))
    return np.searchsorted(time, last, side="right").astype(np.int64)
