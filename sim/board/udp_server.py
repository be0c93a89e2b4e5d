# SPDX-License-Identifier: Apache-2.0
"""Serve a simulated board with Ethernet to a host program, over a network that can be bad."""

import select
import socket
import threading

from hdl.boards.top import ETHERNET_MHZ
from sim.ethernet.card import NetworkCard

from .pace import SLICE, Pace, speed

__all__ = ["UdpServer"]

#: Cycles after which the card asks again for the board's address.
ASK_AGAIN = 1 << 18
#: Most datagrams taken from the socket between two slices, and bytes of the longest one.
BURST, LONGEST = 16, 1 << 16
HOST = "127.0.0.1"


class UdpServer:
    """Carries datagrams between a UDP port of this machine and the pins of a board's PHY.

    A datagram to the port goes to the board in a frame, from a card whose port is that of the
    sender; what the board sends to that port goes back to the sender. The board runs as fast as
    this machine can simulate it while frames pass, and slowly otherwise.

    Parameters
    ----------
    simulated : SimulatedEthernetBoard
        The board.
    board : Board
        What it is: its clocks and its addresses.
    number : int
        The UDP port; zero for any that is free.
    damage : float
        Share of the frames that are lost, damaged or doubled, in each direction.
    seed : int
        Of the damage.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, simulated, board, *, number=0, damage=0.0, seed=0):
        self.simulated, self.board = simulated, board
        self.card = NetworkCard(board.ethernet, damage=damage, seed=seed)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((HOST, number))
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)
        self.number = self._socket.getsockname()[1]
        self._ended = threading.Event()

    @property
    def place(self):
        """What a URI of a device has in this place."""
        return f"udp:{HOST}:{self.number}"

    def rate(self, seconds=0.2):
        """Return the bytes per second of the simulated link, measured on this machine."""
        return speed(self.simulated, seconds) * self.board.mhz / ETHERNET_MHZ

    def end(self):
        """Let :meth:`run` return soon."""
        self._ended.set()

    def run(self):
        """Serve until :meth:`end` is called."""
        card, simulated, pace = self.card, self.simulated, Pace()
        try:
            while not self._ended.is_set():
                card.seek(simulated.cycle, again=ASK_AGAIN)
                came = self._collect(pace.wait)
                frames = card.frames[1]
                for port, data in card.carry(simulated, SLICE):
                    self._deliver(port, data)
                heard = card.frames[1] > frames
                pace.see(simulated.busy or came or card.outgoing or heard)
        finally:
            self._socket.close()

    def _collect(self, seconds):
        """Hand datagrams that have come to the card; return whether there were any."""
        select.select([self._socket], [], [], seconds)
        for count in range(BURST):
            try:
                data, (_, port) = self._socket.recvfrom(LONGEST)
            except (BlockingIOError, ConnectionError):
                return count > 0
            self.card.send(port, data)
        return True

    def _deliver(self, port, data):
        """Send a datagram to the host; it is lost if nobody is there any more."""
        try:
            self._socket.sendto(data, (HOST, port))
        except OSError:
            return
