# SPDX-License-Identifier: Apache-2.0
"""Queues of streams, within a clock and between two."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from hdl.crossings import Crossing

__all__ = ["PointerQueue", "StreamCrossing", "has_lut_ram"]

#: Devices whose LUTs are no memories, by the beginnings of their names: iCE40 and GateMate.
WITHOUT_LUT_RAM = ("ICE40", "CCGM1")


def has_lut_ram(platform):
    """Return whether the device has small memories that are read without a clock.

    A platform is any object with the name of a ``device``. Without one, the answer is yes.
    """
    return not str(getattr(platform, "device", "")).upper().startswith(WITHOUT_LUT_RAM)


def next_tail(tail, second, take):
    """Return where the tail of a queue will be in the next cycle."""
    return Mux(take, second, tail)


class PointerQueue(wiring.Component):
    """A first-word fall-through FIFO without protection against overflow and underflow.

    The producer must check ``level`` or ``room`` before it adds an entry. The consumer must check
    ``filled`` before it takes one.

    The pointers are plain binary counters, because the depth is a power of two. This halves both
    the cells and the simulation time that a queue of arbitrary depth takes.

    On a device without LUT RAM (:func:`has_lut_ram`) the oldest entry is read one cycle ahead, so
    that the entries are in a block RAM and not in registers. No output differs while the queue is
    filled.

    Latency: 1 cycle from ``add`` to ``first``. Throughput: 1 entry per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of an entry.
    depth : int
        Number of entries, a power of two.
    reserve : int
        Entries that still fit when ``room`` falls. An entry that is added in the cycle before
        ``room`` falls counts as one of them.

    Members
    -------
    add : In(1)
        Append ``last``.
    last : In(shape)
    take : In(1)
        Remove ``first``.
    first : Out(shape)
        The oldest entry; undefined while the queue is empty.
    level : Out(range(depth + 1))
        Number of entries.
    filled : Out(1)
        High while the queue holds at least one entry; from a register.
    room : Out(1)
        High if more than ``reserve`` entries were free in the previous cycle; from a register.
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
        at_once = has_lut_ram(platform)
        if at_once:
            write, read = rows.write_port(), rows.read_port(domain="comb")
        else:  # a row that is written while it is read passes by the memory
            write = rows.write_port()
            read = rows.read_port(transparent_for=(write,))
        head, tail = Signal.like(self.level), Signal.like(self.level)  # with a wrap bit
        second = Signal.like(tail, init=1)  # one after the tail
        m.d.comb += [
            write.addr.eq(head),
            write.data.eq(self.last),
            write.en.eq(self.add),
            read.addr.eq(tail if at_once else next_tail(tail, second, self.take)),
            self.first.eq(read.data),
            self.level.eq(head - tail),
        ]
        # The consumer derives `take` from `filled`, so `filled` comes from a register. `take`
        # arrives late, so it is the last input of the logic.
        only = head[: len(read.addr)] == second[: len(read.addr)]
        m.d.sync += self.filled.eq(self.add | (self.filled & ~(only & self.take)))
        # Where the head will be after `reserve` more entries. This makes `room` one bit of a
        # difference, without a comparison.
        reserved = Signal.like(head, init=self.reserve)
        m.d.sync += self.room.eq(~(reserved - tail)[len(read.addr)])
        with m.If(self.add):
            m.d.sync += [head.eq(head + 1), reserved.eq(reserved + 1)]
        with m.If(self.take):
            m.d.sync += [tail.eq(second), second.eq(second + 1)]
        return m


class StreamCrossing(wiring.Component):
    """An asynchronous FIFO: hand payloads on from one clock domain to another one.

    The clocks need not have anything to do with each other. Both domains are reset together.

    Latency: more than 2 and at most 3 cycles of ``o_domain``. Throughput: 1 payload per cycle
    of the slower clock with 16 entries.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    i_domain, o_domain : str
        Clock domains of the two sides.
    depth : int
        Entries, a power of two of at least 4.

    Members
    -------
    i : In(stream.Signature(shape))
        In ``i_domain``.
    o : Out(stream.Signature(shape))
        In ``o_domain``.
    """

    crossings = (
        Crossing("gray", ("fifo/produce_cdc/stage0",), ("fifo/produce_w_gry",)),
        Crossing("gray", ("fifo/consume_cdc/stage0",), ("fifo/consume_r_gry",)),
        Crossing("rows", ("fifo/storage",), ("fifo/storage",)),
        Crossing("reset", ("fifo/rst_cdc/stage0", "fifo/rst_cdc/stage1")),
    )

    def __init__(self, shape, *, i_domain, o_domain, depth=16):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"Depth of a crossing must be a power of two from 4 on, not {depth!r}")
        self.shape = shape
        self.i_domain, self.o_domain = i_domain, o_domain
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = AsyncFIFO(
            width=Shape.cast(self.shape).width, depth=self.depth,
            w_domain=self.i_domain, r_domain=self.o_domain,
        )  # fmt: skip
        m.d.comb += [
            fifo.w_data.eq(Value.cast(self.i.payload)),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            Value.cast(self.o.payload).eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]
        return m
