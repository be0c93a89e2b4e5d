# SPDX-License-Identifier: Apache-2.0
"""Changes that a join makes while it runs, as a record of its execution keeps them."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["MOST_CHANGES", "ChangeLog"]

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
