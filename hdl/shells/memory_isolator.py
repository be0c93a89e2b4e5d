# SPDX-License-Identifier: Apache-2.0
"""Isolator of a memory port: transactions end by the rules although their master is reset."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.external.read_master import read_queue_depth
from hdl.memory.axi4 import memory_port
from hdl.streams.registers import StreamRegister

__all__ = ["MemoryIsolator"]


class MemoryIsolator(wiring.Component):
    """Stand between an accelerator that can be reset by itself and its external memory.

    A master that is reset in the middle of a burst leaves the memory waiting for the rest of its
    data, and takes the data of earlier reads for those of its own. While ``closed``, the isolator
    takes nothing more from the accelerator and gives it nothing. It sends what was requested: data
    without strobes for bursts that are not complete, which write nothing. It drops what the memory
    still answers. ``busy`` falls when all transactions have ended.

    Latency: 1 cycle on the channels ``aw``, ``w`` and ``ar``, 0 cycles on ``b`` and ``r``.
    Throughput: 1 transfer per cycle on every channel.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, whose ``store`` is external.

    Members
    -------
    i : In(memory_port(parameters))
        Port of the accelerator, whose bursts of writes all have ``memory_burst`` beats, and which
        is always ready for answers.
    o : Out(memory_port(parameters))
        Port of the memory. The three channels to it come from registers.
    closed : In(1)
        The accelerator is in reset, or about to be.
    busy : Out(1)
        A transaction is under way; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        port = memory_port(parameters)
        super().__init__({"i": In(port), "o": Out(port), "closed": In(1), "busy": Out(1)})

    def elaborate(self, platform):
        m = Module()
        i, o, opened = self.i, self.o, ~self.closed
        addresses = ("addr", "len", "size", "burst")
        asks = self.elaborate_channel(m, "ar", addresses, i.arvalid & opened, opened)
        writes = self.elaborate_channel(m, "aw", addresses, i.awvalid & opened, opened)
        owed = Signal(range(2 * self.parameters.recent_rows))  # beats of requested writes
        missing = Signal()
        m.d.comb += missing.eq(self.closed & (owed != 0))
        sends = self.elaborate_channel(
            m, "w", ("data", "strb", "last"), (i.wvalid & opened) | missing, opened, fills=missing
        )
        read = Signal(range(read_queue_depth(self.parameters) + 1))  # beats that were asked for
        written = Signal.like(owed)  # bursts that were requested
        m.d.comb += [
            o.rready.eq(1),
            o.bready.eq(1),
            i.rvalid.eq(o.rvalid & opened),
            i.bvalid.eq(o.bvalid & opened),
            *(
                getattr(i, name).eq(getattr(o, name))
                for name in ("rid", "rdata", "rresp", "rlast", "bid", "bresp")
            ),
        ]
        m.d.sync += [
            owed.eq(owed + Mux(writes, i.awlen + 1, 0) - sends),
            read.eq(read + Mux(asks, i.arlen + 1, 0) - o.rvalid),
            written.eq(written + writes - o.bvalid),
            self.busy.eq((owed != 0) | (read != 0) | (written != 0) | asks | writes),
        ]
        return m

    def elaborate_channel(self, m, name, fields, valid, opened, fills=None):
        """Put a register into a channel; return whether something enters it.

        The accelerator sees that the register is ready while the isolator is ``opened``.
        ``fills`` says that what enters is a beat in the place of one that the accelerator owes.
        """
        shape = data.StructLayout(
            {field: len(getattr(self.i, f"{name}{field}")) for field in fields}
        )
        register = StreamRegister(shape)
        m.submodules[name] = register
        m.d.comb += [
            register.i.valid.eq(valid),
            getattr(self.i, f"{name}ready").eq(register.i.ready & opened),
            getattr(self.o, f"{name}valid").eq(register.o.valid),
            register.o.ready.eq(getattr(self.o, f"{name}ready")),
        ]
        for field in fields:
            m.d.comb += [
                register.i.payload[field].eq(getattr(self.i, f"{name}{field}")),
                getattr(self.o, f"{name}{field}").eq(register.o.payload[field]),
            ]
        enters = register.i.valid & register.i.ready
        if fills is not None:
            self.elaborate_filling(m, register.i.payload, enters, fills)
        return enters

    def elaborate_filling(self, m, beat, enters, fills):
        """Let beats in the place of others write nothing, and end their bursts where they end."""
        place = Signal(range(max(2, self.parameters.memory_burst)))  # of the beat in its burst
        last = place == self.parameters.memory_burst - 1
        with m.If(fills):
            m.d.comb += [beat.strb.eq(0), beat.last.eq(last)]
        with m.If(enters):
            m.d.sync += place.eq(Mux(last, 0, place + 1))
