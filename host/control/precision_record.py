# SPDX-License-Identifier: Apache-2.0
"""What an adaptive precision decided while a join ran."""

from dataclasses import dataclass

from host.control.change_log import ChangeLog

__all__ = ["PeriodChange", "PrecisionRecord"]


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
class PrecisionRecord(ChangeLog[PeriodChange]):
    """The decisions of one execution, with the changes of the period.

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
    """

    goal: str
    bound: int
    first: int
    measurements: int = 0
    held: int = 0

    @property
    def period(self) -> int:
        """The last period."""
        return self.changes[-1].period if self.changes else self.first

    def judge(self, *, held: bool) -> None:
        """Note the outcome of a measurement."""
        self.measurements += 1
        self.held += held

    def __str__(self) -> str:
        if not self.measurements:
            return f"a star every {self.first} probes: no measurement was completed"
        return (
            f"{self.goal} held in {self.held:,} of {self.measurements:,} measurements; period "
            f"{self.first} at first, {self.period} at last, {self.changed:,} changes, "
            f"{self.bound} at most"
        )
