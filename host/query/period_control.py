# SPDX-License-Identifier: Apache-2.0
"""The law of adaptive precision: from one measurement to the next period, without any device."""

from dataclasses import dataclass
from fractions import Fraction
import math

from host.query.goals import Goal, Measurement

__all__ = ["MARGIN", "PATIENCE", "Judgement", "PeriodControl"]

#: How much more than needed a shorter period must still give.
MARGIN = Fraction(9, 8)
#: Measurements in a row that must allow a shorter period.
PATIENCE = 2


@dataclass(frozen=True)
class Judgement:
    """What a controller made of one measurement.

    Parameters
    ----------
    period : int
        The period from now on.
    held : bool
        Whether the goal was met under the period before.
    """

    period: int
    held: bool


class PeriodControl:
    """Widens the period as far as a goal needs, and narrows it as far as the goal surely allows.

    With the factors ``needed`` and ``safe`` of :class:`~host.query.goals.Demand` and a period
    ``p``:

    - If ``needed > 1``, the next period is ``ceil(p * needed)``, and the bound at most.
    - If ``ceil(p * safe * MARGIN) < p`` in ``PATIENCE`` measurements in a row, the next period is
      that number, and ``ceil(p / 2)`` at least.
    - Otherwise the period stays.

    Under a constant load the period settles. Let ``T(p)`` be the cycles per tuple. A group of
    probes shares one pass over the window, so ``T`` does not rise with ``p``, and ``p * T(p)`` does
    not fall. From the second fact follows that ``ceil(p * needed)`` is no longer than the shortest
    period that reaches the goal. Widening therefore never goes too far, and as each step is one at
    least, it ends at that period or at the bound. It also follows that a period chosen by narrowing
    reaches the goal with the margin, so nothing widens it again: from then on periods only fall. A
    measurement that errs by less than the margin, an eighth, does not change that.

    Parameters
    ----------
    goal : Goal
        What is to be held.
    bound : int
        Longest period.
    probes : int, optional
        Probes in a full group of the accelerator.

    Attributes
    ----------
    bound : int
        Longest period that is ever chosen.
    period : int
        Present period. The first one is that of full groups, or the bound if that is shorter: the
        fastest one but for what rare stars gain.
    """

    def __init__(self, goal: Goal, bound: int, *, probes: int = 1) -> None:
        longest = goal.longest(probes)
        self.goal = goal
        self.bound = max(1, bound if longest is None else min(bound, longest))
        self.period = min(self.bound, max(1, probes))
        self._carried = Fraction(0)
        self._spare = 0  # measurements in a row that allow a shorter period

    def see(self, seen: Measurement) -> Judgement:
        """Take a measurement that was made under :attr:`period`, and choose the next period."""
        demand = self.goal.demand(seen, self._carried)
        self._carried = demand.carried
        held = demand.needed is not None and demand.needed <= 1
        if not held:
            self._spare = 0
            wanted = self.bound
            if demand.needed is not None:
                wanted = min(self.bound, math.ceil(self.period * demand.needed))
            self.period = max(self.period, wanted)
            return Judgement(self.period, held)
        least = max(1, math.ceil(self.period * demand.safe * MARGIN))
        if least >= self.period:
            self._spare = 0
            return Judgement(self.period, held)
        self._spare += 1
        if self._spare >= PATIENCE:
            self._spare = 0
            self.period = max(least, -(-self.period // 2))
        return Judgement(self.period, held)
