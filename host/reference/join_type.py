# SPDX-License-Identifier: Apache-2.0
"""Types of joins: whether the result has pairs, rows without a partner, or both."""

from enum import Enum

from host.errors import UsageError
from host.reference.side import Side

__all__ = ["NO_ROW", "JoinType"]

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
        if isinstance(how, cls):
            return how
        found = _SPELLINGS.get(how.lower().replace("_", "")) if isinstance(how, str) else None
        if found is None:
            raise UsageError(
                f"how must be one of {', '.join(repr(kind.value) for kind in cls)}, not {how!r}."
            )
        return found

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
        """Whether the rows that come alone are the matched ones."""
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
    "inner": JoinType.INNER,
    "left": JoinType.LEFT,
    "leftouter": JoinType.LEFT,
    "right": JoinType.RIGHT,
    "rightouter": JoinType.RIGHT,
    "full": JoinType.FULL,
    "outer": JoinType.FULL,
    "fullouter": JoinType.FULL,
    "semi": JoinType.LEFT_SEMI,
    "leftsemi": JoinType.LEFT_SEMI,
    "anti": JoinType.LEFT_ANTI,
    "leftanti": JoinType.LEFT_ANTI,
}
