# SPDX-License-Identifier: Apache-2.0
"""How long the external memories behind an accelerator take, at random."""

from dataclasses import dataclass

__all__ = ["Pace", "random_pace"]


@dataclass(frozen=True)
class Pace:
    """Latency model of the external memories: latency, jitter and pauses.

    Parameters
    ----------
    latency, jitter : int
        Least number of cycles until an answer, and how many more it may take.
    stalls : int
        In how many of 256 cycles a channel pauses.
    """

    latency: int
    jitter: int = 0
    stalls: int = 0

    def slowness(self, work):
        """Return how many cycles may pass in place of ``work`` cycles of a perfect memory.

        Reads of 16 rows are under way at any time (``docs/external-windows.md``), unless the rows
        that they wait for are on the chip.
        """
        longest = self.latency + self.jitter
        return (work * (1 + longest // 16) + 4 * longest) * 256 // (256 - self.stalls)


def random_pace(random, hidden):
    """Return a pace that an accelerator hides, or does not.

    Parameters
    ----------
    random : numpy.random.Generator
    hidden : int
        Latency that the accelerator was made for.
    """
    return Pace(
        latency=1 + int(random.integers(0, 2 * hidden + 20)),
        jitter=int(random.integers(0, 60)) * int(random.integers(2)),
        stalls=int(random.choice([0, 0, 10, 60, 128])),
    )
