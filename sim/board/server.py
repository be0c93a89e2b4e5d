# SPDX-License-Identifier: Apache-2.0
"""Serve a simulated board to a host program, over a line that can be bad."""

from contextlib import contextmanager
import threading

from sim.link.noise import Noise

from .pace import SLICE, Pace, speed

__all__ = ["BoardServer", "line_rate", "running", "serving"]

#: Bytes for a host that reads none, after which more are lost, as in the adapter of a UART.
MOST_WAITING = 1 << 16
#: Seconds between two looks whether a host has come, or whether the server shall end.
PAUSE = 0.05


class BoardServer:
    """Carries bytes between a board and the hosts that come, one after the other.

    While a host is connected, the board runs as fast as this machine can simulate it, whatever its
    clock is. Otherwise its clock stands still.

    Parameters
    ----------
    board : SimulatedBoard
        The board.
    port : PseudoTerminal or TcpPort
        Where hosts come to. The server closes it.
    damage : float
        Share of the bytes that are flipped, lost, doubled, or have another one inserted before
        them, in each direction.
    seed : int
        Of the damage.
    unplug : int or None
        If not None, the byte stream breaks each time that so many bytes have passed to the board.
        What is on its way is lost; the board keeps its state.
    away : float
        Seconds until it is plugged in again.

    Attributes
    ----------
    damaged, unplugged : int
        Bytes that were damaged, and times that the stream was broken.
    """

    def __init__(self, board, port, *, damage=0.0, seed=0, unplug=None, away=0.5):
        if not 0 <= damage <= 1:
            raise ValueError(f"Share of damaged bytes must be 0 to 1, not {damage!r}")
        if unplug is not None and unplug < 1:
            raise ValueError(f"Bytes until the board is unplugged must be at least 1, not {unplug}")
        self.board, self.port = board, port
        self.away = away
        self.unplugged = 0
        self._noises = [Noise(damage, 2 * seed + n) for n in range(2)]
        self._every = unplug
        self._left = unplug
        self._ended = threading.Event()

    @property
    def damaged(self):
        """See the class."""
        return sum(noise.damaged for noise in self._noises)

    def end(self):
        """Let :meth:`run` return soon."""
        self._ended.set()

    def unplug(self):
        """Break the byte stream soon, once, as ``unplug`` of the constructor does."""
        self._left = 0

    def run(self):
        """Serve until :meth:`end` is called."""
        try:
            while not self._ended.is_set():
                transport = self.port.plug(PAUSE)
                if transport is None:
                    continue
                try:
                    self._carry(transport)
                except OSError:
                    pass  # the host has gone; another one may come
                finally:
                    transport.close()
        finally:
            self.port.close()

    def _carry(self, transport):
        """Carry bytes until the stream breaks, or until the server shall end."""
        board, (to_board, to_host) = self.board, self._noises
        incoming, outgoing = b"", b""
        pace = Pace()
        while not self._ended.is_set():
            sent, received = transport.exchange(outgoing, pace.wait)
            incoming += to_board(received)
            taken, made = board.exchange(incoming, SLICE)
            incoming = incoming[taken:]
            outgoing = (outgoing[sent:] + to_host(made))[-MOST_WAITING:]
            pace.see(board.busy or incoming or received)
            if self._left is not None:
                self._left -= taken
                if self._left <= 0:
                    self._left = self._every
                    self.unplugged += 1
                    transport.close()
                    self._ended.wait(self.away)
                    return


def serving(board, port, **options):
    """Serve a board in a thread for a block of code; the value is the :class:`BoardServer`."""
    return running(BoardServer(board, port, **options))


@contextmanager
def running(server):
    """Run a server, also a :class:`sim.board.udp_server.UdpServer`, for a block of code."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join()


def line_rate(board, *, divisor, seconds=0.2):
    """Return the bytes per second that a line carries in simulation, measured on this machine."""
    return speed(board, seconds) / (10 * divisor)
