# SPDX-License-Identifier: Apache-2.0
"""Known properties of a stream of rows, and the effect of an operation on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import Any

__all__ = [
    "Effect",
    "Flag",
    "Traits",
]


class Flag(IntFlag):
    """Properties of a source or of the output of an operation.

    SHORT_CIRCUIT is a property of operations only.
    """

    NONE = 0
    #: The number of rows is known.
    SIZED = 1
    #: The rows have a meaningful order of encounter.
    ORDERED = 2
    #: Rows are sorted by known columns.
    SORTED = 4
    #: No two rows agree in all of some known columns.
    DISTINCT = 8
    #: Not all of the input may be needed: rows are pulled, not pushed.
    SHORT_CIRCUIT = 16

    def __str__(self) -> str:
        names = [flag.name for flag in Flag if flag in self and flag.name is not None]
        return " ".join(names) or "none"


_STREAM = Flag.SIZED | Flag.ORDERED | Flag.SORTED | Flag.DISTINCT


@dataclass(frozen=True)
class Effect:
    """Effect of an operation on flags: it injects, clears or (neither) preserves each of them.

    Parameters
    ----------
    inject, clear : Flag
        Disjoint sets of flags.
    """

    inject: Flag = Flag.NONE
    clear: Flag = Flag.NONE

    def __post_init__(self) -> None:
        if self.inject & self.clear:
            raise ValueError(f"A flag cannot be injected and cleared: {self.inject & self.clear}")

    def __call__(self, flags: Flag) -> Flag:
        """Return the flags of an operation's output, from those of its input."""
        return (flags & ~self.clear & _STREAM) | self.inject

    def then(self, later: "Effect") -> "Effect":
        """Return the effect of this operation followed by ``later``."""
        return Effect(
            (self.inject & ~later.clear) | later.inject, (self.clear | later.clear) & ~later.inject
        )


@dataclass(frozen=True)
class Traits:
    """Flags, and the values that belong to them.

    Parameters
    ----------
    flags : Flag
        The flags that hold.
    rows : int or None
        Number of rows if SIZED and already counted; a source that is bound late counts later.
    sorted_by, distinct_by : tuple of str
        Columns that belong to SORTED and to DISTINCT.
    ranges : mapping of str to (low, high)
        Smallest and largest value of those columns for which they are known.
    """

    flags: Flag = Flag.NONE
    rows: int | None = None
    sorted_by: tuple[str, ...] = ()
    distinct_by: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def has(self, flag: Flag) -> bool:
        """Return whether ``flag`` holds."""
        return flag in self.flags

    def is_sorted_by(self, columns: tuple[str, ...]) -> bool:
        """Return whether sorting by ``columns`` would change nothing."""
        return self.has(Flag.SORTED) and self.sorted_by[: len(columns)] == columns

    def is_distinct_by(self, columns: tuple[str, ...]) -> bool:
        """Return whether no two rows agree in all of ``columns``."""
        known = bool(self.distinct_by) and set(self.distinct_by) <= set(columns)
        return self.has(Flag.DISTINCT) and known

    def after(
        self,
        effect: Effect,
        *,
        rows: int | None = None,
        sorted_by: tuple[str, ...] = (),
        distinct_by: tuple[str, ...] = (),
    ) -> "Traits":
        """Return the traits of an operation's output; injected flags get the given values."""
        flags = effect(self.flags)
        counted = rows if Flag.SIZED in effect.inject else self.rows
        order = sorted_by if Flag.SORTED in effect.inject else self.sorted_by
        unique = distinct_by if Flag.DISTINCT in effect.inject else self.distinct_by
        return replace(
            self,
            flags=flags,
            rows=counted if Flag.SIZED in flags else None,
            sorted_by=order if Flag.SORTED in flags else (),
            distinct_by=unique if Flag.DISTINCT in flags else (),
        )

    def unordered(self) -> "Traits":
        """Return the traits if the order is not observed."""
        return replace(self, flags=self.flags & ~Flag.ORDERED)

    def __str__(self) -> str:
        words = []
        for flag in Flag:
            if flag not in self.flags:
                continue
            detail = {
                Flag.SIZED: "" if self.rows is None else str(self.rows),
                Flag.SORTED: ", ".join(self.sorted_by),
                Flag.DISTINCT: ", ".join(self.distinct_by),
            }.get(flag, "")
            words.append(f"{flag}({detail})" if detail else str(flag))
        return " ".join(words) or "none"
