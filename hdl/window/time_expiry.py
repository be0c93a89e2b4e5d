# SPDX-License-Identifier: Apache-2.0
"""Time-based windows: keys leave once they have outlived the lifespan (Algorithm 4)."""

from amaranth import *
from amaranth.lib import data, fifo, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from hdl.streams.registers import StreamRegister
from hdl.words.inputs import control_layout

from .age_flags import AgeFlags

__all__ = ["TimeExpiry", "time_members", "times_layout"]


class TimeExpiry(wiring.Component):
    """Remove the keys that have outlived the lifespan by the timestamp at hand, one a cycle.

    The deadline of every key of the span waits in a queue. The rows of its memory are a power of
    two, as those of block RAMs are, so no address lies outside of it. The two oldest deadlines are
    in registers, where :class:`hdl.window.age_flags.AgeFlags` compares them ahead with the
    timestamps of the words in the region's input register.

    Latency: 0 cycles if nothing is to be removed, otherwise 1 per key, and up to 6 when the oldest
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
    coming : In(times_layout(parameters))
        Timestamps of the word that comes to the region's input register.
    fills : In(1)
        That register is ready.
    moves : In(1)
        Nothing is at hand, at its output, or the word at hand goes.
    present : In(1)
        A tuple of either side is at hand.
    store : In(1)
        A key with the timestamp ``arrival`` is stored.
    arrival : In
    vacant : In(1)
        There is no key, nor is one about to come.
    aged : Out(1)
        The oldest key leaves.
    settled : Out(1)
        Nothing is left to remove on behalf of the tuple at hand.

    Where tuples go side by side:

    earlier, later : In(1)
        Whose timestamp counts, 0 for that of R and 1 for that of S: that of the tuple at hand, and
        that of a second one, or again that of the only one.
    between : In(1)
        The tuple at hand is stored before the second one comes.
    both_settled : Out(1)
        Nothing will be left to remove on behalf of the second one either. A key that is stored in
        between lives at least as long as the oldest one that there is now, if there is any.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "begin": In(1),
                "size": In(control_layout(parameters)["value"].shape),
                "restart": In(1),
                "timed": In(1),
                **time_members(parameters),
                "present": In(1),
                "store": In(1),
                "arrival": In(parameters.timestamp_bits),
                "vacant": In(1),
                "aged": Out(1),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.parameters.timestamp_bits
        lifespan = Signal(bits)
        with m.If(self.begin):
            m.d.sync += lifespan.eq(self.size)
        m.submodules.flags = flags = ResetInserter(self.restart)(
            AgeFlags(bits, self.coming.shape().length)
        )
        self.elaborate_deadlines(m, self.arrival + lifespan, flags)
        m.d.comb += [
            flags.coming.eq(self.coming),
            flags.fills.eq(self.fills),
            flags.moves.eq(self.moves),
            flags.leaves.eq(self.aged),
        ]
        outlived = flags.outlived
        if self.parameters.side_by_side:
            outlived = flags.outlived.bit_select(self.earlier, 1)
        none = ~self.timed | self.vacant
        m.d.comb += [
            self.aged.eq(self.present & self.timed & flags.known & outlived),
            self.settled.eq(none | (flags.known & ~outlived)),
        ]
        if self.parameters.side_by_side:
            lives = flags.known & ~flags.outlived.bit_select(self.later, 1)
            # The window may be about to become time-based, but only together with a restart.
            alone = self.between & (self.vacant | self.restart)
            m.d.comb += self.both_settled.eq((none | lives) & ~alone)
        return m

    def elaborate_deadlines(self, m, deadline, flags):
        """Queue the deadlines of keys; show the two oldest ones to ``flags``."""
        bits = flags.bits + 1
        emptied = ResetInserter(self.restart)
        rows = 1 << ceil_log2(self.parameters.sub_window)
        m.submodules.deadlines = deadlines = emptied(
            fifo.SyncFIFOBuffered(width=bits, depth=rows + 1)  # a register holds one of them
        )
        m.submodules.following = following = emptied(StreamRegister(bits))
        connect(m, deadlines.r_stream, following.i)
        oldest = Signal(bits, reset_less=True)
        valid = Signal(name="oldest_valid")
        moves = ~valid | self.aged
        m.d.comb += [
            deadlines.w_data.eq(deadline),
            deadlines.w_en.eq(self.store & self.timed),
            following.o.ready.eq(moves),
            flags.oldest.eq(oldest),
            flags.oldest_valid.eq(valid),
            flags.following.eq(following.o.payload),
            flags.following_valid.eq(following.o.valid),
        ]
        with m.If(moves):
            m.d.sync += [oldest.eq(following.o.payload), valid.eq(following.o.valid)]
        with m.If(self.restart):
            m.d.sync += valid.eq(0)


def times_layout(parameters):
    """Return the layout of the timestamps of a region word: of R and of S, or of the only tuple."""
    return data.ArrayLayout(parameters.timestamp_bits, 2 if parameters.side_by_side else 1)


def time_members(parameters):
    """Return the members of whatever settles the timestamps of a region's words."""
    members = {"coming": In(times_layout(parameters))}
    if not parameters.timestamp_bits:
        return members
    members |= {"fills": In(1), "moves": In(1)}
    if parameters.side_by_side:
        members |= {"earlier": In(1), "later": In(1), "between": In(1), "both_settled": Out(1)}
    return members
