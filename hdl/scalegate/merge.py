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

    Latency: 2 cycles. Throughput: 1 tuple or barrier per cycle.

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
        ends = [port.filled & (port.head.kind == GateKind.BARRIER) for port in ports]
        second = Signal()  # port 1 shows less than port 0
        m.d.comb += second.eq(self.elaborate_choice(m, ports, ends))
        self.elaborate_output(m, ports, ends, second, output.i)
        self.elaborate_reports(m, ports, ends, second, output.o.valid)
        return m

    def elaborate_choice(self, m, ports, ends):
        """Return whether port 1 shows less than port 0.

        What a port shows comes from registers, so the comparison is all that takes long. Whatever
        depends on the choice is computed for both ports beside it.
        """
        gone = [~port.filled & ~port.present for port in ports]
        below = is_below(m, ports[1].head.time, ports[0].head.time)
        return ~gone[1] & (gone[0] | (~ends[1] & (ends[0] | below)))

    def elaborate_output(self, m, ports, ends, second, o):
        """Offer the tuple, barrier or watermark of the lesser port."""
        told = Signal.like(ports[0].floor)  # the latest time at the output
        silent = Signal(init=not any(self.present))  # the latest word was LEAVE
        settled = Signal()
        m.d.comb += settled.eq(~ports[0].settles & ~ports[1].settles)
        shown, offered = [], []
        for port in ports:
            news = silent | (port.head.time != told)
            word = Signal(self.layout)
            m.d.comb += [port.floor.eq(told), word.eq(port.head)]
            with m.If(~port.filled):
                m.d.comb += word.kind.eq(Mux(port.present, GateKind.WATERMARK, GateKind.LEAVE))
            shown.append(word)
            offered.append(port.filled | Mux(port.present, news, ~silent))
        # An offer to the output register may change while the register is full: a watermark becomes
        # a tuple when one has come.
        offers = Mux(second, offered[1], offered[0])
        free = o.ready & settled
        m.d.comb += [
            o.payload.eq(Mux(second, Value.cast(shown[1]), Value.cast(shown[0]))),
            o.valid.eq(offers & settled),
            ports[0].take.eq(free & ports[0].filled & ~second),
            # If port 0 shows a barrier and is chosen, port 1 shows one too, or has left.
            ports[1].take.eq(free & ports[1].filled & (second | ends[0])),
        ]
        with m.If(free & offers):
            m.d.sync += silent.eq(o.payload.kind == GateKind.LEAVE)
            with m.Switch(o.payload.kind):
                with m.Case(GateKind.TUPLE, GateKind.WATERMARK):
                    m.d.sync += told.eq(o.payload.time)
                with m.Case(GateKind.BARRIER):
                    m.d.sync += told.eq(0)

    def elaborate_reports(self, m, ports, ends, second, waiting):
        """Tell which port is waited for, and whether a barrier is made of different ones.

        ``waiting`` says that a word is at the output.
        """
        starved = [
            chosen & port.present & ~port.filled & ~waiting & self.starving
            for port, chosen in zip(ports, (~second, second), strict=True)
        ]
        different = ports[0].head.body != ports[1].head.body
        m.d.comb += self.waits.eq(ports[0].filled | ports[1].filled)
        m.d.sync += [
            self.starved_by.eq(Cat(starved)),
            self.differ.eq(ends[0] & ends[1] & ports[0].take & different),
        ]
