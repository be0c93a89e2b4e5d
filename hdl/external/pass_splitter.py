# SPDX-License-Identifier: Apache-2.0
"""Splits the rows of a pass into bursts that are read and rows that are not in memory yet."""

from functools import reduce

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .layouts import COPIES, burst_layout, pass_layout, row_pointer, run_layout

__all__ = ["PassSplitter"]


class PassSplitter(wiring.Component):
    """Decide, row after row of a pass, where its keys come from.

    A row before ``written`` is in memory, and is read from there in a burst. A row from there on is
    among the recent ones, and is copied. Rows become written while a pass goes on, so what was
    decided of rows that wait for their turn would not hold for long. Therefore it is decided for at
    most :data:`~hdl.external.layouts.COPIES` rows at a time, which are then copied without a pause:
    a recent row stays where it is for longer than that.

    Latency: 2 cycles from ``passes`` to the first burst, 1 more to the address of the first row
    that is copied. Throughput: a burst in 2 cycles; 8 copied rows in 9 cycles; a cycle between two
    passes.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    passes : In(stream.Signature(pass_layout(parameters)))
    written : In
        The first row that is not in memory, with wrap bit.
    bursts : Out(stream.Signature(burst_layout(parameters)))
        The rows to read. No burst crosses a multiple of ``memory_burst`` rows.
    room : In(1)
        There is room for a run of copied rows, and one more.
    copy : Out(1)
        The row at ``address`` is copied.
    address : Out(range(recent_rows))
    blocked : In(1)
        The row at ``address`` cannot be read in this cycle.
    run_room : In(1)
        Two more runs can be taken; from a register.
    run : Out(1)
        The run ``rows`` follows those before. It is told in the cycle before its burst is offered,
        or its first row is copied.
    rows : Out(run_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "passes": In(stream.Signature(pass_layout(parameters))),
                "written": In(row_pointer(parameters)),
                "bursts": Out(stream.Signature(burst_layout(parameters))),
                "room": In(1),
                "copy": Out(1),
                "address": Out(range(parameters.recent_rows)),
                "blocked": In(1),
                "run_room": In(1),
                "run": Out(1),
                "rows": Out(run_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row, stop = (Signal(row_pointer(self.parameters), name=name) for name in ("row", "stop"))
        only = Signal()  # the pass is empty: it has one row, which is copied
        asks = Signal()  # a burst is requested
        more = Signal(self.rows.more.shape())  # rows that follow in this run
        final = Signal()  # the pass ends with this run
        m.d.comb += [
            self.address.eq(row),
            self.bursts.payload.row.eq(row),
            self.bursts.payload.more.eq(more),
            self.bursts.valid.eq(asks),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.passes.ready.eq(1)
                m.d.sync += [
                    row.eq(self.passes.payload.first),
                    stop.eq(self.passes.payload.stop),
                    only.eq(self.passes.payload.empty),
                ]
                with m.If(self.passes.valid):
                    m.next = "DECIDE"
            with m.State("DECIDE"):
                written, length, ends = self.elaborate_length(m, row, stop, only)
                m.d.sync += [more.eq(length - 1), final.eq(ends)]
                with m.If(self.run_room & (written | self.room)):
                    m.d.comb += [
                        self.run.eq(1),
                        self.rows.copied.eq(~written),
                        self.rows.more.eq(length - 1),
                    ]
                    m.d.sync += asks.eq(written)
                    m.next = "READ"
                    with m.If(~written):
                        m.next = "COPY"
            with m.State("READ"):
                with m.If(self.bursts.ready):
                    m.d.sync += [asks.eq(0), row.eq(row + more + 1)]
                    m.next = "DECIDE"
                    with m.If(final):
                        m.next = "IDLE"
            with m.State("COPY"):
                m.d.comb += self.copy.eq(~self.blocked)
                with m.If(~self.blocked):
                    m.d.sync += [more.eq(more - 1), row.eq(row + 1)]
                    with m.If(more == 0):
                        m.next = "DECIDE"
                        with m.If(final):
                            m.next = "IDLE"
        return m

    def elaborate_length(self, m, row, stop, only):
        """Return whether the next run is in memory, its number of rows, and whether it is final."""
        burst = self.parameters.memory_burst
        width = len(row)
        unwritten, left = ((end - row)[:width] for end in (self.written, stop))
        # Rows from `written` on are fewer than half of what a pointer with a wrap bit counts.
        written = ~unwritten[-1] & (unwritten != 0) & ~only
        until = burst - row[: ceil_log2(burst)]  # the next multiple of a burst
        read = reduce(self.lesser, (until, unwritten, left))
        copied = Mux(only, 1, self.lesser(left, COPIES))
        length = Signal(range(max(burst, COPIES) + 1))
        m.d.comb += length.eq(Mux(written, read, copied))
        return written, length, only | (left == length)

    @staticmethod
    def lesser(one, other):
        """Return the lesser of two numbers."""
        one, other = Value.cast(one), Value.cast(other)
        return Mux(one < other, one, other)
