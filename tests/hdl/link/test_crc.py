# SPDX-License-Identifier: Apache-2.0
import random
import zlib

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.frames import RESIDUE, crc_step, first_state
from tests.hdl.cycles import each_cycle


class Step(wiring.Component):
    state: In(32)
    byte: In(8)
    session: In(32)
    following: Out(32)
    first: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.following.eq(crc_step(self.state, self.byte))
        m.d.comb += self.first.eq(first_state(self.session))
        return m


def test_the_crc_is_that_of_zlib_continued_from_the_session():
    rng = random.Random(1)

    def steps(put, get):
        for session in (0, 1, 0xFFFFFFFF, rng.randrange(1 << 32)):
            text = rng.randbytes(20)
            crc = zlib.crc32(text, session)
            put(session=session)
            yield
            state = get("first")
            for n, byte in enumerate(text + crc.to_bytes(4, "little")):
                if n == len(text):
                    assert state ^ 0xFFFFFFFF == crc
                put(state=state, byte=byte)
                yield
                state = get("following")
            assert state == RESIDUE

    each_cycle(Step(), steps)
