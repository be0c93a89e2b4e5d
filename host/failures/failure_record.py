# SPDX-License-Identifier: Apache-2.0
"""What a join lost, or did again, because cores of its accelerator failed."""

from dataclasses import dataclass, field

from host.reference.side import Side

__all__ = ["CoreFailure", "FailureRecord", "LostTuples", "cause_of"]


@dataclass(frozen=True)
class LostTuples:
    """Evenly spaced tuples of one side that some probes of the other side could not meet any more.

    Tuples are numbered within their side, in the order of arrival, without rows that were not sent.

    Parameters
    ----------
    side : Side
        Side of the tuples.
    first, last : int
        Numbers of the first and of the last of them. Between them are tuples of other cores, too.
    count : int
        How many there are.
    probes_from : int
        Number of the first probe, a tuple of the other side, that could not meet them.
    """

    side: Side
    first: int
    last: int
    count: int
    probes_from: int


@dataclass(frozen=True)
class CoreFailure:
    """The failure of one core.

    Parameters
    ----------
    core : int
        Number of the core.
    cycle : int
        Cycles that the device had run for the join when the failure was noticed.
    lost : tuple of LostTuples
        What is missing; empty if the window was sent again.
    replayed : int
        Number of tuples that were sent again.
    parity : tuple of Side
        Sides of whose tuples the core read a flipped bit in its memory, if that is why it failed;
        empty if it stopped.
    """

    core: int
    cycle: int
    lost: tuple[LostTuples, ...] = ()
    replayed: int = 0
    parity: tuple[Side, ...] = ()

    def __str__(self) -> str:
        if not self.parity:
            return str(self.core)
        return f"{self.core} ({cause_of(self.parity)})"


def cause_of(parity: tuple[Side, ...]) -> str:
    """Return why a core failed that read flipped bits in its tuples of these sides."""
    return f"a flipped bit in its tuples of {' and '.join(side.name for side in parity)}"


@dataclass
class FailureRecord:
    """The failures of one execution.

    Parameters
    ----------
    failures : list of CoreFailure
        In the order in which they were noticed.
    """

    failures: list[CoreFailure] = field(default_factory=list[CoreFailure])

    @property
    def lost_tuples(self) -> int:
        """Number of tuples that some probe could not meet."""
        return sum(lost.count for failure in self.failures for lost in failure.lost)

    @property
    def replayed(self) -> int:
        """Number of tuples that were sent again."""
        return sum(failure.replayed for failure in self.failures)

    def __str__(self) -> str:
        if not self.failures:
            return "no core failed"
        cores = ", ".join(map(str, self.failures))
        text = f"failed cores: {cores}"
        if self.replayed:
            text += f"; {self.replayed:,} tuples sent again, nothing is missing"
        for failure in self.failures:
            for lost in failure.lost:
                text += (
                    f"; {lost.count:,} tuples of {lost.side.name} stored by core {failure.core}, "
                    f"numbers {lost.first:,} to {lost.last:,}, are missing for probes from "
                    f"{lost.probes_from:,} on"
                )
        return text
