# SPDX-License-Identifier: Apache-2.0
"""Offer tuples to a device no earlier than they arrive by the time in their order column."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from host.cores.failed_cores import NewTurns
from host.device import Device
from host.device.thread import Finished
from host.encode.times import TimePlan
from host.errors import UsageError
from host.exchange.staging import Staging
from host.reference.exact import UInt64s
from host.reference.quantity import positive
from host.tuples.intake import Arrived
from host.words import WordCodec

__all__ = ["QUANTUM", "ROWS", "Pacing"]

Int64s = npt.NDArray[np.int64]

#: Cycles of an exchange at most: a tuple is offered, and its answer is seen, up to so many late.
QUANTUM = 128
#: Rows of a side that are staged at once, and words that wait: few, as a real stream has no later
#: ones to show.
ROWS = 4


class Pacing:
    """Arrivals of the tuples of one execution, in cycles of its device.

    A tuple arrives when the device has run as many cycles as the pace gives to its time, counted
    from timestamp zero.

    Parameters
    ----------
    pace : int, float or Fraction
        Clock cycles that pass while the left order column advances by one of its units.
    times : TimePlan
        How the order columns become timestamps.
    device : Device
        The device, which must have a clock.
    staging : Staging
        The words that wait; it holds those of the configuration.

    Attributes
    ----------
    cycles : float
        Clock cycles for a unit of the timestamps.
    longest : int
        Most cycles from the arrival of a tuple to its answer.
    """

    def __init__(
        self, pace: Fraction | float, times: TimePlan, device: Device, staging: Staging
    ) -> None:
        of_unit = positive(pace, "cycles for a unit of time")
        self.cycles = float(of_unit * times.divisor / times.factors[0])
        self._device, self._codec = device, WordCodec(device.manifest)
        # A word of an earlier query may wait before those of the configuration.
        self._accepted = -int(self._codec.tuple_counts(staging.words).sum())
        self._due: Int64s = np.zeros(0, np.int64)
        self._first = 0  # number of the tuple at index 0
        self._answered = 0
        self.longest = 0

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""
        due = np.ceil(arrived.times.astype(np.float64) * self.cycles)
        self._due = np.concatenate([self._due, due.astype(np.int64)])

    def go_on(self, turns: NewTurns) -> None:
        """Take note of a failure, behind which tuples that have arrived may be sent again."""
        if turns.first is not None:
            self._accepted -= self._first + len(self._due) - sum(turns.first.values())

    def arrived(self, cycle: int) -> int:
        """Return how many tuples have arrived, of those staged."""
        return self._first + int(np.searchsorted(self._due, cycle, side="right"))

    def due_words(self, words: UInt64s, cycle: int) -> int:
        """Return how many of the waiting words may be offered.

        Parameters
        ----------
        words : array of uint64
            The words.
        cycle : int
            Cycles that the device has run.
        """
        ends = self._accepted + np.cumsum(self._codec.tuple_counts(words))
        return int(np.searchsorted(ends, self.arrived(cycle), side="right"))

    def answer(self, complete: int, cycle: int) -> Int64s:
        """Return the cycles that each tuple waited which is answered since the last call."""
        begin, self._answered = self._answered, max(self._answered, complete)
        waited = cycle - self._due[begin - self._first : self._answered - self._first]
        if len(waited):
            self.longest = max(self.longest, int(waited.max()))
        self._due = self._due[self._answered - self._first :]
        self._first = self._answered
        return waited

    def settle(self, finished: Finished) -> None:
        """Take the outcome of an exchange.

        Raises
        ------
        UsageError
            If the device has no clock, so that no tuple would ever arrive.
        """
        done = finished.done
        if not done.cycles:
            raise UsageError(
                f"Device {self._device.uri!r} has no clock, so its input cannot have a pace; use a "
                f"simulated device, or leave the pace out."
            )
        self._accepted += int(self._codec.tuple_counts(finished.words[: done.accepted]).sum())
