# SPDX-License-Identifier: Apache-2.0
"""One point of a sweep: an accelerator, and the load that it is measured under."""

from dataclasses import dataclass

from host.query.ordering import Ordering

__all__ = ["Point"]


@dataclass(frozen=True)
class Point:
    """What is measured; two equal points on the same circuit give the same numbers.

    The sides alternate, and the values of every field are uniform in 1 .. 10,000, as in the paper.

    Parameters
    ----------
    accelerator : str
        Name in :data:`bench.experiments.accelerators.ACCELERATORS`.
    window : int
        Tuples of each side in the window.
    timed : bool
        Whether the window is time-based; a tick then passes from one pair of tuples to the next.
    period : int
        Probes of a side per star; 1 is the strict outer order, 0 sends no stars. Chains of cores
        have no stars.
    interval : int
        Cycles from one tuple to the next; 0 offers tuples as fast as they are accepted.
    width : int
        Two tuples match if every field differs by at most this much; -1 asks for equality.
    tuples : int
        Tuples of both sides that are counted once the windows are full.
    values : int
        Number of different values of a field.
    skew : float
        Exponent of a Zipf distribution of the values; 0 for uniform values.
    rounds : int
        Stored tuples of a core per round of an inner order in hardware; 0 for no rounds.
    """

    accelerator: str
    window: int
    timed: bool = False
    period: int = 1
    interval: int = 0
    width: int = 158
    tuples: int = 400
    values: int = 10_000
    skew: float = 0.0
    rounds: int = 0

    @property
    def ordering(self):
        """The ordering precision that the accelerator is set to."""
        if self.rounds:
            return Ordering.inner(self.rounds, in_hardware=True)
        return Ordering(self.period)
