# SPDX-License-Identifier: Apache-2.0
"""The register that data moves through, and the wire that stands in for it.

It follows the four transfer rules of Amaranth streams: a transfer happens when ``valid`` and
``ready`` are both high; a producer holds ``valid`` and ``payload`` until then; ``valid`` does not
wait for ``ready``; ``ready`` may do as it likes.
"""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

__all__ = [
    "SpareRegister",
    "StreamRegister",
    "StreamWire",
    "clocked",
    "flagged_register",
    "stream_register",
    "stream_stage",
]


class StreamRegister(wiring.Component):
    """A stream register without a combinational path from any input to any output.

    Holds up to two payloads, in two registers that take turns. What enables them are two bits of
    state, so neither ``i.valid`` nor ``o.ready`` has to drive as many registers as a payload has
    bits; at the output a multiplexer chooses. The fields that a consumer decides by can be had
    *early*, straight out of a register: for them, the next payload moves up. While there is no
    payload, they are what the input showed a cycle before: so bits that are zero whenever there is
    none at the input need no ``valid`` at the output. Reset empties it; where there are early
    fields it lasts two cycles at least, with nothing at the input in the last one, as these have no
    reset.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    early : sequence of str
        Fields of a structure.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    """

    def __init__(self, shape, *, early=()):
        self.shape = shape
        self.early = tuple(early)
        self.latency = 1
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        payloads = [Signal(self.shape, reset_less=True, name=f"payload_{n}") for n in range(2)]
        write, read = Signal(), Signal()  # which of them comes next
        ready, valid = Signal(init=1), Signal()  # there is room for one; there is one
        push = self.i.valid & ready
        pop = valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
            self.o.payload.eq(Mux(read, *reversed(payloads))),
        ]
        for n, payload in enumerate(payloads):
            with m.If(ready & (write == n)):
                m.d.sync += payload.eq(self.i.payload)
        m.d.sync += [
            write.eq(write ^ push),
            read.eq(read ^ pop),
            valid.eq(push | (valid & ~(pop & ready))),
            ready.eq(pop | ~valid | (ready & ~push)),
        ]
        if self.early:
            self.elaborate_early(m, ready, valid)
        return m

    def elaborate_early(self, m, ready, valid):
        """Keep the early fields of the next payload, all in one, beside those at the output."""
        coming = Cat(Value.cast(self.i.payload[name]) for name in self.early)
        spare, output = (
            Signal(len(coming), reset_less=True, name=name) for name in ("next_early", "early")
        )
        with m.If(ready):
            m.d.sync += spare.eq(coming)
        with m.If(~valid | self.o.ready):
            m.d.sync += output.eq(Mux(ready, coming, spare))
        m.d.comb += Cat(Value.cast(self.o.payload[name]) for name in self.early).eq(output)


class SpareRegister(wiring.Component):
    """A :class:`StreamRegister` that is cheap to simulate, cycle for cycle the same.

    What comes goes straight to the output, and to a spare register only while the output is held:
    so a payload that never waits is copied once, and read without choosing. That enables as many
    registers as a payload has bits by ``o.ready``, which a clock would not like if they are many.
    All of its payload is early.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    """

    def __init__(self, shape):
        self.shape = shape
        self.latency = 1
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        payload, spare = (
            Signal(self.shape, reset_less=True, name=name) for name in ("payload", "spare")
        )
        ready, valid = Signal(init=1), Signal()  # the spare register is empty; the other is not
        moves = ~valid | self.o.ready
        m.d.comb += [
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
            self.o.payload.eq(payload),
        ]
        with m.If(moves):
            m.d.sync += [
                payload.eq(Mux(ready, self.i.payload, spare)),
                valid.eq(self.i.valid | ~ready),
                ready.eq(1),
            ]
        with m.Elif(ready):
            m.d.sync += [spare.eq(self.i.payload), ready.eq(~self.i.valid)]
        return m


class StreamWire(wiring.Component):
    """What stands in the place of a :class:`StreamRegister` that only a clock would need.

    Latency: 0 cycles. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    """

    def __init__(self, shape):
        self.shape = shape
        self.latency = 0
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        connect(m, flipped(self.i), flipped(self.o))
        return m


def stream_register(shape, *, pipelined, early=()):
    """Return a :class:`StreamRegister`, or a :class:`SpareRegister` if not ``pipelined``."""
    return StreamRegister(shape, early=early) if pipelined else SpareRegister(shape)


def stream_stage(shape, *, pipelined, early=()):
    """Return a :class:`StreamRegister`, or a :class:`StreamWire` if not ``pipelined``."""
    return StreamRegister(shape, early=early) if pipelined else StreamWire(shape)


def clocked(m, *, pipelined):
    """Return what to assign registers in that only the clock needs.

    Parameters
    ----------
    m : Module
    pipelined : bool
        If not, they are wires.
    """
    return m.d.sync if pipelined else m.d.comb


def flagged_register(m, name, i, *, flags, pipelined=True, register=stream_stage):
    """Put a register behind an input stream, with bits to decide by that come early.

    Parameters
    ----------
    m : Module
        Of the component; gets the submodule ``name``.
    name : str
    i : stream
        As the component sees it.
    flags : function
        Returns what the component wants to know of ``i``: names to values.
    pipelined : bool
        Given to ``register``.
    register : function
        :func:`stream_register` or :func:`stream_stage`.

    Returns
    -------
    stream
        What comes out: the payload as ``word``, and beside it the flags. Those that are zero while
        ``i`` is not valid are zero while there is no payload.
    """
    known = {flag: Value.cast(value) for flag, value in flags(i).items()}
    shapes = {flag: value.shape() for flag, value in known.items()}
    shape = data.StructLayout({**shapes, "word": i.payload.shape()})
    m.submodules[name] = placed = register(shape, pipelined=pipelined, early=list(known))
    m.d.comb += [
        placed.i.valid.eq(i.valid),
        i.ready.eq(placed.i.ready),
        placed.i.payload.word.eq(i.payload),
        *(placed.i.payload[flag].eq(value) for flag, value in known.items()),
    ]
    return placed.o
