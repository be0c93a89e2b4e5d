# SPDX-License-Identifier: Apache-2.0
"""Time-based windows: keys leave once they have outlived the lifespan (Algorithm 4)."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.inputs import control_layout

from .age_flags import AgeFlags
from .deadline_queue import DeadlineQueue

__all__ = ["TimeExpiry", "time_members", "times_layout"]


class TimeExpiry(wiring.Component):
    """Remove the keys that have outlived the lifespan by the timestamp at hand, one a cycle.

    The deadline of every key of the span waits in a :class:`DeadlineQueue`, whose two oldest ones
    :class:`AgeFlags` compares ahead with the timestamps of the words in the region's input
    register.

    Latency: 0 cycles if nothing is to be removed, otherwise 1 per key; 3 more when the first key
    has only just been stored, and up to 10 when the oldest deadline is still on its way into or out
    of memory. Throughput: a key per cycle.

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
        Timestamps of the word that comes to the region's input register, that of its first tuple
        first; that of an only one twice.
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

    rest : In(1)
        Of the word at hand, only the second tuple is left.
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
        emptied = ResetInserter(self.restart)
        m.submodules.deadlines = deadlines = emptied(
            DeadlineQueue(bits + 1, depth=1 << ceil_log2(self.parameters.sub_window))
        )
        m.submodules.flags = flags = emptied(AgeFlags(bits, self.coming.shape().length))
        m.d.comb += [
            deadlines.add.eq(self.store & self.timed),
            deadlines.last.eq(self.arrival + lifespan),
            deadlines.take.eq(self.aged),
            flags.leaves.eq(self.aged),
            flags.ageless.eq(~self.timed),
            *(
                getattr(flags, name).eq(getattr(deadlines, name))
                for name in ("oldest", "following", "oldest_valid", "following_valid")
            ),
            *(
                getattr(flags, name).eq(getattr(self, name))
                for name in ("coming", "fills", "moves")
            ),
        ]
        outlived, lives = flags.outlived, flags.lives
        if self.parameters.side_by_side:
            outlived, lives = (Mux(self.rest, *reversed(both)) for both in (outlived, lives))
            # The window may be about to become time-based, but only together with a restart.
            alone = self.between & (self.vacant | self.restart)
            m.d.comb += self.both_settled.eq((self.vacant | flags.lives[1]) & ~alone)
        m.d.comb += [
            self.aged.eq(self.present & outlived),
            self.settled.eq(self.vacant | lives),
        ]
        return m


def times_layout(parameters):
    """Return the layout of the timestamps of a region word, in the order of its tuples."""
    return data.ArrayLayout(parameters.timestamp_bits, 2 if parameters.side_by_side else 1)


def time_members(parameters):
    """Return the members of whatever settles the timestamps of a region's words."""
    members = {"coming": In(times_layout(parameters))}
    if not parameters.timestamp_bits:
        return members
    members |= {"fills": In(1), "moves": In(1)}
    if parameters.side_by_side:
        members |= {"rest": In(1), "between": In(1), "both_settled": Out(1)}
    return members
