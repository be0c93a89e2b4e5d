# SPDX-License-Identifier: Apache-2.0
"""What an accelerator is given to do, as far as its cycles depend on it."""

from dataclasses import dataclass
import math

from host.cost_model.circuit import Circuit

__all__ = ["IDLE", "SATURATED", "Workload"]

#: ``interval`` of tuples that find the accelerator idle, and of such that it never waits for.
IDLE, SATURATED = math.inf, 0.0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Windows, rates, matches and order of one join.

    Parameters
    ----------
    windows : (float, float)
        Tuples of R, and of S, in the window when a tuple of the other side comes, on average.
    interval : float
        Cycles from one tuple of either side to the next: :data:`IDLE`, :data:`SATURATED`, or
        something between.
    share : float
        Which part of the tuples is of R.
    burst : int
        Tuples of a side that come in a row; one if the sides come in turn.
    period : int
        Probes of a side from star to star; zero for none.
    matches : float
        Pairs that a probe finds on average.
    visits, entries : float
        Of an index: buckets that a probe visits, neighbouring ones counted as one, and entries
        that it reads in all cores together.
    """

    windows: tuple[float, float]
    interval: float = SATURATED
    share: float = 0.5
    burst: int = 1
    period: int = 1
    matches: float = 0.0
    visits: float = 1.0
    entries: float = 1.0

    def share_of(self, side: int) -> float:
        """Return which part of the tuples is of a side."""
        return (1 - self.share) if side else self.share

    def ordered(self, circuit: Circuit) -> bool:
        """Whether every group ends with a star, so that cores and sides leave in order."""
        return 1 <= self.period <= circuit.probes

    def group(self, circuit: Circuit, side: int) -> float:
        """Return how many probes a group of ``side`` has.

        It ends early when ``cores * slack`` tuples of the other side came after its first probe.
        """
        full = min(circuit.probes, self.period or circuit.probes)
        own = self.share_of(side)
        if own >= 1 or self.burst > 1:
            return full
        early = circuit.cores * circuit.slack * own / (1 - own) + 1
        return max(1.0, min(full, early))

    def mean_group(self, circuit: Circuit) -> float:
        """Return how many probes the group of a tuple has, on average."""
        return sum(self.share_of(side) * self.group(circuit, side) for side in (0, 1))

    def stars(self, circuit: Circuit, side: int) -> float:
        """Return the stars for each probe of ``side``."""
        if self.ordered(circuit):
            return 1 / self.group(circuit, side)
        return 1 / self.period if self.period else 0.0
