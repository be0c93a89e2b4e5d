# SPDX-License-Identifier: Apache-2.0
"""A queue of a power of two of places: two pointers and a memory."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PointerQueue"]


class PointerQueue(wiring.Component):
    """A queue without any protection: whoever adds or takes knows from ``level`` that it may.

    Nothing wraps around but binary numbers, so it costs half of what a queue of any depth costs, in
    cells and in the time that it takes to simulate.

    Latency: 1 cycle from ``add`` to ``first``. Throughput: 1 element per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an element.
    depth : int
        A power of two.

    Members
    -------
    add : In(1)
    last : In(shape)
    take : In(1)
    first : Out(shape)
        The oldest element; anything if there is none.
    level : Out(range(depth + 1))
    filled : Out(1)
        There are any.
    """

    def __init__(self, shape, *, depth):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"The depth must be a power of two, not {depth!r}")
        self.shape = shape
        self.depth = depth
        self.latency = 1
        super().__init__(
            {
                "add": In(1),
                "last": In(shape),
                "take": In(1),
                "first": Out(shape),
                "level": Out(range(depth + 1)),
                "filled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = rows = memory.Memory(shape=self.shape, depth=self.depth, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        head, tail = Signal.like(self.level), Signal.like(self.level)  # with wrap bit
        m.d.comb += [
            write.addr.eq(head),
            write.data.eq(self.last),
            write.en.eq(self.add),
            read.addr.eq(tail),
            self.first.eq(read.data),
            self.level.eq(head - tail),
            self.filled.eq(head != tail),
        ]
        with m.If(self.add):
            m.d.sync += head.eq(head + 1)
        with m.If(self.take):
            m.d.sync += tail.eq(tail + 1)
        return m
