# SPDX-License-Identifier: Apache-2.0
"""A queue of a power of two of places: two pointers and a memory."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PointerQueue"]


class PointerQueue(wiring.Component):
    """A queue without any protection: whoever adds knows from ``level`` or ``room`` that it may,
    whoever takes from ``filled``.

    Nothing wraps around but binary numbers, so it costs half of what a queue of any depth costs, in
    cells and in the time that it takes to simulate.

    Latency: 1 cycle from ``add`` to ``first``. Throughput: 1 element per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an element.
    depth : int
        A power of two.
    reserve : int
        Elements that may still come when there is no ``room``.

    Members
    -------
    add : In(1)
    last : In(shape)
    take : In(1)
    first : Out(shape)
        The oldest element; anything if there is none.
    level : Out(range(depth + 1))
    filled : Out(1)
        There are any; from a register.
    room : Out(1)
        There was room for more than ``reserve`` elements a cycle ago; from a register.
    """

    def __init__(self, shape, *, depth, reserve=0):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"The depth must be a power of two, not {depth!r}")
        if not 0 <= reserve < depth:
            raise ValueError(f"A queue of {depth} cannot hold a reserve of {reserve!r}")
        self.shape = shape
        self.depth = depth
        self.reserve = reserve
        self.latency = 1
        super().__init__(
            {
                "add": In(1),
                "last": In(shape),
                "take": In(1),
                "first": Out(shape),
                "level": Out(range(depth + 1)),
                "filled": Out(1),
                "room": Out(1, init=1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = rows = memory.Memory(shape=self.shape, depth=self.depth, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        head, tail = Signal.like(self.level), Signal.like(self.level)  # with wrap bit
        second = Signal.like(tail, init=1)  # behind the tail
        m.d.comb += [
            write.addr.eq(head),
            write.data.eq(self.last),
            write.en.eq(self.add),
            read.addr.eq(tail),
            self.first.eq(read.data),
            self.level.eq(head - tail),
        ]
        # From a register, as whoever takes decides by it; and it depends on `take` last.
        only = head[: len(read.addr)] == second[: len(read.addr)]
        m.d.sync += self.filled.eq(self.add | (self.filled & ~(only & self.take)))
        # Where the head will be when the reserve has come: so nothing has to be compared.
        reserved = Signal.like(head, init=self.reserve)
        m.d.sync += self.room.eq(~(reserved - tail)[len(read.addr)])
        with m.If(self.add):
            m.d.sync += [head.eq(head + 1), reserved.eq(reserved + 1)]
        with m.If(self.take):
            m.d.sync += [tail.eq(second), second.eq(second + 1)]
        return m
