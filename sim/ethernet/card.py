# SPDX-License-Identifier: Apache-2.0
"""A host's network card and the system behind it, at the other end of a board's Ethernet."""

from sim.ethernet.frames import (
    Address,
    arp_answer,
    arp_request,
    datagram_frame,
    on_the_line,
    read_datagram,
    read_line,
)
from sim.ethernet.noise import FrameNoise

__all__ = ["NetworkCard"]

#: Address of the card.
MAC = b"\x02\x53\x4a\x00\x00\x02"
#: Datagrams that wait until the board's address is known; further ones are lost.
MOST_WAITING = 64


class NetworkCard:
    """Network card model: frames datagrams to a board, and unpacks those in the board's frames.

    Parameters
    ----------
    settings : EthernetSettings
        Addresses of the board. The card's own IPv4 address is the neighbouring one.
    damage : float
        Share of the frames that the network loses, damages or doubles, in each direction.
    seed : int
        Of the damage.

    Attributes
    ----------
    outgoing : list of bytes
        Frames to the board as they pass the line.
    is_found : bool
        The board has answered the request for its address.
    frames : list of int
        Frames that went to the board and came from it.
    noises : list of FrameNoise
        The network to the board and the one to the host.
    """

    def __init__(self, settings, *, damage=0.0, seed=0):
        self.noises = [FrameNoise(damage, 2 * seed + n) for n in range(2)]
        self.outgoing, self.is_found, self.frames = [], False, [0, 0]
        self._target = Address(settings.mac_bytes, settings.ip_bytes, settings.port)
        self._ip = bytes((*settings.ip_bytes[:3], settings.ip_bytes[3] ^ 1))
        self._waiting = []
        self._asks = 0  # cycle in which the board's address is asked for

    @property
    def damaged(self):
        """Frames that were lost, damaged or doubled."""
        return sum(noise.lost + noise.damaged + noise.doubled for noise in self.noises)

    def own(self, port=0):
        """Return the address of one of the card's ports."""
        return Address(MAC, self._ip, port)

    def seek(self, cycle, *, again):
        """Ask for the board's address in Ethernet, every ``again`` cycles until it is known."""
        if not self.is_found and cycle >= self._asks:
            self._asks = cycle + again
            self._put(arp_request(self.own(), self._target.ip))

    def carry(self, simulated, cycles):
        """Let cycles pass in which frames pass the line both ways.

        Parameters
        ----------
        simulated : sim.board.ethernet_board.SimulatedEthernetBoard
            The board.
        cycles : int
            Most cycles to run.

        Returns
        -------
        list of (int, bytes)
            Port and bytes of each datagram that has come.
        """
        sent, frames = simulated.exchange_frames(self.outgoing, cycles)
        del self.outgoing[:sent]
        return self.receive(frames)

    def send(self, port, data):
        """Send a datagram from a port, as soon as the board's address is known."""
        if self.is_found:
            self._put(datagram_frame(self.own(port), self._target, data))
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append((port, data))

    def receive(self, lines):
        """Return the datagrams in frames from the board, each as its port and its bytes."""
        found = []
        for line in lines:
            self.frames[1] += 1
            for passed in self.noises[1](line):
                content = read_line(passed)
                if content is not None and content[:6] == MAC:
                    found += self._read(content)
        return found

    def _read(self, content):
        """Return the datagram in a frame for this card, if there is one."""
        if content == arp_answer(self._target, self.own()):
            self.is_found = True
            waiting, self._waiting = self._waiting, []
            for port, data in waiting:
                self.send(port, data)
            return []
        datagram = read_datagram(content)
        if datagram is None or datagram.source != self._target or datagram.target.ip != self._ip:
            return []
        return [(datagram.target.port, datagram.data)]

    def _put(self, content):
        """Put a frame on the line to the board."""
        self.frames[0] += 1
        self.outgoing += self.noises[0](on_the_line(content))
