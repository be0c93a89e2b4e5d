# SPDX-License-Identifier: Apache-2.0
import random

from amaranth import *
from amaranth.lib import data
import pytest

from hdl.streams.registers import StreamRegister
from hdl.window.time_expiry import AgeFlags
from tests.halves import half
from tests.hdl.cycles import each_cycle


class BesideRegister(Elaboratable):
    """The flags beside the stream register of the words that they are about."""

    def __init__(self, count):
        self.flags = flags = AgeFlags(8, count)
        self.register = register = StreamRegister(data.ArrayLayout(8, count))
        self.words = register.i.payload
        self.i_valid, self.i_ready = register.i.valid, register.i.ready
        self.o_valid, self.o_ready = register.o.valid, register.o.ready
        self.at_hand = register.o.payload
        for name in ("deadlines", "rises", "outlived"):
            setattr(self, name, getattr(flags, name))

    def elaborate(self, platform):
        m = Module()
        m.submodules.flags = self.flags
        m.submodules.register = self.register
        m.d.comb += [
            self.flags.coming.eq(self.words),
            self.flags.fills.eq(self.i_ready),
            self.flags.moves.eq(~self.o_valid | self.o_ready),
        ]
        return m


@pytest.mark.parametrize(("count", "seed"), half([1, 2], range(4), of=4))
def test_flags_are_about_the_word_at_hand_and_the_two_oldest_deadlines(count, seed):
    """In the cycle in which the word, or the deadline, has come to its place; in any cycle."""
    generator = random.Random(seed)
    dut = BesideRegister(count)
    assert dut.flags.latency == 0

    def steps(put, get):
        queue = [None] * 3  # the oldest deadline, the following one, the one that is coming
        coming = None
        known, both = [[0, 0], [0, 0]], 0
        for _ in range(2_000):
            if coming is None and generator.random() < 0.9:
                coming = [generator.randrange(256) for _ in range(count)]
            put(i_valid=coming is not None, words=coming or [0] * count)
            for n, deadline in enumerate(queue[:2]):
                if deadline is None or not get("o_valid"):
                    continue
                outlived = get("outlived")[n]
                times = list(get("at_hand"))
                assert outlived == sum((time > deadline) << m for m, time in enumerate(times))
                known[n][outlived & 1] += 1
            take = queue[0] is not None and generator.random() < 0.7
            oldest = queue[0] is None or take
            rises = [oldest, queue[1] is None or oldest]
            moves = generator.random() < 0.7
            both += moves and take
            put(
                deadlines=[generator.randrange(512) if d is None else d for d in queue],
                rises=rises[0] | rises[1] << 1,
                o_ready=moves,
            )
            if get("i_ready"):
                coming = None
            yield
            for n, rise in enumerate(rises):
                if rise:
                    queue[n] = queue[n + 1]
            if rises[1] or queue[2] is None:
                new = generator.choice([generator.randrange(250), 130, 257])
                queue[2] = new if generator.random() < 0.8 else None
        assert min(map(min, known)) > 100
        assert both > 100

    each_cycle(dut, steps)
