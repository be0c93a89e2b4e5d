# SPDX-License-Identifier: Apache-2.0
"""What an adaptive precision decided while a join ran."""

from dataclasses import dataclass, field

__all__ = ["MOST_CHANGES", "PeriodChange", "PrecisionRecord"]

#: Number of changes that a record keeps; of more, it keeps the last ones.
MOST_CHANGES = 4_096


@dataclass(frozen=True)
class PeriodChange:
    """A change of the period.

    Parameters
    ----------
    cycle : int
        Cycles that the device had run for the join.
    tuples : int
        Tuples of the join that came before the change.
    period : int
        The new period.
    """

    cycle: int
    tuples: int
    period: int


@dataclass
class PrecisionRecord:
    """The decisions of one execution.

    Parameters
    ----------
    goal : str
        What was to be held.
    bound : int
        Longest period that could be chosen.
    first : int
        First period.
    measurements, held : int
        Number of measurements, and how many of them met the goal.
    changed : int
        Number of changes of the period.
    changes : list of PeriodChange
        The changes, or the last ones of very many.
    """

    goal: str
    bound: int
    first: int
    measurements: int = 0
    held: int = 0
    changed: int = 0
    changes: list[PeriodChange] = field(default_factory=list[PeriodChange])

    @property
    def period(self) -> int:
        """The last period."""
        return self.changes[-1].period if self.changes else self.first

    def judge(self, *, held: bool) -> None:
        """Note the outcome of a measurement."""
        self.measurements += 1
        self.held += held

    def change(self, change: PeriodChange) -> None:
        """Note a change."""
        self.changed += 1
        self.changes.append(change)
        if len(self.changes) > MOST_CHANGES:
            del self.changes[0]

    def __str__(self) -> str:
        if not self.measurements:
            return f"a star every {self.first} probes: no measurement was completed"
        return (
            f"{self.goal} held in {self.held:,} of {self.measurements:,} measurements; period "
            f"{self.first} at first, {self.period} at last, {self.changed:,} changes, "
            f"{self.bound} at most"
        )
