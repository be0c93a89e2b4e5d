# SPDX-License-Identifier: Apache-2.0
"""The interval of an elastic join that is being observed."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
import math

from host.control.pacing import Int64s

__all__ = ["Interval"]


@dataclass
class Interval:
    """What has been counted since an interval began.

    Parameters
    ----------
    before : mapping of str to int
        The counters of the device at the begin.
    staged : tuple of (int, int)
        Tuples of R and of S that had been staged by then.
    time : int
        Time of the last one of them.
    cycles : int
        Cycles that have passed.
    arrived : int
        Tuples that had arrived at the begin.
    """

    before: Mapping[str, int]
    staged: tuple[int, int]
    time: int
    cycles: int = 0
    arrived: int = 0
    _flight: int = 0  # tuples under way, summed over the looks at them
    _flights: int = 0
    _waits: int = 0  # answers whose latencies are known, and the sum of these
    _waited: int = 0

    def note_flight(self, under_way: int) -> None:
        """Count the tuples that are under way at some moment."""
        self._flights += 1
        self._flight += under_way

    def note_waits(self, waited: Int64s) -> None:
        """Take the latencies of tuples that were answered."""
        self._waits += len(waited)
        self._waited += int(waited.sum())

    def latency(self, rate: Fraction, *, is_paced: bool) -> int | None:
        """Return the mean latency in cycles; None if no tuple was answered.

        Without latencies of single tuples it is that of Little's law, at a ``rate`` of tuples per
        cycle that were taken. Where the input has a pace, tuples under way do not tell it.
        """
        if self._waits:
            return math.ceil(Fraction(self._waited, self._waits))
        if is_paced or not rate:
            return None
        return math.ceil(Fraction(self._flight, max(1, self._flights)) / rate)
