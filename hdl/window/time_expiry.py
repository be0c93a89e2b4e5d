# SPDX-License-Identifier: Apache-2.0
"""Time-based windows: keys leave once they have outlived the lifespan (Algorithm 4)."""

from amaranth import *
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from hdl.streams.registers import StreamRegister
from hdl.words.inputs import control_layout

__all__ = ["TimeExpiry"]


class TimeExpiry(wiring.Component):
    """Remove the keys that have outlived the lifespan by the timestamp at hand, one a cycle.

    The deadline of every key of the span waits in a queue. The rows of its memory are a power of
    two, as those of block RAMs are, so no address lies outside of it.

    Latency: 0 cycles if nothing is to be removed, otherwise 1 per key, and up to 4 when the oldest
    deadline is still on its way into or out of memory. Throughput: a key per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator, with timestamps.

    Members
    -------
    begin : In(1)
        Windows are time-based from here on, of lifespan ``size``. Followed by ``restart``.
    size : In
    restart : In(1)
        The window is empty from here on.
    timed : In(1)
        The window is time-based.
    present : In(1)
        A tuple of either side with ``timestamp`` is at hand.
    timestamp : In
    store : In(1)
        A key with the timestamp ``arrival`` is stored.
    arrival : In
    vacant : In(1)
        There is no key, nor is one about to come.
    aged : Out(1)
        The oldest key leaves.
    settled : Out(1)
        Nothing is left to remove on behalf of ``timestamp``.

    Where tuples go side by side:

    later : In
        Timestamp of a second tuple, or again that of the only one.
    between : In(1)
        The tuple with ``timestamp`` is stored before the second one comes.
    both_settled : Out(1)
        Nothing will be left to remove on behalf of ``later`` either. A key that is stored in
        between lives at least as long as the oldest one that there is now, if there is any.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        bits = parameters.timestamp_bits
        super().__init__(
            {
                "begin": In(1),
                "size": In(control_layout(parameters)["value"].shape),
                "restart": In(1),
                "timed": In(1),
                "present": In(1),
                "timestamp": In(bits),
                "store": In(1),
                "arrival": In(bits),
                "vacant": In(1),
                "aged": Out(1),
                "settled": Out(1),
                **(self.paired_members() if parameters.side_by_side else {}),
            }
        )

    def paired_members(self):
        """Return the members for two tuples at hand."""
        later = In(self.parameters.timestamp_bits)
        return {"later": later, "between": In(1), "both_settled": Out(1)}

    def elaborate(self, platform):
        m = Module()
        bits = self.parameters.timestamp_bits
        lifespan = Signal(bits)
        with m.If(self.begin):
            m.d.sync += lifespan.eq(self.size)

        emptied = ResetInserter(self.restart)
        rows = 1 << ceil_log2(self.parameters.sub_window)
        m.submodules.deadlines = deadlines = emptied(
            fifo.SyncFIFOBuffered(width=bits + 1, depth=rows + 1)  # a register holds one of them
        )
        m.submodules.oldest = oldest = emptied(StreamRegister(bits + 1))
        connect(m, deadlines.r_stream, oldest.i)
        outlived = self.timestamp > oldest.o.payload
        m.d.comb += [
            deadlines.w_data.eq(self.arrival + lifespan),
            deadlines.w_en.eq(self.store & self.timed),
            oldest.o.ready.eq(self.aged),
            self.aged.eq(self.present & self.timed & oldest.o.valid & outlived),
            self.settled.eq(~self.timed | self.vacant | (oldest.o.valid & ~outlived)),
        ]
        if self.parameters.side_by_side:
            lives = oldest.o.valid & (self.later <= oldest.o.payload)
            # The window may be about to become time-based, but only together with a restart.
            alone = self.between & (self.vacant | self.restart)
            m.d.comb += self.both_settled.eq((~self.timed | self.vacant | lives) & ~alone)
        return m
