# SPDX-License-Identifier: Apache-2.0
"""What is known of a stream of rows, and what an operation does to that knowledge (seed 001)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import Any

__all__ = ["Effect", "Flag", "Traits"]


class Flag(IntFlag):
    """Dynamic properties of a source or a stage; SHORT_CIRCUIT belongs to operations only."""

    NONE = 0
    #: The number of rows is known.
    SIZED = 1
    #: There is an order of encounter that means something.
    ORDERED = 2
    #: Rows are sorted by columns that are known.
    SORTED = 4
    #: No two rows agree in columns that are known.
    DISTINCT = 8
    #: Not all input may be needed: rows are pulled, not pushed.
    SHORT_CIRCUIT = 16

    def __str__(self) -> str:
        names = [flag.name for flag in Flag if flag in self and flag.name is not None]
        return " ".join(names) or "none"


_STREAM = Flag.SIZED | Flag.ORDERED | Flag.SORTED | Flag.DISTINCT


@dataclass(frozen=True)
class Effect:
    """Two bits for each flag: an operation injects it, clears it, or (neither) preserves it.

    Parameters
    ----------
    inject, clear : Flag
        Disjoint.
    """

    inject: Flag = Flag.NONE
    clear: Flag = Flag.NONE

    def __post_init__(self) -> None:
        if self.inject & self.clear:
            raise ValueError(f"A flag cannot be injected and cleared: {self.inject & self.clear}")

    def __call__(self, flags: Flag) -> Flag:
        """Return the flags behind an operation, from those before it."""
        return (flags & ~self.clear & _STREAM) | self.inject

    def then(self, later: "Effect") -> "Effect":
        """Return the effect of this operation followed by ``later``."""
        return Effect(
            (self.inject & ~later.clear) | later.inject, (self.clear | later.clear) & ~later.inject
        )


@dataclass(frozen=True)
class Traits:
    """Flags with what they refer to.

    Parameters
    ----------
    flags : Flag
        What holds.
    rows : int or None
        Number of rows if SIZED and already counted; a source that binds late counts later.
    sorted_by, distinct_by : tuple of str
        Columns, if SORTED and DISTINCT.
    ranges : mapping of str to (low, high)
        Between which values a column lies, as far as that is known.
    """

    flags: Flag = Flag.NONE
    rows: int | None = None
    sorted_by: tuple[str, ...] = ()
    distinct_by: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def has(self, flag: Flag) -> bool:
        """Whether ``flag`` holds."""
        return flag in self.flags

    def is_sorted_by(self, columns: tuple[str, ...]) -> bool:
        """Whether sorting by ``columns`` would change nothing."""
        return self.has(Flag.SORTED) and self.sorted_by[: len(columns)] == columns

    def is_distinct_by(self, columns: tuple[str, ...]) -> bool:
        """Whether no two rows agree in all of ``columns``."""
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
        """Return the traits behind an operation; what it injects comes with its columns."""
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
        """Return the traits if nobody can tell the order."""
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
