# SPDX-License-Identifier: Apache-2.0
"""The register that data moves through.

It follows the four transfer rules of Amaranth streams: a transfer happens when ``valid`` and
``ready`` are both high; a producer holds ``valid`` and ``payload`` until then; ``valid`` does not
wait for ``ready``; ``ready`` may do as it likes.
"""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamRegister", "flagged_register"]


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


def flagged_register(m, name, i, *, flags):
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

    Returns
    -------
    stream
        What comes out: the payload as ``word``, and beside it the flags. A flag that is zero
        whenever ``i`` is invalid is also zero whenever the register is empty.
    """
    known = {flag: Value.cast(value) for flag, value in flags(i).items()}
    shapes = {flag: value.shape() for flag, value in known.items()}
    shape = data.StructLayout({**shapes, "word": i.payload.shape()})
    m.submodules[name] = placed = StreamRegister(shape, early=list(known))
    m.d.comb += [
        placed.i.valid.eq(i.valid),
        i.ready.eq(placed.i.ready),
        placed.i.payload.word.eq(i.payload),
        *(placed.i.payload[flag].eq(value) for flag, value in known.items()),
    ]
    return placed.o
