# SPDX-License-Identifier: Apache-2.0
"""A host and a simulated board in one process, whose only clock is that of the board.

Two runs with the same seeds are the same, byte for byte, on every machine. A server with a program
behind it (:mod:`sim.board.server`) is what a user meets; its course depends on the machine.
"""

from host.devices.link import HostEndpoint, Timing
from host.devices.linked import SLOTS
from sim.link.noise import Noise

__all__ = ["BoardConversation", "Undelivered"]

#: Bytes of the line that pass between two looks of the host at it. At 1 Mbaud they take 0.1 ms; a
#: USB adapter looks every 0.125 to 1 ms.
LOOK = 10
#: Bytes that the host has ready at least, so that the line never waits for it.
AHEAD = 2 * LOOK


class Undelivered(AssertionError):
    """Timeout: not all words have come within the cycles that were allowed."""


class BoardConversation:
    """Exchanges words with a simulated board over a line that can damage bytes.

    The host's end of the link has the settings and times that ``serial:`` gives it.

    Parameters
    ----------
    simulated : SimulatedBoard
        The board.
    board : Board
        What it is: its clock and its baud rate.
    damage : float
        Share of the bytes that are flipped, lost, doubled, or have another one inserted before
        them, in each direction.
    seed : int
        Of the damage and of the session.

    Attributes
    ----------
    host : HostEndpoint
        The host's end.
    noises : list of Noise
        The line to the board and the line to the host.
    """

    def __init__(self, simulated, board, *, damage=0.0, seed=1):
        self.simulated, self.board = simulated, board
        self.noises = [Noise(damage, 2 * seed + n) for n in range(2)]
        timing = Timing.at(board.baud / 10, slots=SLOTS)
        self.host = HostEndpoint(seed, timing=timing)
        self._outgoing = b""

    def step(self):
        """Let :data:`LOOK` bytes pass on both lines."""
        simulated, host = self.simulated, self.host
        now = simulated.cycle / (self.board.mhz * 1e6)
        if len(self._outgoing) < AHEAD:
            more = host.transmit(now, AHEAD - len(self._outgoing))
            self._outgoing += self.noises[0](more)
        taken, heard = simulated.exchange(self._outgoing, LOOK * 10 * self.board.divisor)
        self._outgoing = self._outgoing[taken:]
        host.receive(self.noises[1](heard), simulated.cycle / (self.board.mhz * 1e6))

    def exchange(self, words, size, *, cycles, progress=lambda done: None):
        """Send words to the board until so many bytes of results have come.

        Parameters
        ----------
        words : bytes
            Input words, as they pass the link.
        size : int
            Bytes of result words to wait for.
        cycles : int
            Cycles of the board that this may take.
        progress : callable
            Called with the number of bytes that have come, each time that some have.

        Returns
        -------
        bytes
            Result words, as they pass the link; all that have come, perhaps more than ``size``.

        Raises
        ------
        Undelivered
            If that takes more cycles.
        """
        host, got = self.host, bytearray()
        end, offered = self.simulated.cycle + cycles, 0
        while len(got) < size or offered < len(words) or not host.sender.idle:
            if self.simulated.cycle > end:
                raise Undelivered(
                    f"After {cycles:,} cycles, {offered} of {len(words)} bytes were offered, and "
                    f"{len(got)} of {size} bytes have come ({host.counters()})"
                )
            if host.is_open:
                room = host.sender.room
                offered += host.sender.offer(words[offered : offered + room])
                more = host.receiver.take(host.receiver.waiting)
                if more:
                    got += more
                    progress(len(got))
            self.step()
        return bytes(got)
