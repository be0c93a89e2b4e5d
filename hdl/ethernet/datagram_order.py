# SPDX-License-Identifier: Apache-2.0
"""Which datagrams are taken by their number, and who spoke last."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import Peer

__all__ = ["DatagramOrder"]


class DatagramOrder(wiring.Component):
    """Tell late datagrams from those that are ahead of all before, and remember the peer.

    A datagram is ahead if its number is, by less than 2**31, or is zero, or if it comes from
    another peer than the last one that was taken (``docs/link.md``).

    Latency: 2 cycles from ``number`` and ``sender`` to ``ahead``; 1 cycle from ``take`` to
    ``peer``. Throughput: not applicable.

    Members
    -------
    number : In(32)
    sender : In(Peer)
        Of the datagram.
    ahead : Out(1)
        The datagram is not late.
    take : In(1)
        The datagram is taken; while ``number`` and ``sender`` stand still.
    peer : Out(Peer)
        Who spoke last.
    known : Out(1)
        Somebody has spoken.
    """

    latency = 2

    def __init__(self):
        super().__init__(
            {
                "number": In(32),
                "sender": In(Peer),
                "ahead": Out(1),
                "take": In(1),
                "peer": Out(Peer),
                "known": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        last, distance = Signal(32), Signal(32)
        begins, is_other = Signal(), Signal()
        m.d.sync += [
            distance.eq(self.number - last),
            begins.eq(self.number == 0),
            is_other.eq(
                ~self.known
                | (self.sender.ip != self.peer.ip)
                | (self.sender.port != self.peer.port)
            ),
            self.ahead.eq(begins | is_other | (distance.any() & ~distance[-1])),
        ]
        with m.If(self.take):
            m.d.sync += [last.eq(self.number), self.peer.eq(self.sender), self.known.eq(1)]
        return m
