# SPDX-License-Identifier: Apache-2.0
"""The rows of passes, one after another."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import pass_layout, place_shape

__all__ = ["PassRows"]


class PassRows(wiring.Component):
    """Count the rows of each pass, then the tuples that it meets on their way.

    A pass is taken from the queue while the last row of the one before it has its turn, so passes
    follow each other without an idle cycle.

    Latency: 1 cycle from ``filled`` to the first row's turn. Throughput: 1 row per cycle with
    ``room``.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    stride, limited, meets
        See :class:`hdl.baselines.segment.Segment`.

    Members
    -------
    filled : In(1)
        A pass waits.
    pass_ : In
    take : Out(1)
        It begins in the next cycle.
    room : In(1)
        A row may be read.
    running, step, begin : Out(1)
        A pass is under way; its row has its turn; it is the first one.
    row : Out
    real : Out(1)
        There is a tuple in it: a pass over nothing has one row without any.
    mark : Out(1)
        The row stands for a mark.
    tag : Out
        Number of the tuple in the row.
    limit : Out
        Only if ``limited``.
    meeting : Out(1)
        It is none of the ring but one that is met; in the cycle of ``step``, with ``meets`` only.
    tail, met_tail : In
        What a pass of a later tuple needs first.
    kept, met_kept : Out
        What is needed first, out of a register.
    """

    def __init__(self, parameters, *, stride=1, limited=False, meets=0):
        self.parameters = parameters
        self.stride = stride
        self.limited = limited
        self.meets = meets
        self.latency = 1
        tag, place = unsigned(parameters.ordinal_bits), place_shape(parameters)
        super().__init__(
            {
                "filled": In(1),
                "pass_": In(pass_layout(parameters, limited=limited, meets=meets)),
                "take": Out(1),
                "room": In(1),
                "running": Out(1),
                "step": Out(1),
                "begin": Out(1),
                "row": Out(place),
                "real": Out(1),
                "mark": Out(1),
                "tag": Out(tag),
                "tail": In(place),
                "kept": Out(place),
                **({"limit": Out(tag)} if limited else {}),
                **({"meeting": Out(1), "met_tail": In(tag), "met_kept": Out(tag)} if meets else {}),
            }
        )

    def of_row(self):
        """Return what belongs to the row whose turn it is, by name."""
        names = ["real", "mark", "tag"]
        names += ["limit"] * self.limited + ["meeting"] * (self.meets > 0)
        return {name: getattr(self, name) for name in names}

    def elaborate(self, platform):
        m = Module()
        # Of the pass under way; it counts down the rows that are left, this one among them.
        now = Signal(self.pass_.shape(), reset_less=True)
        fresh = Signal(reset_less=True)
        started = Signal(place_shape(self.parameters), reset_less=True)
        ring = now.rows.any()
        last = ~now.rows[1:].any()
        if self.meets:
            last &= ~now.met[1:].any() & ~(now.rows[0] & now.met[0])
        m.d.comb += [
            self.step.eq(self.running & self.room),
            self.begin.eq(self.step & fresh),
            self.take.eq(self.filled & (~self.running | (self.step & last))),
            self.row.eq(now.first),
            self.real.eq(ring | now.met.any() if self.meets else ring),
            self.mark.eq(now.mark),
            self.tag.eq(now.oldest),
        ]
        if self.limited:
            m.d.comb += self.limit.eq(now.limit)
        with m.If(self.step):
            m.d.sync += [fresh.eq(0), now.first.eq(now.first + 1)]
            self.elaborate_step(m, now, ring)
            with m.If(last):
                m.d.sync += self.running.eq(0)
        with m.If(self.take):
            m.d.sync += [self.running.eq(1), fresh.eq(1), now.eq(self.pass_)]
            m.d.sync += started.eq(self.pass_.first)
            if self.meets:  # a pass that has no rows begins with those that it meets
                with m.If(~self.pass_.rows.any()):
                    m.d.sync += now.oldest.eq(self.pass_.met_first)
        self.elaborate_kept(m, started)
        return m

    def elaborate_step(self, m, now, ring):
        """Go on to the next row, or to the next tuple that is met."""
        if not self.meets:
            m.d.sync += [now.rows.eq(now.rows - 1), now.oldest.eq(now.oldest + self.stride)]
            return
        m.d.comb += self.meeting.eq(~ring)
        with m.If(ring):
            m.d.sync += [now.rows.eq(now.rows - 1), now.oldest.eq(now.oldest + self.stride)]
            with m.If(now.rows == 1):
                m.d.sync += now.oldest.eq(now.met_first)
        with m.Else():
            m.d.sync += [now.met.eq(now.met - 1), now.oldest.eq(now.oldest + 1)]

    def elaborate_kept(self, m, started):
        """Say what passes that are under way or wait need first, or a later one will."""
        waiting = Mux(self.filled, self.pass_.first, self.tail)
        m.d.sync += self.kept.eq(Mux(self.running, started, waiting))
        if self.meets:
            met = Signal.like(self.met_tail, name="met_started", reset_less=True)
            with m.If(self.take):
                m.d.sync += met.eq(self.pass_.met_first)
            waiting = Mux(self.filled, self.pass_.met_first, self.met_tail)
            m.d.sync += self.met_kept.eq(Mux(self.running, met, waiting))
