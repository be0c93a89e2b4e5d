# SPDX-License-Identifier: Apache-2.0
"""Which rows a join answers with: pairs, rows besides them, or rows instead of them."""

from enum import Enum

from host.errors import UsageError
from host.side import Side

__all__ = ["NO_ROW", "JoinType"]

NO_ROW = -1
"""The number of the row that is missing where a row comes alone."""


class JoinType(Enum):
    """Inner, outer, semi and anti joins.

    A row is *matched* if it is in a pair of the inner join. An inner join answers with the pairs. A
    left, right or full outer join answers with the pairs and, once, every row of the left side, of
    the right side or of both that is not matched, with nulls for the columns of the other side.
    A left semi join answers with every matched left row, a left anti join with every other one;
    both once and with the left columns only.

    The value is the name that messages and plans have.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    LEFT_SEMI = "left_semi"
    LEFT_ANTI = "left_anti"

    @classmethod
    def of(cls, how: "JoinType | str") -> "JoinType":
        """Return the type called ``how``, in any spelling that Spark takes.

        Raises
        ------
        UsageError
            If there is none.
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
        """Whether rows of ``side`` come alone: those that are not matched, or those that are."""
        if self in (JoinType.INNER, JoinType.FULL):
            return self is JoinType.FULL
        return (side is Side.S) == (self is JoinType.RIGHT)

    @property
    def has_pairs(self) -> bool:
        """Whether pairs are part of the answer, and so the right columns."""
        return self not in (JoinType.LEFT_SEMI, JoinType.LEFT_ANTI)

    @property
    def wants_matched(self) -> bool:
        """Whether the rows that come alone are those that are matched."""
        return self is JoinType.LEFT_SEMI

    @property
    def answer(self) -> str:
        """What the answer is made of, in words."""
        return _ANSWERS[self]

    def nulls(self, side: Side) -> bool:
        """Whether the columns of ``side`` can be null for want of a row."""
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
