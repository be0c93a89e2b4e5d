# SPDX-License-Identifier: Apache-2.0
"""A host and a simulated board with Ethernet in one process, whose only clock is the board's."""

from hdl.boards.ethernet_top import ETHERNET_MHZ
from host.device.link_address import LinkAddress
from host.device.link_session import SLOTS
from host.link import HostEndpoint, Timing
from host.link.datagrams import DATAGRAM_BYTES, Numbering
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

from .conversation import BoardConversation

__all__ = ["EthernetConversation"]

#: Cycles of the PHY between two looks of the host at the network: 8 us.
LOOK = 1000
#: Frames that the host has ready, so that the line never waits for it.
AHEAD = 2
#: Cycles after which the host asks again for the board's address.
ASK_AGAIN = 50 * LOOK
#: Address of the host's network card.
CARD = b"\x02\x53\x4a\x00\x00\x02"


class EthernetConversation(BoardConversation):
    """Exchanges words with a simulated board over a network that can lose and double frames.

    The host asks for the board's address in Ethernet first. Its end of the link has the settings
    and times that ``udp:`` gives it.

    Parameters
    ----------
    simulated : SimulatedEthernetBoard
        The board.
    board : Board
        What it is: its clocks and its addresses.
    damage : float
        Share of the frames that are lost, damaged or doubled, in each direction.
    seed : int
        Of the damage and of the session.

    Attributes
    ----------
    host : HostEndpoint
        The host's end.
    noises : list of FrameNoise
        The line to the board and the line to the host.
    frames : list of int
        Frames that went to the board and came from it.
    """

    def __init__(self, simulated, board, *, damage=0.0, seed=1):
        self.simulated, self.board = simulated, board
        self.noises = [FrameNoise(damage, 2 * seed + n) for n in range(2)]
        rate = LinkAddress.parse(board.uri("bundle")).bytes_per_second
        self.host = HostEndpoint(seed, timing=Timing.at(rate, slots=SLOTS))
        self.frames = [0, 0]
        chosen = board.ethernet
        ip = bytes((*chosen.ip_bytes[:3], chosen.ip_bytes[3] ^ 1))
        self._own = Address(CARD, ip, 50_000)
        self._target = Address(chosen.mac_bytes, chosen.ip_bytes, chosen.port)
        self._is_found = False
        self._ask = 0  # cycle in which the address is asked for
        self._numbering, self._incoming = Numbering(), Numbering()
        self._bytes, self._outgoing = b"", []  # bytes of the link, and frames, to be sent

    @property
    def now(self):
        """Seconds of the board so far."""
        return self.simulated.cycle / (ETHERNET_MHZ * 1e6)

    def step(self):
        """Let :data:`LOOK` bytes pass on both lines."""
        if not self._is_found and self.simulated.cycle >= self._ask:
            self._ask = self.simulated.cycle + ASK_AGAIN
            self._send(arp_request(self._own, self._target.ip))
        while self._is_found and len(self._outgoing) < AHEAD:
            if len(self._bytes) < DATAGRAM_BYTES:
                self._bytes += self.host.transmit(self.now, DATAGRAM_BYTES - len(self._bytes))
            data, self._bytes = self._bytes[:DATAGRAM_BYTES], self._bytes[DATAGRAM_BYTES:]
            if not data:
                break
            self._send(datagram_frame(self._own, self._target, self._numbering.pack(data)))
        sent, frames = self.simulated.exchange_frames(self._outgoing, LOOK)
        del self._outgoing[:sent]
        for frame in frames:
            self.frames[1] += 1
            for line in self.noises[1](frame):
                if (content := read_line(line)) is not None:
                    self._receive(content)

    def _send(self, content):
        """Put a frame on the line to the board."""
        self.frames[0] += 1
        self._outgoing += self.noises[0](on_the_line(content))

    def _receive(self, content):
        """Take a frame as a network card and the system behind it do."""
        if content == arp_answer(self._target, self._own):
            self._is_found = True
            return
        found = read_datagram(content)
        if found is not None and (found.source, found.target) == (self._target, self._own):
            self.host.receive(self._incoming.unpack(found.data), self.now)
