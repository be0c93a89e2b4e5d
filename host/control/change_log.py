# SPDX-License-Identifier: Apache-2.0
"""Changes that a join makes while it runs, as a record of its execution keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["MOST_CHANGES", "ChangeLog", "corners"]

Change = TypeVar("Change")

#: Number of changes that a log keeps; of more, it keeps the last ones.
MOST_CHANGES = 4_096


@dataclass(kw_only=True)
class ChangeLog(Generic[Change]):
    """The last changes, and the number of all of them.

    Parameters
    ----------
    changed : int
        Number of changes.
    changes : list
        The changes, or the last ones of very many.
    """

    changed: int = 0
    changes: list[Change] = field(default_factory=list[Change])

    def change(self, change: Change) -> None:
        """Note a change."""
        self.changed += 1
        self.changes.append(change)
        if len(self.changes) > MOST_CHANGES:
            del self.changes[0]


def corners(changes: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Return the corners of a line that keeps each value until the next one begins.

    Parameters
    ----------
    changes : sequence of (float, float)
        When each value begins, in order, and the value; at least one.
    end : float
        Where the line ends, if no change is later.
    """
    ends = [at for at, _ in changes[1:]] + [max(end, changes[-1][0])]
    return [
        (at, value)
        for (begin, value), after in zip(changes, ends, strict=True)
        for at in (begin, after)
    ]
