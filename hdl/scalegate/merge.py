# SPDX-License-Identifier: Apache-2.0
"""A two-way merge by time, with watermarks."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.comparison.order import is_below
from hdl.streams.registers import StreamRegister

from .port import MergePort
from .words import GateKind

__all__ = ["TimestampMerge"]


class TimestampMerge(wiring.Component):
    """Merge two inputs, whose times do not fall, into one output whose times do not fall.

    An input shows its oldest tuple or, while it has none, its watermark. The merge compares what
    both show. If the lesser one is a tuple, the tuple is *ready* and leaves. If the lesser one is a
    watermark, nothing can leave, and the output gets this watermark, once. On a tie, port 0 goes
    first. The order of tuples is therefore that of (time, port), whatever the timing.

    A barrier counts as greater than every time, and an input that has left as greater than a
    barrier. So a barrier leaves when every present port shows one; it has the body of the lowest of
    these ports. When both inputs have left, the output gets LEAVE.

    Latency: 2 cycles. Throughput: 1 tuple per cycle; a barrier takes 2 cycles.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.gate_word`.
    present : sequence of bool
        Whether each input is present after reset.

    Members
    -------
    i : In(stream.Signature(layout)).array(2)
    o : Out(stream.Signature(layout))
    waits : Out(1)
        A tuple or a barrier is at one of the ports.
    starving : In(1)
        What comes behind the output has nothing to send.
    starved_by : Out(2)
        While ``starving``, the merge itself waited for this port in the previous cycle.
    differ : Out(1)
        High for one cycle when two barriers with different bodies have become one.
    """

    def __init__(self, layout, *, present=(True, True)):
        self.layout = layout
        self.present = tuple(present)
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(layout)).array(2),
                "o": Out(stream.Signature(layout)),
                "waits": Out(1),
                "starving": In(1),
                "starved_by": Out(2),
                "differ": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ports = [MergePort(self.layout, present=present) for present in self.present]
        for n, (port, i) in enumerate(zip(ports, self.i, strict=True)):
            m.submodules[f"port_{n}"] = port
            connect(m, flipped(i), port.i)
        m.submodules.output = output = StreamRegister(self.layout)
        connect(m, output.o, flipped(self.o))
        second = self.elaborate_comparison(m, ports)
        filled = Mux(second, ports[1].filled, ports[0].filled)
        present = Mux(second, ports[1].present, ports[0].present)
        sent = self.elaborate_output(m, ports, second, filled, present, output.i)
        barrier = Signal()  # the word that leaves ends the epoch
        m.d.comb += [
            barrier.eq(filled & (output.i.payload.kind == GateKind.BARRIER)),
            *(
                port.take.eq(sent & port.filled & (barrier | (second == n)))
                for n, port in enumerate(ports)
            ),
        ]
        waiting = present & ~filled & ~output.o.valid
        self.elaborate_reports(m, ports, Mux(second, 2, 1) & waiting.replicate(2), sent & barrier)
        return m

    def elaborate_reports(self, m, ports, waiting, ends):
        """Tell which port is waited for, and whether a barrier is made of different ones."""
        both = ports[0].filled & ports[1].filled
        different = ports[0].head.body != ports[1].head.body
        m.d.comb += self.waits.eq(ports[0].filled | ports[1].filled)
        m.d.sync += [
            self.starved_by.eq(waiting & self.starving.replicate(2)),
            self.differ.eq(ends & both & different),
        ]

    def elaborate_comparison(self, m, ports):
        """Return whether port 1 shows less than port 0."""
        times, ends, gone = [], [], []
        for port in ports:
            times.append(Mux(port.filled, port.head.time, port.mark))
            ends.append(port.filled & (port.head.kind == GateKind.BARRIER))
            gone.append(~port.filled & ~port.present)
        below = is_below(m, times[1], times[0])
        return ~gone[1] & (gone[0] | (~ends[1] & (ends[0] | below)))

    def elaborate_output(self, m, ports, second, filled, present, o):
        """Offer the tuple, barrier or watermark of the lesser port; return whether it leaves."""
        told = Signal.like(ports[0].mark)  # the latest time at the output
        silent = Signal(init=not any(self.present))  # the latest word was LEAVE
        word = o.payload
        mark = Mux(second, ports[1].mark, ports[0].mark)
        sent = Signal()
        floor = Signal.like(told)
        m.d.comb += [
            sent.eq(o.valid & o.ready),
            word.eq(Mux(second, Value.cast(ports[1].head), Value.cast(ports[0].head))),
            o.valid.eq(filled | Mux(present, silent | (mark != told), ~silent)),
            floor.eq(told),
            *(port.floor.eq(floor) for port in ports),
        ]
        # An offer to the output register may change while the register is full: a watermark becomes
        # a tuple when one has come.
        with m.If(~filled):
            m.d.comb += [
                word.kind.eq(Mux(present, GateKind.WATERMARK, GateKind.LEAVE)),
                word.time.eq(Mux(present, mark, told)),
            ]
        with m.If(sent):
            m.d.sync += [told.eq(floor), silent.eq(~filled & ~present)]
            with m.If(filled & (word.kind == GateKind.BARRIER)):
                m.d.comb += floor.eq(0)
            with m.Else():
                m.d.comb += floor.eq(word.time)
        return sent
