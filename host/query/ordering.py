# SPDX-License-Identifier: Apache-2.0
"""The ordering precision of results."""

from dataclasses import dataclass

from host.errors import UsageError
from host.query.goals import Goal

__all__ = ["INTERVAL", "Ordering"]

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
        Of an inner order: stored tuples of a core in one round; zero otherwise.
    in_hardware : bool
        Whether an accelerator with rounds is to send an inner order itself.
    hold : Goal or None
        What an adaptive precision holds by its choice of the period.
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
    def inner(cls, rounds: int = 1, *, in_hardware: bool = False) -> "Ordering":
        """Return the outer order in which, besides, each probe's results come in rounds.

        A round is made of ``rounds`` stored tuples of each core, in the order in which they
        arrived. With 1, the results of a probe come in the order in which the stored tuples
        arrived. The host's sort gives that order for any number of rounds. With ``in_hardware``,
        an accelerator that can send results in rounds does so, and the host only puts the probes of
        both sides in order; any other accelerator leaves the order to the host's sort.
        """
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise ValueError(
                f"Inner ordering needs rounds of at least 1 stored tuple, not {rounds!r}"
            )
        return cls(1, rounds, in_hardware=in_hardware)

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
        :class:`~host.query.period_control.PeriodControl`. A device without a clock keeps the first
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
        if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
            raise UsageError(
                f"The interval of an adaptive ordering is a whole number of cycles from 1 on, not "
                f"{interval!r}."
            )
        return cls(most, hold=hold, interval=interval)

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
            return f"adaptive(at most {self.period}, holding {self.hold})"
        if self.rounds:
            return f"inner({self.rounds}{', in hardware' if self.in_hardware else ''})"
        if self.period == 0:
            return "none"
        return "outer" if self.period == 1 else f"relaxed({self.period})"
