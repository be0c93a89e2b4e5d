# SPDX-License-Identifier: Apache-2.0
"""Prefetch of memory rows in the order in which they were written."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.queues import PointerQueue

from .columns import KeyColumn

__all__ = ["ReadAhead"]


class ReadAhead(wiring.Component):
    """Prefetch buffer: read rows of a ring ahead of their use, to hide the memory's latency.

    The memory is outside of this component. It is one :class:`hdl.memory.columns.KeyColumn`, or
    several side by side.

    Latency: 3 cycles from ``head`` to ``filled``. Throughput: 1 row per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of a row.
    depth : int
        Rows of the memory, a power of two.
    tells : bool
        Whether there is the output ``reads``.

    Members
    -------
    head : In(range(2 * depth))
        The row that is written next, with a wrap bit. All rows before it can be read.
    address : Out(range(depth))
        Row to read.
    row : In(shape)
        Content of the row that ``address`` named :attr:`hdl.memory.columns.KeyColumn.LATENCY`
        cycles ago.
    filled : Out(1)
        High while ``first`` is the oldest row that has not been taken; from a register.
    first : Out(shape)
    take : In(1)
        Advance to the next row; only while ``filled``.
    reads : Out(1)
        The row at ``address`` is read, and will be used; only if ``tells``.
    """

    #: Places of the queue: rows that may be read before they are taken.
    AHEAD = 8

    def __init__(self, shape, *, depth, tells=False):
        self.shape = shape
        self.tells = tells
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
                **({"reads": Out(1)} if tells else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ahead = ahead = PointerQueue(self.shape, depth=self.AHEAD)
        following = Signal.like(self.head)  # the next row to read
        under_way = Signal(KeyColumn.LATENCY)
        # Rows that were read and not taken; `take` counts a cycle late.
        promised = Signal(range(self.AHEAD + 1))
        room = Signal(init=1)  # fewer rows than the queue has places
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
        # `read` arrives late, so it only selects between two prepared sums.
        more, fewer = promised + ~taken, promised - taken
        m.d.sync += [
            under_way.eq(Cat(read, under_way)),
            taken.eq(self.take),
            promised.eq(Mux(read, more, fewer)),
            room.eq(Mux(read, more[: len(promised)], fewer[: len(promised)]) != self.AHEAD),
        ]
        with m.If(read):
            m.d.sync += following.eq(following + 1)
        if self.tells:
            m.d.comb += self.reads.eq(read)
        return m
