# SPDX-License-Identifier: Apache-2.0
"""Whether the oldest key has outlived the timestamps of a word, known when the word comes."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.order import is_below

__all__ = ["AgeFlags"]


class AgeFlags(wiring.Component):
    """Compare the timestamps of a word with the oldest deadline before the word is at hand.

    The word is at hand at the output of a :class:`hdl.streams.registers.StreamRegister`. This
    component keeps the timestamps of the same words, in the same places as that register, and
    compares them in the cycle in which they move to its output; so whether a tuple is accepted
    depends on a register and not on a comparison. When the oldest key leaves, the next deadline
    takes its place, with which the word at hand has been compared meanwhile.

    Latency: 1 cycle from ``oldest_valid`` to the flags. Throughput: a word, or a key that leaves,
    per cycle.

    Parameters
    ----------
    bits : int
        Of a timestamp.
    count : int
        Timestamps in a word.

    Members
    -------
    coming : In(data.ArrayLayout(bits, count))
        Timestamps of the word at the input of the stream register.
    fills : In(1)
        The stream register is ready.
    moves : In(1)
        Nothing is at hand, or the word at hand goes.
    ageless : In(1)
        Every key ``lives``, whatever the time.
    oldest, following : In(bits + 1)
        The last moments at which the oldest key, and the one after it, are in the window.
    oldest_valid, following_valid : In(1)
    leaves : In(1)
        The oldest key leaves; only if it is ``outlived``, and not with ``moves``.
    outlived : Out(count)
        The oldest key is not in the window any more at this timestamp of the word at hand.
    lives : Out(count)
        It is still there then. Neither is so while it is not known, as after a reset.
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

        # What a comparison says goes into a register whether or not there is such a deadline, so
        # that little stands behind a carry chain. When a key leaves, the next deadline matters.
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
        """Return for every timestamp whether it is beyond ``deadline``."""
        return Cat(is_below(m, deadline, times[n]) for n in range(self.count))
