# SPDX-License-Identifier: Apache-2.0
"""Whether a word's timestamps are beyond the oldest deadline, known when the word is at hand."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.order import is_below

__all__ = ["AgeFlags"]


class AgeFlags(wiring.Component):
    """Compare the timestamps of a word with the oldest deadline before the word is at hand.

    A word is at hand while it is at the output of the region's input register, a
    :class:`hdl.streams.registers.StreamRegister`. This component holds the timestamps of the same
    words in the same places as that register. It compares them in the cycle in which they move to
    the output, so that accepting a tuple depends on a register instead of a comparison.

    The word at hand is also compared with the following deadline, which takes the place of the
    oldest one when the oldest key leaves.

    Latency: 1 cycle from ``oldest_valid`` to the flags. Throughput: 1 word, or 1 key that leaves,
    per cycle.

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
    ageless : In(1)
        Keys do not age: ``lives`` is high.
    oldest, following : In(bits + 1)
        Deadlines of the oldest key and of the key after it: the last time at which it is in the
        window.
    oldest_valid, following_valid : In(1)
    leaves : In(1)
        The oldest key leaves. This requires that the key is ``outlived`` and that ``moves`` is low.
    outlived : Out(count)
        For each timestamp of the word at hand, whether the oldest key has left the window by then.
    lives : Out(count)
        For each timestamp, whether the oldest key is still in the window then. Both flags are low
        while the answer is not known, as after a reset.
    """

    def __init__(self, bits, count):
        self.bits = bits
        self.count = count
        self.latency = 1
        super().__init__(
            {
                "coming": In(data.ArrayLayout(bits, count)),
                "fills": In(1),
                "moves": In(1),
                "ageless": In(1),
                "oldest": In(bits + 1),
                "following": In(bits + 1),
                "oldest_valid": In(1),
                "following_valid": In(1),
                "leaves": In(1),
                "outlived": Out(count),
                "lives": Out(count),
            }
        )

    def elaborate(self, platform):
        m = Module()
        spare, at_hand = (
            Signal.like(self.coming, reset_less=True, name=name) for name in ("spare", "at_hand")
        )
        with m.If(self.fills):
            m.d.sync += spare.eq(self.coming)
        with m.If(self.moves):
            m.d.sync += at_hand.eq(Mux(self.fills, self.coming, spare))

        # The outcome of a comparison is registered whether or not the deadline is valid, so that
        # there is little logic behind the carry chain. When a key leaves, the comparison with the
        # following deadline counts.
        beyond, known = Signal(self.count), Signal()
        first = [self.beyond(m, times, self.oldest) for times in (spare, self.coming)]
        now, then = (self.beyond(m, at_hand, time) for time in (self.oldest, self.following))
        m.d.sync += [
            beyond.eq(
                Mux(self.moves, Mux(self.fills, first[1], first[0]), Mux(self.leaves, then, now))
            ),
            known.eq(Mux(self.leaves, self.following_valid, self.oldest_valid)),
        ]
        every = known.replicate(self.count)
        m.d.comb += [
            self.outlived.eq(every & beyond),
            self.lives.eq((every & ~beyond) | self.ageless.replicate(self.count)),
        ]
        return m

    def beyond(self, m, times, deadline):
        """Return for each timestamp whether it is beyond ``deadline``."""
        return Cat(is_below(m, deadline, times[n]) for n in range(self.count))
