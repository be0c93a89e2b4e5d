# SPDX-License-Identifier: Apache-2.0
"""A two-way merge by time, with watermarks."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.comparison.order import is_below

from .port import MergePort
from .words import GateKind

__all__ = ["TimestampMerge"]

#: Bits of two bodies that are compared in one cycle, before the parts are put together.
PART_BITS = 16


class TimestampMerge(wiring.Component):
    """Merge two inputs, whose times do not fall, into one output whose times do not fall.

    An input shows its oldest tuple or, while it has none, its watermark. The merge knows which of
    the two is less. If the lesser one is a tuple, the tuple is *ready* and leaves. If the lesser
    one is a watermark, nothing can leave, and the output gets this watermark, once. On a tie, port
    0 goes first. The order of tuples is therefore that of (time, port), whatever the timing.

    A barrier counts as greater than every time, and an input that has left as greater than a
    barrier. So a barrier leaves when every present port shows one; it has the body of the lowest of
    these ports. When both inputs have left, the output gets LEAVE.

    ``o`` depends on registers alone, by way of one choice.

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
        What is asked of each is in :class:`hdl.scalegate.port.MergePort`.
    o : Out(stream.Signature(layout))
    waits : Out(1)
        A tuple or a barrier is at one of the ports.
    starving : In(1)
        What comes behind the output has nothing to send.
    starved_by : Out(2)
        While ``starving``, the merge itself waited for this port in the previous cycle.
    differ : Out(1)
        Two barriers with different bodies have become one two cycles ago.
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
        second, same = self.elaborate_choice(m, ports)
        quiet = self.elaborate_output(m, ports, second)
        self.elaborate_moves(m, ports, second, same, quiet)
        self.elaborate_reports(m, ports, second)
        return m

    def elaborate_choice(self, m, ports):
        """Return two registers: port 1 shows less than port 0, and both show the same time.

        What each port will show is compared with what the other one shows, and with what that one
        will show. The moves of this cycle select the comparison that holds in the next one.
        """
        second = Signal(init=not self.present[0] and self.present[1])
        same = Signal(init=1)
        here, ahead = [port.place for port in ports], [port.next_place for port in ports]
        for register, compare in (
            (second, lambda a, b: is_below(m, Value.cast(b), Value.cast(a))),
            (same, lambda a, b: a.time == b.time),
        ):
            first_moves = Mux(
                ports[1].move, compare(ahead[0], ahead[1]), compare(ahead[0], here[1])
            )
            first_stays = Mux(ports[1].move, compare(here[0], ahead[1]), register)
            m.d.sync += register.eq(Mux(ports[0].move, first_moves, first_stays))
        return second, same

    def elaborate_output(self, m, ports, second):
        """Offer what the lesser port shows; return the register that forbids it.

        The output is quiet while a port settles, and in the cycle after it has fallen silent or has
        spoken again, in which the ports learn of that.
        """
        silent = Signal(init=not any(self.present))  # the latest word was LEAVE
        floor = Signal.like(ports[0].floor)  # the latest time at the output
        quiet, leaves, is_last = Signal(), Signal(), Signal()
        m.d.comb += [
            self.o.payload.eq(Mux(second, Value.cast(ports[1].head), Value.cast(ports[0].head))),
            self.o.valid.eq(Mux(second, ports[1].offers, ports[0].offers) & ~quiet),
            leaves.eq(self.o.valid & self.o.ready),
            is_last.eq(self.o.payload.kind == GateKind.LEAVE),
        ]
        changes = leaves & (silent | is_last)
        m.d.sync += quiet.eq(ports[0].settles | ports[1].settles | changes)
        with m.If(leaves):
            m.d.sync += silent.eq(is_last)
            with m.If(~is_last):
                m.d.sync += floor.eq(self.o.payload.time)
        for port in ports:
            m.d.comb += [port.silent.eq(silent), port.floor.eq(floor)]
        return quiet

    def elaborate_moves(self, m, ports, second, same, quiet):
        """Move on a head that leaves, and one that is no tuple unless the output has to wait."""
        # If port 0 shows a barrier and is chosen, port 1 shows one too, or has left.
        taken = ~second, second | ports[0].place.ends
        # What is offered is told, sooner or later. If port 1 shows less, port 0 is not told by it.
        told = ~second, second | same
        blocked = self.o.valid & ~self.o.ready
        for n, port in enumerate(ports):
            leaves = self.o.ready & ~quiet & taken[n]
            m.d.comb += [
                port.move.eq(Mux(port.filled, leaves, ~blocked)),
                port.told.eq(told[n] & ~quiet),
                port.blocked.eq(blocked),
            ]

    def elaborate_reports(self, m, ports, second):
        """Tell which port is waited for, and whether a barrier is made of different ones.

        A head shows a word two cycles after it was at the input. Until then nobody waits for it.
        """
        arrives, arrived = Cat(i.valid for i in self.i), Signal(2)
        empty = Cat(~port.filled & ~port.next_filled & ~port.place.gone for port in ports)
        lacks = empty & ~arrives & ~arrived
        bodies = [Value.cast(port.head.body) for port in ports]
        unlike = bodies[0] ^ bodies[1]
        parts = Cat(unlike[n : n + PART_BITS].any() for n in range(0, len(unlike), PART_BITS))
        different, become_one = Signal.like(parts), Signal()
        m.d.comb += self.waits.eq(Cat((port.filled, port.next_filled) for port in ports).any())
        m.d.sync += [
            arrived.eq(arrives),
            self.starved_by.eq(Mux(self.starving & ~self.o.valid, lacks & Cat(~second, second), 0)),
            different.eq(parts),
            become_one.eq(ports[0].place.ends & ports[1].place.ends & ports[0].move),
            self.differ.eq(become_one & different.any()),
        ]
