# SPDX-License-Identifier: Apache-2.0
"""Rates of an input over time: STRETCH's phases, and a load in the shape of a market's."""

from dataclasses import dataclass

import numpy as np

__all__ = ["HIGHEST", "Rates", "decommissioning", "market", "phases", "provisioning"]

#: Highest rate of either load, in the tuples per second of the paper.
HIGHEST = 8_000


@dataclass(frozen=True)
class Rates:
    """A rate for each stretch of time.

    Parameters
    ----------
    stretches : tuple of (int, int, int)
        Begin and end in seconds, and the tuples per second.
    window : int
        Seconds that a tuple stays in the window.
    """

    stretches: tuple[tuple[int, int, int], ...]
    window: int

    @property
    def seconds(self):
        """End of the last stretch."""
        return self.stretches[-1][1]

    def at(self, second):
        """Return the rate in a second."""
        return next(rate for begin, end, rate in self.stretches if begin <= second < end)

    def times(self, tuples):
        """Return the times of one side's tuples, in milliseconds.

        Parameters
        ----------
        tuples : int
            Tuples of a side in the window at the highest rate.
        """
        found = []
        for begin, end, rate in self.stretches:
            if rate:
                distance = 1_000 * self.window * HIGHEST / (tuples * rate)
                found.append(np.arange(1_000 * begin, 1_000 * end, distance))
        return np.concatenate(found).astype(np.int64)


def phases(seconds=1_200, seed=0):
    """Return the phases of Q5: 100 to 300 s each, rates of 500 to 8,000, a window of 60 s."""
    generator, begin, found = np.random.default_rng(seed), 0, []
    while begin < seconds:
        end = begin + int(generator.integers(100, 301))
        found.append((begin, min(end, seconds), int(generator.integers(500, HIGHEST + 1))))
        begin = end
    return Rates(tuple(found), 60)


def step(seconds, before, after):
    """Return a load with one step, from and to parts of the work of half of the cores.

    The work grows with the square of the rate, and at the highest one takes 3/4 of all cores.
    """
    at = 150 * seconds // 300
    shares = {(0, at): before, (at, seconds): after}
    return Rates(
        tuple((*ends, round(HIGHEST * (share / 1.5) ** 0.5)) for ends, share in shares.items()), 60
    )


def provisioning(seconds=300, seed=0):
    """Return the first load of STRETCH's Figure 10: half of the cores at 70 %, then 120 %."""
    del seed
    return step(seconds, 0.7, 1.2)


def decommissioning(seconds=300, seed=0):
    """Return the second load of STRETCH's Figure 10: half of the cores at 70 %, then 30 %."""
    del seed
    return step(seconds, 0.7, 0.3)


def market(seconds=1_200, seed=0):
    """Return a load in the shape of Q6: low most of the time, with abrupt and short peaks.

    The trades of the paper are not public. A stretch takes 1 to 20 seconds, and its rate is
    distributed like the exponential of a normal variable: the median is 490, the most 7,600. The
    window is half a minute.
    """
    generator, begin, found = np.random.default_rng(seed), 0, []
    while begin < seconds:
        end = begin + int(generator.integers(1, 21))
        rate = min(7_600, int(generator.lognormal(6.2, 1.2)))
        found.append((begin, min(end, seconds), rate))
        begin = end
    return Rates(tuple(found), 30)
