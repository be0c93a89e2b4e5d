# SPDX-License-Identifier: Apache-2.0
"""A host and a simulated board with Ethernet in one process, whose only clock is the board's."""

from hdl.boards.top import ETHERNET_MHZ
from host.devices.link import HostEndpoint, Timing
from host.devices.link.transport import DATAGRAM_BYTES, Numbering
from host.devices.linked import SLOTS, LinkAddress
from sim.ethernet.card import NetworkCard

from .conversation import BoardConversation

__all__ = ["EthernetConversation"]

#: Cycles of the PHY between two looks of the host at the network: 8 us.
LOOK = 1000
#: Frames that the host has ready, so that the line never waits for it.
AHEAD = 2
#: Cycles after which the host asks again for the board's address.
ASK_AGAIN = 50 * LOOK
#: UDP port of the host.
PORT = 50_000


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
    card : NetworkCard
        The host's network card.
    """

    def __init__(self, simulated, board, *, damage=0.0, seed=1):
        self.simulated, self.board = simulated, board
        self.card = NetworkCard(board.ethernet, damage=damage, seed=seed)
        rate = LinkAddress.parse(board.uri("bundle")).bytes_per_second
        self.host = HostEndpoint(seed, timing=Timing.at(rate, slots=SLOTS))
        self._numbering, self._incoming = Numbering(), Numbering()

    @property
    def now(self):
        """Seconds of the board so far."""
        return self.simulated.cycle / (ETHERNET_MHZ * 1e6)

    def step(self):
        """Let :data:`LOOK` bytes pass on both lines."""
        card = self.card
        card.seek(self.simulated.cycle, again=ASK_AGAIN)
        while card.is_found and len(card.outgoing) < AHEAD:
            data = self.host.transmit(self.now, DATAGRAM_BYTES)
            if not data:
                break
            card.send(PORT, self._numbering.pack(data))
        for port, data in card.carry(self.simulated, LOOK):
            if port == PORT:
                self.host.receive(self._incoming.unpack(data), self.now)
