# SPDX-License-Identifier: Apache-2.0
"""What an elastic join decided while it ran."""

from collections import deque
from dataclasses import dataclass, field

from host.control.change_log import MOST_CHANGES, ChangeLog
from host.elastic import Observation

__all__ = ["CoreChange", "CoreDecision", "ElasticRecord"]


@dataclass(frozen=True)
class CoreDecision:
    """An observation, and the number of cores that it led to.

    Parameters
    ----------
    cycle : int
        Cycles that the device had run for the join.
    seen : Observation
        What was observed.
    active : int
        Number of cores from then on.
    """

    cycle: int
    seen: Observation
    active: int


@dataclass(frozen=True)
class CoreChange:
    """A change of the cores that store.

    Parameters
    ----------
    cycle : int
        Cycles that the device had run for the join.
    tuples : int
        Tuples of the join that came before the change.
    cores : tuple of int
        The cores that store from then on, in the order of their turns.
    failed : tuple of int
        The cores that had failed just before; without any, the change is one of the controller.
    """

    cycle: int
    tuples: int
    cores: tuple[int, ...]
    failed: tuple[int, ...] = ()


@dataclass
class ElasticRecord(ChangeLog[CoreChange]):
    """The decisions of one execution, with the changes of the cores.

    Parameters
    ----------
    controller : str
        What decided.
    cores : int
        Cores that there were, all of which were in force at first.
    observations : int
        Number of observations.
    forced : int
        Number of changes because tuples that had arrived would not have fitted the cores in force.
    cycles : int
        Cycles in which the device worked.
    core_cycles : int
        The same, summed over the cores that took turns or held tuples of a window in each of them.
        The clock of any other core could have been off.
    rates : deque of (int, float)
        Cycle of each observation, and tuples that arrived per 1,000 cycles; the last ones of very
        many.
    """

    controller: str
    cores: int
    observations: int = 0
    forced: int = 0
    cycles: int = 0
    core_cycles: int = 0
    rates: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))

    def observe(self, seen: Observation) -> None:
        """Note an observation that ends now."""
        self.observations += 1
        self.rates.append((self.cycles, 1_000 * seen.arrived / seen.cycles))

    @property
    def active(self) -> int:
        """The last number of cores in force."""
        return len(self.changes[-1].cores) if self.changes else self.cores

    @property
    def saved(self) -> float:
        """Share of the cycles of all cores in which a core was not needed."""
        return 1 - self.core_cycles / (self.cores * self.cycles) if self.cycles else 0.0

    def __str__(self) -> str:
        if not self.observations:
            return f"{self.controller}: {self.cores} cores, no observation was completed"
        forced = f", {self.forced:,} of them for room" if self.forced else ""
        return (
            f"{self.controller}: {self.cores} cores at first, {self.active} at last, "
            f"{self.changed:,} changes{forced}; {self.saved:.0%} of the core cycles saved"
        )
