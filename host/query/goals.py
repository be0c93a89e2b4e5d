# SPDX-License-Identifier: Apache-2.0
"""What an adaptive precision holds: a rate, a latency or a queue, judged by one measurement."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from host.errors import UsageError
from host.reference.quantity import positive

__all__ = ["Demand", "Goal", "InputRate", "Latency", "Measurement", "Queue"]


class Measurement(NamedTuple):
    """What an accelerator did while one period was in force.

    Attributes
    ----------
    cycles, offered : int
        Clock cycles, and those of them in which an input word was taken or had to wait.
    tuples : int
        Tuples that were taken.
    in_flight : Fraction
        Tuples that were taken and not yet answered up to their star, on average.
    settling_offered, settling_tuples : int
        The same as ``offered`` and ``tuples``, between the last measurement and this one.
    """

    cycles: int
    offered: int
    tuples: int
    in_flight: Fraction = Fraction(0)
    settling_offered: int = 0
    settling_tuples: int = 0


class Demand(NamedTuple):
    """By which factors the accelerator would have to be faster than it was.

    Attributes
    ----------
    needed : Fraction or None
        Above one, the goal is missed, and a period below this multiple of the present one misses it
        as well. None means that no factor is large enough.
    safe : Fraction
        Below one, a period of this multiple still reaches the goal.
    carried : Fraction
        What the goal has to know at the next measurement.
    """

    needed: Fraction | None
    safe: Fraction
    carried: Fraction = Fraction(0)


class Goal(ABC):
    """A promise about the input that a period of the stars can keep or break.

    Both factors of a :class:`Demand` rest on what holds for groups of probes: with a longer period
    a tuple takes no more cycles, and with a period n times as long no less than an n-th of them.
    """

    @property
    @abstractmethod
    def text(self) -> str:
        """What is held, in a few words."""

    @abstractmethod
    def demand(self, seen: Measurement, carried: Fraction) -> Demand:
        """Return what one measurement asks for, given what the last one carried on."""

    def longest(self, probes: int) -> int | None:
        """Return the longest period that can serve the goal, for full groups of ``probes``.

        None stands for any.
        """
        return None

    def interval(self, cycles: int) -> int:
        """Return the cycles of a measurement, which are ``cycles`` or fewer."""
        return cycles

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class InputRate(Goal):
    """A rate at which the accelerator must be able to take its input.

    Parameters
    ----------
    tuples_per_cycle : int, float or Fraction
        Tuples of both sides together, per clock cycle.
    """

    tuples_per_cycle: Fraction | float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "tuples_per_cycle", positive(self.tuples_per_cycle, "tuples per cycle")
        )

    @classmethod
    def per_second(cls, tuples: float | Fraction, *, mhz: float | Fraction) -> "InputRate":
        """Return the rate of so many tuples per second at a clock of ``mhz``."""
        rate = positive(tuples, "tuples per second")
        return cls(rate / (positive(mhz, "megahertz") * 1_000_000))

    @property
    def text(self) -> str:
        """What is held, in a few words."""
        return f"{float(self.tuples_per_cycle):g} tuples per cycle"

    def demand(self, seen: Measurement, carried: Fraction) -> Demand:
        """Ask for the rate over the measured one.

        A cycle in which nothing was offered says nothing about what the accelerator could take. It
        counts as one in which nothing could be taken where the question is what is safe.
        """
        if not seen.tuples:
            return Demand(None, Fraction(1))
        rate = Fraction(self.tuples_per_cycle) / seen.tuples
        return Demand(rate * seen.offered, rate * seen.cycles)


@dataclass(frozen=True)
class Queue(Goal):
    """A bound on the tuples that wait before the accelerator if they come at a given rate.

    The queue is reckoned from the tuples that were taken. A rate that is missed for a short time is
    made up for later, as long as the queue has room.

    Parameters
    ----------
    tuples : int
        Longest queue, at least 2.
    tuples_per_cycle : int, float or Fraction
        Rate at which tuples of both sides together come.
    """

    tuples: int
    tuples_per_cycle: Fraction | float

    def __post_init__(self) -> None:
        if isinstance(self.tuples, bool) or not isinstance(self.tuples, int) or self.tuples < 2:
            raise UsageError(
                f"A queue holds a whole number of tuples from 2 on, not {self.tuples!r}."
            )
        object.__setattr__(
            self, "tuples_per_cycle", positive(self.tuples_per_cycle, "tuples per cycle")
        )

    @property
    def text(self) -> str:
        """What is held, in a few words."""
        return (
            f"a queue of at most {self.tuples:,} tuples at "
            f"{float(self.tuples_per_cycle):g} tuples per cycle"
        )

    def demand(self, seen: Measurement, carried: Fraction) -> Demand:
        """Ask that half the queue is free at the end of the next measurement.

        The other half is room for what comes before a change of the load has been measured.
        """
        rate, half = Fraction(self.tuples_per_cycle), Fraction(self.tuples, 2)
        waiting = max(Fraction(0), carried + rate * seen.settling_offered - seen.settling_tuples)
        waiting = max(Fraction(0), waiting + rate * seen.offered - seen.tuples)
        if not seen.tuples:
            return Demand(None, Fraction(1), waiting)
        needed = (waiting + rate * seen.offered - half) / seen.tuples
        return Demand(needed, max(needed, rate * seen.cycles / seen.tuples), waiting)

    def interval(self, cycles: int) -> int:
        """Return how long the input needs to fill half the queue, or fewer cycles."""
        return max(1, min(cycles, int(self.tuples / 2 / Fraction(self.tuples_per_cycle))))


@dataclass(frozen=True)
class Latency(Goal):
    """A bound on the mean cycles from the acceptance of a tuple to the star behind its results.

    The latency is that of Little's law: tuples under way over tuples per cycle. A tuple counts as
    under way until its results and those of all earlier tuples have reached the host.

    Parameters
    ----------
    cycles : int
        Clock cycles.
    """

    cycles: int

    def __post_init__(self) -> None:
        if isinstance(self.cycles, bool) or not isinstance(self.cycles, int) or self.cycles < 1:
            raise UsageError(
                f"A latency is a whole number of cycles from 1 on, not {self.cycles!r}."
            )

    @property
    def text(self) -> str:
        """What is held, in a few words."""
        return f"a latency of at most {self.cycles:,} cycles"

    def demand(self, seen: Measurement, carried: Fraction) -> Demand:
        """Ask for the measured latency over the wanted one.

        This supposes that tuples wait for the accelerator. If it waits for them, they spend their
        time in groups that are not full yet, and then only a shorter period helps.
        """
        if not seen.tuples:
            return Demand(None, Fraction(1))
        latency = seen.in_flight * seen.cycles / seen.tuples
        ratio = latency / self.cycles
        if 2 * seen.offered >= seen.cycles:
            return Demand(ratio, ratio)
        return Demand(Fraction(1), Fraction(1, 2) if ratio > 1 else Fraction(1))

    def longest(self, probes: int) -> int | None:
        """Return the length of a full group: beyond it, stars only come later."""
        return probes
