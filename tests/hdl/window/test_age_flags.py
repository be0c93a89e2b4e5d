# SPDX-License-Identifier: Apache-2.0
from collections import deque
import random

from amaranth import *
from amaranth.lib import data
import pytest

from hdl.streams.registers import StreamRegister
from hdl.window.age_flags import AgeFlags
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
        for name in (
            "oldest", "following", "oldest_valid", "following_valid", "ageless", "leaves",
            "outlived", "lives",
        ):  # fmt: skip
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
def test_flags_are_about_the_word_at_hand_and_the_oldest_deadline(count, seed):
    """In the cycle in which the word appears, and in the one after a key has left."""
    generator = random.Random(seed)
    dut = BesideRegister(count)
    assert dut.flags.latency == 1
    everything = (1 << count) - 1

    def steps(put, get):
        deadlines = deque()
        coming = None
        there = False  # the oldest deadline was there a cycle ago, or came up because a key left
        known = seen = 0
        for _ in range(2_000):
            if coming is None and generator.random() < 0.7:
                coming = [generator.randrange(256) for _ in range(count)]
            put(i_valid=coming is not None, words=coming or [0] * count)
            if len(deadlines) < 2 and generator.random() < 0.5:
                deadlines.append(generator.choice([generator.randrange(250), 130]))
            put(
                oldest_valid=len(deadlines) > 0,
                oldest=deadlines[0] if deadlines else generator.randrange(512),
                following_valid=len(deadlines) > 1,
                following=deadlines[1] if len(deadlines) > 1 else generator.randrange(512),
            )
            outlived = 0
            if not there:
                assert get("outlived") == get("lives") == 0
            elif get("o_valid"):
                outlived = get("outlived")
                times = list(get("at_hand"))
                assert outlived == sum((time > deadlines[0]) << n for n, time in enumerate(times))
                assert get("lives") == everything & ~outlived
                known, seen = known + 1, seen + outlived.bit_count()
            leaves = bool(outlived & 1) and generator.random() < 0.8
            put(leaves=leaves, o_ready=not leaves and generator.random() < 0.5)
            if get("i_ready"):
                coming = None
            there = len(deadlines) > leaves
            yield
            if leaves:
                deadlines.popleft()
        assert known > 500
        assert seen > 100

    each_cycle(dut, steps)


def test_every_key_lives_in_a_window_without_age():
    def steps(put, get):
        put(ageless=1, o_ready=1, words=[200])
        yield
        for _ in range(5):
            assert get("lives") == 1
            assert not get("outlived")
            yield

    each_cycle(BesideRegister(1), steps)
