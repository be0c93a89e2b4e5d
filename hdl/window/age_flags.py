# SPDX-License-Identifier: Apache-2.0
"""Whether the oldest key has outlived a tuple's timestamp, known when the tuple comes."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AgeFlags"]


class AgeFlags(wiring.Component):
    """Compare the timestamps of a word with the oldest deadline before the word is at hand.

    The word is at hand at the output of a :class:`hdl.streams.registers.StreamRegister`. This
    component keeps the timestamps of the same words, in the same places as that register, and
    compares them in the cycle in which they move to its output; so whether a tuple is accepted
    depends on a register and not on a comparison. When the oldest key leaves, the next deadline
    takes its place, with which the word at hand has been compared meanwhile.

    Latency: 1 cycle from ``oldest_valid`` to ``known``. Throughput: a word, or a key that leaves,
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
    oldest, following : In(bits + 1)
        The last moments at which the oldest key, and the one after it, are in the window.
    oldest_valid, following_valid : In(1)
    leaves : In(1)
        The oldest key leaves; only while ``known`` and not ``moves``.
    known : Out(1)
        There is an oldest key, and ``outlived`` is about it. Reset clears it.
    outlived : Out(count)
        It is not in the window any more at this timestamp of the word at hand.
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
                "oldest": In(bits + 1),
                "following": In(bits + 1),
                "oldest_valid": In(1),
                "following_valid": In(1),
                "leaves": In(1),
                "known": Out(1),
                "outlived": Out(count),
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

        # Once the word at hand has been compared with the oldest deadline, the next one matters.
        deadline = Mux(self.known, self.following, self.oldest)
        outlived = Signal(self.count, reset_less=True, name="is_outlived")
        m.d.comb += self.outlived.eq(outlived)
        with m.If(self.moves):
            m.d.sync += [
                self.known.eq(self.oldest_valid),
                outlived.eq(
                    Mux(
                        self.fills,
                        self.beyond(self.coming, self.oldest),
                        self.beyond(spare, self.oldest),
                    )
                ),
            ]
        with m.Elif(self.leaves | ~self.known):
            m.d.sync += [
                self.known.eq(Mux(self.known, self.following_valid, self.oldest_valid)),
                outlived.eq(self.beyond(at_hand, deadline)),
            ]
        return m

    def beyond(self, times, deadline):
        """Return for every timestamp whether it is beyond ``deadline``."""
        return Cat(times[n] > deadline for n in range(self.count))
