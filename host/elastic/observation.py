# SPDX-License-Identifier: Apache-2.0
"""What was observed of an accelerator while the same cores took turns to store."""

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Observation"]

#: Regions of a core: one holds tuples of R, the other one tuples of S.
REGIONS = 2


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Growth of the hardware counters in an interval, and the state at its end; whole numbers only.

    Parameters
    ----------
    cores : int
        Cores that took turns to store.
    least : int
        Fewest cores that can hold the windows.
    cycles : int
        Clock cycles, at least one.
    busy : int
        Cycles in which a region read a row, summed over all regions (counter ``region_busy``).
    stalled : int
        Cycles in which an input word had to wait (``ingress_stalled``).
    output : int
        Cycles in which a result word was taken or had to wait (``output_busy`` and
        ``output_stalled``).
    tuples : int
        Tuples of both sides that were taken (``tuples_r`` and ``tuples_s``).
    arrived : int
        Tuples of both sides that arrived. Without a pace of the input these are the tuples taken.
    pending : int
        Tuples that have arrived and are not answered at the end.
    window : int
        Tuples of both sides in the windows at the end.
    ahead : int
        Tuples that both windows hold once they have been refilled at the present rate.
    peak : int
        Tuples that arrive in as many cycles at the highest rate observed so far.
    latency : int or None
        Mean cycles from the arrival of a tuple to its answer; None if no tuple was answered.
    """

    cores: int
    least: int
    cycles: int
    busy: int
    stalled: int = 0
    output: int = 0
    tuples: int = 0
    arrived: int = 0
    pending: int = 0
    window: int = 0
    ahead: int = 0
    peak: int = 0
    latency: int | None = None

    @property
    def capacity(self) -> int:
        """Cycles that the regions of the cores had, summed over all regions."""
        return REGIONS * self.cores * self.cycles

    @property
    def work(self) -> Fraction:
        """Cycles of a region for each tuple, summed over all regions; zero if none was taken."""
        return Fraction(self.busy, self.tuples) if self.tuples else Fraction(0)

    @property
    def growth(self) -> Fraction:
        """Factor by which the windows, and so the work, grow at the present rate; at least one."""
        return max(Fraction(1), Fraction(self.ahead, self.window)) if self.window else Fraction(1)

    @property
    def is_short(self) -> bool:
        """Whether tuples waited most of the time, and not because results filled the output."""
        return 2 * self.stalled >= self.cycles and 10 * self.output < 9 * self.cycles

    @property
    def load(self) -> Fraction:
        """Share of the regions' cycles in which they were busy; at least one if cores are short.

        It can be above one while cores that no longer take turns still answer. A scan reads no row
        between two passes, so short passes keep it busy for less than all cycles. That is why the
        waiting input counts as well.
        """
        share = Fraction(self.busy, self.capacity)
        return max(share, Fraction(1)) if self.is_short else share
