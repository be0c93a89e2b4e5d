# SPDX-License-Identifier: Apache-2.0
"""Rows of a memory, read in the order in which they were written, before they are asked for."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.pointer_queue import PointerQueue

from .key_column import KeyColumn

__all__ = ["ReadAhead"]


class ReadAhead(wiring.Component):
    """Read a ring of rows into a short queue, which bridges the latency of the memory.

    The memory, or several side by side, is a :class:`hdl.memory.key_column.KeyColumn` outside of
    this component.

    Latency: 3 cycles from ``head`` to ``filled``. Throughput: 1 row per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of a row.
    depth : int
        Rows of the memory, a power of two.

    Members
    -------
    head : In(range(2 * depth))
        The row that is written next, with a wrap bit; all before it can be read.
    address : Out(range(depth))
        Row to read.
    row : In(shape)
        What was there, :attr:`hdl.memory.key_column.KeyColumn.LATENCY` cycles ago.
    filled : Out(1)
        ``first`` is the oldest row that was not taken; from a register.
    first : Out(shape)
    take : In(1)
        Go on to the next one; only if ``filled``.
    """

    #: Rows that are read before they are taken.
    AHEAD = 8

    def __init__(self, shape, *, depth):
        self.shape = shape
        self.depth = depth
        self.latency = KeyColumn.LATENCY + 1
        super().__init__(
            {
                "head": In(range(2 * depth)),
                "address": Out(range(depth)),
                "row": In(shape),
                "filled": Out(1),
                "first": Out(shape),
                "take": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ahead = ahead = PointerQueue(self.shape, depth=self.AHEAD)
        following = Signal.like(self.head)  # the row to read
        under_way = Signal(KeyColumn.LATENCY)
        promised = Signal(range(self.AHEAD + 1))  # read, and not taken a cycle ago
        room = Signal(init=1)  # they are fewer than there are places
        taken = Signal()
        read = (following != self.head) & room
        m.d.comb += [
            self.address.eq(following),
            ahead.last.eq(self.row),
            ahead.add.eq(under_way[-1]),
            ahead.take.eq(self.take),
            self.filled.eq(ahead.filled),
            self.first.eq(ahead.first),
        ]
        # Whether a row is read is known last.
        more, fewer = promised + ~taken, promised - taken
        m.d.sync += [
            under_way.eq(Cat(read, under_way)),
            taken.eq(self.take),
            promised.eq(Mux(read, more, fewer)),
            room.eq(Mux(read, more[: len(promised)], fewer[: len(promised)]) != self.AHEAD),
        ]
        with m.If(read):
            m.d.sync += following.eq(following + 1)
        return m
