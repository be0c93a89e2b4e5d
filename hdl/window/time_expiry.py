# SPDX-License-Identifier: Apache-2.0
"""Expiry of time-based windows: keys leave when their lifespan has passed (Algorithm 4)."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.inputs import control_layout

from .age_flags import AgeFlags
from .deadline_queue import DeadlineQueue

__all__ = ["TimeExpiry", "time_members", "times_layout"]


class TimeExpiry(wiring.Component):
    """Remove the keys whose lifespan has passed at the timestamp at hand, one per cycle.

    The deadlines of all keys of the span wait in a :class:`DeadlineQueue`. :class:`AgeFlags`
    compares the two oldest deadlines in advance with the timestamps of the words in the region's
    input register. A tuple is settled if the oldest key lives, or if that key leaves in this cycle
    and the following one lives. So the first key that leaves for a tuple costs no cycle.

    Of the two tuples of a word, the second one is settled together with the first one if at most
    one key leaves for both of them. A key that leaves for the second one only leaves between them,
    in the cycle in which both take effect. In that cycle no key leaves for the next word, which
    waits for a cycle if one has to.

    Latency: 0 cycles if at most 1 key is to be removed, otherwise 1 cycle for each key beyond the
    first; 1 more if no key is left then. 2 more when the first key has only just been stored, and
    up to 9 more when the oldest deadline is still on its way into or out of memory. Throughput: 1
    word and 1 key per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, which has timestamps.

    Members
    -------
    begin : In(1)
        Begin a time-based window of lifespan ``size``. ``restart`` follows.
    size : In
    restart : In(1)
        Empty the window.
    timed : In(1)
        The window is time-based.
    coming : In(times_layout(parameters))
        Timestamps of the word at the input of the region's input register, in the order of its
        tuples. Where there are two timestamps, a single tuple has its timestamp in both places.
    fills : In(1)
        The region's input register is ready.
    moves : In(1)
        No word is at hand, at the output of that register, or the word at hand leaves the register.
    present : In(1)
        A tuple of either side is at hand.
    store : In(1)
        A key with the timestamp ``arrival`` is stored.
    arrival : In
    vacant : In(1)
        The window holds no key, and none is about to be stored.
    aged : Out(1)
        The oldest key leaves in this cycle, on behalf of the tuple at hand.
    settled : Out(1)
        No key is left after this cycle that has to be removed on behalf of the tuple at hand.
    wrong : Out(1)
        A deadline that was read from memory holds a flipped bit; only with parity.

    If ``parameters.side_by_side``, also:

    rest : In(1)
        Of the word at hand, only the second tuple is left. Then ``settled`` is high anyway.
    between : In(1)
        The tuple at hand is stored, and the second tuple of the word comes after that.
    all_settled : Out(1)
        If ``settled`` as well: no key is left after the next cycle that has to be removed on behalf
        of the last tuple at hand. This takes the key that is stored in between into account: it
        lives at least as long as any key now, if there is one.
    accepted : In(1)
        All tuples at hand are accepted in this cycle.
    parts : Out(1)
        The oldest key leaves in this cycle, between the two tuples that were accepted in the
        previous cycle; from a register.
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
                **({"wrong": Out(1)} if parameters.parity else {}),
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
            DeadlineQueue(
                bits + 1,
                depth=1 << ceil_log2(self.parameters.sub_window),
                parity=self.parameters.parity,
            )
        )
        if self.parameters.parity:
            m.d.comb += self.wrong.eq(deadlines.wrong)
        m.submodules.flags = flags = AgeFlags(bits, self.coming.shape().length)
        m.d.comb += [
            deadlines.add.eq(self.store & self.timed),
            deadlines.last.eq(self.arrival + lifespan),
            Value.cast(flags.deadlines).eq(
                Cat(deadlines.oldest, deadlines.following, deadlines.coming)
            ),
            flags.rises.eq(deadlines.rises),
            *(
                getattr(flags, name).eq(getattr(self, name))
                for name in ("coming", "fills", "moves")
            ),
        ]
        valid, next_valid = (
            bit.replicate(flags.count)
            for bit in (deadlines.oldest_valid, deadlines.following_valid)
        )
        # For each timestamp of the word at hand: the oldest key has to leave, the oldest key lives,
        # the following key lives.
        outlived = flags.outlived[0] & valid
        lives = ~flags.outlived[0] & valid
        next_lives = ~flags.outlived[1] & next_valid
        lasts = self.vacant | ~self.timed
        if self.parameters.side_by_side:
            self.elaborate_both(m, deadlines, lasts, outlived, lives, next_lives)
            return m
        m.d.comb += [
            self.aged.eq(self.present & outlived),
            deadlines.take.eq(self.aged),
            self.settled.eq(lasts | lives | next_lives),
        ]
        return m

    def elaborate_both(self, m, deadlines, lasts, outlived, lives, next_lives):
        """Settle the tuples of a word together, if they can be.

        ``lasts``: no key leaves, whatever the timestamps.
        """
        first_outlived = Mux(self.rest, outlived[1], outlived[0])
        parting, parts = Signal(), Signal(name="parts_now")
        # The window may be about to become time-based, but only together with a restart.
        alone = self.between & (self.vacant | self.restart)
        m.d.sync += parts.eq(parting & ~self.restart)
        m.d.comb += [
            parting.eq(self.accepted & outlived[1] & ~first_outlived),
            self.parts.eq(parts),
            self.aged.eq(self.present & first_outlived & ~parts),
            deadlines.take.eq(self.aged | parting),
            # While a key parts, no other key can leave for the first tuple of the next word.
            self.settled.eq(self.rest | lasts | lives[0] | (next_lives[0] & ~parts)),
            self.all_settled.eq((lasts | lives[1] | next_lives[1]) & ~alone),
        ]


def times_layout(parameters):
    """Return the layout of the timestamps of a region word, in the order of its tuples."""
    return data.ArrayLayout(parameters.timestamp_bits, 2 if parameters.side_by_side else 1)


def time_members(parameters):
    """Return the members of a component that settles the timestamps of a region's words."""
    members = {"coming": In(times_layout(parameters))}
    if not parameters.timestamp_bits:
        return members
    members |= {"fills": In(1), "moves": In(1)}
    if parameters.side_by_side:
        members |= {
            "rest": In(1),
            "between": In(1),
            "all_settled": Out(1),
            "accepted": In(1),
            "parts": Out(1),
        }
    return members
