# SPDX-License-Identifier: Apache-2.0
"""The ordering precision of results: its forms and text, and the goals of an adaptive one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
import math
import re
from typing import NamedTuple

from host.errors import UsageError
from host.query.cores import Control, Observation
from host.query.quantities import positive, whole

__all__ = [
    "Demand",
    "FORMS",
    "Goal",
    "INTERVAL",
    "InputRate",
    "Latency",
    "MARGIN",
    "Ordering",
    "PATIENCE",
    "PeriodControl",
    "Queue",
    "parse_ordering",
]

# What an adaptive precision holds: a rate, a latency or a queue, judged by one measurement.


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

    @abstractmethod
    def __str__(self) -> str:
        """Say what is held, in a few words."""

    @abstractmethod
    def demand(self, seen: Observation, carried: Fraction) -> Demand:
        """Return what one measurement asks for, given what the last one carried on."""

    def longest(self, probes: int) -> int | None:
        """Return the longest period that can serve the goal, for full groups of ``probes``.

        None stands for any.
        """
        return None

    def interval(self, cycles: int) -> int:
        """Return the cycles of a measurement, which are ``cycles`` or fewer."""
        return cycles


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

    def __str__(self) -> str:
        return f"{float(self.tuples_per_cycle):g} tuples per cycle"

    def demand(self, seen: Observation, carried: Fraction) -> Demand:
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
        whole(self.tuples, "A queue holds a whole number of tuples", 2)
        object.__setattr__(
            self, "tuples_per_cycle", positive(self.tuples_per_cycle, "tuples per cycle")
        )

    def __str__(self) -> str:
        return (
            f"a queue of at most {self.tuples:,} tuples at "
            f"{float(self.tuples_per_cycle):g} tuples per cycle"
        )

    def demand(self, seen: Observation, carried: Fraction) -> Demand:
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
        whole(self.cycles, "A latency is a whole number of cycles")

    def __str__(self) -> str:
        return f"a latency of at most {self.cycles:,} cycles"

    def demand(self, seen: Observation, carried: Fraction) -> Demand:
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


# The ordering precision of results.

#: Cycles after which an adaptive precision looks at the counters, unless the caller says otherwise.
INTERVAL = 8_192


@dataclass(frozen=True)
class Ordering:
    """Ordering precision; construct it with one of the class methods.

    :meth:`outer`, :meth:`inner`, :meth:`relaxed`, :meth:`none` and :meth:`adaptive` say what they
    mean; ``docs/ordering.md`` says what a consumer may rely on for each.

    Parameters
    ----------
    period : int
        Number of probes of a side per star; zero for no ordering. An adaptive precision never goes
        beyond this number.
    rounds : int
        Of an inner order: stored tuples of a core in one round, at most if it adapts; zero
        otherwise.
    in_hardware : bool
        Whether an accelerator with rounds is to send an inner order itself.
    hold : Goal or None
        What an adaptive precision holds by its choice of the period, or of the rounds.
    interval : int
        Cycles of one measurement of an adaptive precision.
    """

    period: int
    rounds: int = 0
    hold: Goal | None = None
    interval: int = INTERVAL
    in_hardware: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.period, bool) or not isinstance(self.period, int) or self.period < 0:
            raise ValueError(
                f"Ordering period must be an integer of at least 0, not {self.period!r}"
            )

    @classmethod
    def outer(cls) -> "Ordering":
        """Return the precision with results in the order of their probes: a star per probe."""
        return cls(1)

    @classmethod
    def inner(
        cls,
        rounds: int = 1,
        *,
        in_hardware: bool = False,
        hold: Goal | None = None,
        interval: int = INTERVAL,
    ) -> "Ordering":
        """Return the outer order in which, besides, each probe's results come in rounds.

        A round is made of ``rounds`` stored tuples of each core, in the order in which they
        arrived. With 1, the results of a probe come in the order in which the stored tuples
        arrived. The host's sort gives that order for any number of rounds. With ``in_hardware``,
        an accelerator that can send results in rounds does so, and the host only puts the probes of
        both sides in order; any other accelerator leaves the order to the host's sort.

        Parameters
        ----------
        rounds : int
            Stored tuples of a core in one round.
        in_hardware : bool
            Whether an accelerator with rounds is to send them.
        hold : InputRate or Queue, optional
            What rounds in hardware adapt to: they are as short as it permits, and ``rounds``, a
            power of two, at most. Rounds of any of these sizes are in the order of the longest.
        interval : int
            Least number of cycles in a measurement of ``hold``.

        Raises
        ------
        UsageError
            If ``hold`` and the other arguments do not go together.
        """
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise ValueError(
                f"Inner ordering needs rounds of at least 1 stored tuple, not {rounds!r}"
            )
        if hold is None:
            return cls(1, rounds, in_hardware=in_hardware)
        if not isinstance(hold, InputRate | Queue):
            raise UsageError(
                f"An inner ordering holds an InputRate or a Queue, not {hold!r}: longer rounds "
                f"never make a tuple slower."
            )
        if rounds < 2 or rounds & (rounds - 1):
            raise UsageError(
                f"An inner ordering that adapts needs a longest round of 2, 4, 8, ... stored "
                f"tuples, not {rounds}: rounds are powers of two."
            )
        return cls(1, rounds, hold, _interval(interval), in_hardware=True)

    @classmethod
    def relaxed(cls, period: int) -> "Ordering":
        """Return the precision with a star every ``period`` probes of a side.

        The order of the results between two stars is up to the device.
        """
        if period < 1:
            raise ValueError(f"Relaxed ordering needs a period of at least 1, not {period!r}")
        return cls(period)

    @classmethod
    def none(cls) -> "Ordering":
        """Return the precision without ordering; the device sends only the stars that it needs."""
        return cls(0)

    @classmethod
    def adaptive(cls, most: int, hold: Goal, *, interval: int = INTERVAL) -> "Ordering":
        """Return a precision that chooses its period while it runs, ``most`` probes at most.

        The period is as short as ``hold`` permits, by the counters of the accelerator; see
        :class:`PeriodControl`. A device without a clock keeps the first
        period, which is that of full groups or ``most``, whichever is shorter.

        Parameters
        ----------
        most : int
            Longest period, at least 2.
        hold : InputRate, Latency or Queue
            What the period is chosen for.
        interval : int
            Least number of cycles in a measurement.

        Raises
        ------
        UsageError
            If an argument will not do.
        """
        if isinstance(most, bool) or not isinstance(most, int) or most < 2:
            raise UsageError(
                f"An adaptive ordering needs a longest period of at least 2 probes, not {most!r}; "
                f"with 1 there is nothing to choose, and Ordering.outer() says so."
            )
        if not isinstance(hold, Goal):
            raise UsageError(
                f"An adaptive ordering holds an InputRate, a Latency or a Queue, not {hold!r}."
            )
        return cls(most, hold=hold, interval=_interval(interval))

    @property
    def meaning(self) -> str:
        """What a consumer may rely on, in a sentence without an end."""
        if self.rounds or self.period == 1:
            return f"{self}: by the later row of a pair, then by the earlier one"
        if self.period == 0:
            return "none: in any order"
        return (
            f"{self}: of each side, the results of a row after those of all rows "
            f"{self.period} or more before it"
        )

    def __str__(self) -> str:
        if self.hold is not None:
            kind, most = ("inner", self.rounds) if self.rounds else ("adaptive", self.period)
            return f"{kind}(at most {most}, holding {self.hold})"
        if self.rounds:
            return f"inner({self.rounds}{', in hardware' if self.in_hardware else ''})"
        if self.period == 0:
            return "none"
        return "outer" if self.period == 1 else f"relaxed({self.period})"


def _interval(cycles: int) -> int:
    """Return the cycles of a measurement, which are at least one."""
    return whole(cycles, "The interval of an adaptive ordering is a whole number of cycles")


# Orderings as text, for command lines.

#: The forms that :func:`parse_ordering` reads.
FORMS = (
    "none, outer, inner, inner:Q, inner:Q:hardware, inner:Q:rate=RATE, inner:Q:queue=TUPLES@RATE, "
    "relaxed:P, adaptive:P:rate=RATE, adaptive:P:latency=CYCLES or adaptive:P:queue=TUPLES@RATE, "
    "where P is the longest period in probes, Q the longest round in stored tuples, and RATE is in "
    "tuples per cycle, or per second at a clock as in 2000000/s@142MHz"
)

_PER_SECOND = re.compile(r"(?P<tuples>[^/@]+)/s@(?P<mhz>.+)MHz", re.IGNORECASE)


def parse_ordering(text: str, option: str = "--ordering") -> Ordering:
    """Read an ordering in one of the :data:`FORMS`.

    Raises
    ------
    UsageError
        If the text is none, with the option and what it takes.
    """
    kind, *parts = text.strip().split(":")
    try:
        match kind, parts:
            case "none", []:
                return Ordering.none()
            case "outer", []:
                return Ordering.outer()
            case "inner", []:
                return Ordering.inner()
            case "inner", [rounds]:
                return Ordering.inner(_whole(rounds))
            case "inner", [rounds, "hardware"]:
                return Ordering.inner(_whole(rounds), in_hardware=True)
            case "inner", [rounds, goal]:
                return Ordering.inner(_whole(rounds), hold=_goal(goal))
            case "relaxed", [period]:
                return Ordering.relaxed(_whole(period))
            case "adaptive", [most, goal]:
                return Ordering.adaptive(_whole(most), _goal(goal))
            case _:
                raise UsageError("That is none of them")
    except (UsageError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise UsageError(f"{option} takes {FORMS}, not {text!r}. {reason}.") from None


def _goal(text: str) -> Goal:
    name, _, value = text.partition("=")
    if name == "rate":
        return _rate(value)
    if name == "latency":
        return Latency(_whole(value))
    if name == "queue":
        tuples, _, rate = value.partition("@")
        return Queue(_whole(tuples), _rate(rate).tuples_per_cycle)
    raise UsageError(f"Nothing called {name!r} can be held")


def _rate(text: str) -> InputRate:
    found = _PER_SECOND.fullmatch(text)
    if found is None:
        return InputRate(positive(text, "tuples per cycle"))
    tuples = positive(found["tuples"], "tuples per second")
    return InputRate.per_second(tuples, mhz=positive(found["mhz"], "megahertz"))


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise UsageError(f"{text!r} is no whole number")
    return int(text)


# The law of adaptive precision: from one measurement to the next period, without any device.

#: How much more than needed a shorter period must still give.
MARGIN = Fraction(9, 8)
#: Measurements in a row that must allow a shorter period.
PATIENCE = 2


class PeriodControl(Control):
    """Widens the period as far as a goal needs, and narrows it as far as the goal surely allows.

    With the factors ``needed`` and ``safe`` of :class:`Demand` and a period
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
    powers : bool, optional
        Whether a period is a power of two, as rounds of stored tuples are; so is the bound then.
        Each period that is chosen is rounded up to one.

    Attributes
    ----------
    bound : int
        Longest period that is ever chosen.
    period : int
        Present period. The first one is that of full groups, or the bound if that is shorter: the
        fastest one but for what rare stars gain.
    held : bool
        Whether the goal was met under the period before the last one was chosen.
    """

    def __init__(self, goal: Goal, bound: int, *, probes: int = 1, powers: bool = False) -> None:
        longest = goal.longest(probes)
        self.goal = goal
        self._powers = powers
        self.bound = max(1, bound if longest is None else min(bound, longest))
        self.period = min(self.bound, max(1, probes))
        self.held = False
        self._carried = Fraction(0)
        self._spare = 0  # measurements in a row that allow a shorter period

    def see(self, seen: Observation) -> int:
        """Take what was observed under :attr:`period`, and choose the next period."""
        demand = self.goal.demand(seen, self._carried)
        self._carried = demand.carried
        self.held = demand.needed is not None and demand.needed <= 1
        if not self.held:
            self._spare = 0
            wanted = self.bound
            if demand.needed is not None:
                wanted = min(self.bound, self._whole(self.period * demand.needed))
            self.period = max(self.period, wanted)
            return self.period
        least = self._whole(self.period * demand.safe * MARGIN)
        self._spare = self._spare + 1 if least < self.period else 0
        if self._spare >= PATIENCE:
            self._spare = 0
            self.period = max(least, -(-self.period // 2))
        return self.period

    def _whole(self, period: Fraction) -> int:
        """Return the shortest period that there is from ``period`` on."""
        whole = max(1, math.ceil(period))
        return 1 << (whole - 1).bit_length() if self._powers else whole
