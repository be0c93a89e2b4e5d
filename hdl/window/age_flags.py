# SPDX-License-Identifier: Apache-2.0
"""Whether a word's timestamps are beyond the two oldest deadlines, known when it is at hand."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.order import is_below

__all__ = ["AgeFlags"]


class AgeFlags(wiring.Component):
    """Compare the timestamps of a word with two deadlines before the word is at hand.

    A word is at hand while it is at the output of the region's input register, a
    :class:`hdl.streams.registers.StreamRegister`. This component holds the timestamps of the same
    words in the same places as that register. It stands beside the last registers of a
    :class:`hdl.window.deadline_queue.DeadlineQueue` as well. Words and deadlines both move up, and
    a pair of them is compared in the cycle before it is the word at hand and one of the two oldest
    deadlines. So accepting a tuple depends on registers instead of comparisons, and a word may come
    and a key may leave in the same cycle.

    The word that comes next is compared with all three deadlines. The word at hand is compared with
    the deadline that is coming only: what is known of the others moves up with them.

    Latency: 0 cycles from ``rises`` and ``moves`` to the flags of what has moved. Throughput: 1
    word and 1 deadline per cycle.

    Parameters
    ----------
    bits : int
        Width of a timestamp.
    count : int
        Number of timestamps in a word.

    Members
    -------
    coming : In(data.ArrayLayout(bits, count))
        Timestamps of the word at the input of the stream register.
    fills : In(1)
        The stream register is ready.
    moves : In(1)
        No word is at hand, or the word at hand leaves the stream register.
    deadlines : In(data.ArrayLayout(bits + 1, 3))
        The ``oldest`` deadline of the queue, the ``following`` one and the one that is ``coming``:
        the last times at which their keys are in the window.
    rises : In(2)
        Which of the deadlines move up, as the queue tells.
    outlived : Out(data.ArrayLayout(count, 2))
        For the ``oldest`` deadline and the ``following`` one, and for each timestamp of the word at
        hand: whether the timestamp is beyond the deadline. Of no meaning unless the deadline is
        valid and a word is at hand.
    """

    def __init__(self, bits, count):
        self.bits = bits
        self.count = count
        self.latency = 0
        super().__init__(
            {
                "coming": In(data.ArrayLayout(bits, count)),
                "fills": In(1),
                "moves": In(1),
                "deadlines": In(data.ArrayLayout(bits + 1, 3)),
                "rises": In(2),
                "outlived": Out(data.ArrayLayout(count, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        spare, next_, at_hand = (
            Signal.like(self.coming, reset_less=True, name=name)
            for name in ("spare", "next_times", "at_hand")
        )
        m.d.comb += next_.eq(Mux(self.fills, self.coming, spare))
        with m.If(self.fills):
            m.d.sync += spare.eq(self.coming)
        with m.If(self.moves):
            m.d.sync += at_hand.eq(next_)

        known = [Signal(self.count, reset_less=True, name=f"beyond_{n}") for n in range(2)]
        staying = [*known, self.beyond(m, at_hand, self.deadlines[2])]
        moving = [self.beyond(m, next_, deadline) for deadline in self.deadlines]
        for n, flags in enumerate(known):
            of_word = [
                Mux(self.rises[n], flags_of[n + 1], flags_of[n]) for flags_of in (staying, moving)
            ]
            m.d.comb += self.outlived[n].eq(flags)
            m.d.sync += flags.eq(Mux(self.moves, of_word[1], of_word[0]))
        return m

    def beyond(self, m, times, deadline):
        """Return for each timestamp whether it is beyond ``deadline``."""
        return Cat(is_below(m, deadline, times[n]) for n in range(self.count))
