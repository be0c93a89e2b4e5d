# SPDX-License-Identifier: Apache-2.0
"""How fast a simulated board runs: in slices, and slowly while nothing passes."""

import time

__all__ = ["SLICE", "Pace", "speed"]

#: Cycles that a board runs between two looks at its host.
SLICE = 5_000
#: Cycles without anything on either line after which a server waits for its host, and the seconds
#: that it waits then. A board in a session that nobody uses costs little, and still sends its
#: heartbeat.
QUIET_CYCLES, QUIET_SECONDS = 1 << 19, 0.01


class Pace:
    """Pacing of a simulated board: how long a server waits for its host before each slice."""

    def __init__(self):
        self._quiet = 0

    @property
    def wait(self):
        """Seconds to wait for the host; zero while something passes."""
        return QUIET_SECONDS if self._quiet > QUIET_CYCLES else 0.0

    def see(self, busy):
        """Take note of a slice, and whether anything passed in it."""
        self._quiet = 0 if busy else self._quiet + SLICE


def speed(board, seconds=0.2):
    """Return the cycles per second of a :class:`SimulatedBoard`, measured on this machine."""
    start, begun = board.cycle, time.monotonic()
    while time.monotonic() - begun < seconds:
        board.exchange(b"", SLICE)
    return (board.cycle - start) / (time.monotonic() - begun)
