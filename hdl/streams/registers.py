# SPDX-License-Identifier: Apache-2.0
"""Stream registers.

Every stream of the kit follows the four transfer rules of Amaranth streams. A transfer happens when
``valid`` and ``ready`` are both high. A producer holds ``valid`` and ``payload`` until the
transfer. A producer does not wait for ``ready`` before it raises ``valid``. A consumer may change
``ready`` at any time.
"""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamRegister", "flagged_register"]


class StreamRegister(wiring.Component):
    """A stream register without a combinational path from any input to any output.

    It holds up to two payloads, in two payload registers that are used in turn. Two state bits
    enable the payload registers, so neither ``i.valid`` nor ``o.ready`` drives as many registers as
    a payload has bits. A multiplexer at the output selects the payload register.

    A consumer can have the fields that its decisions depend on *early*, that is, directly from an
    output register instead of the multiplexer. While the stream register is empty, the early fields
    show what the input showed in the previous cycle. An early field that is zero whenever ``i`` is
    invalid is therefore also zero whenever the stream register is empty, and needs no ``o.valid``
    beside it.

    Reset empties the stream register. The early fields themselves have no reset. With early fields,
    a reset must last at least two cycles, and the input must be invalid in the last of them.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    early : sequence of str
        Fields of the payload, which is then a structure, that come directly from a register.

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
        write, read = Signal(), Signal()  # which payload register is next
        ready, valid = Signal(init=1), Signal()  # one payload register is free; one is in use
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
        """Register the early fields of the payload at the output and of the payload after it."""
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
    """Put a register behind an input stream, and add flags to the payload as early fields.

    Parameters
    ----------
    m : Module
        Module of the component. The register becomes its submodule ``name``.
    name : str
        Name of the submodule.
    i : stream
        The input stream, as the component sees it.
    flags : function
        Returns the flags that the component needs of ``i``, a dictionary of names to values.

    Returns
    -------
    stream
        Output of the register. Its payload holds the payload of ``i`` as ``word``, and the flags. A
        flag that is zero whenever ``i`` is invalid is also zero whenever the register is empty.
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
