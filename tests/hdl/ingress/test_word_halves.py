# SPDX-License-Identifier: Apache-2.0
import random

from hdl.ingress.word_facts import WordHalves
from tests.hdl.cycles import each_cycle


def test_two_tuples_go_on_in_their_order_or_at_once():
    """Held against lists: the beats of every word, in the cycles in which they are taken."""
    dut = WordHalves()
    assert dut.latency == 0
    generator = random.Random(1)

    def steps(put, get):
        for _ in range(300):
            tuples, first, apart = (generator.randrange(n) for n in (4, 2, 2))
            beats = [tuples]
            if tuples == 3 and apart:
                beats = [1 << first, 1 << (1 - first)]
            for beat in beats:
                put(tuples=tuples, first=first, apart=apart)
                taken = False
                while not taken:
                    taken = generator.random() < 0.7
                    put(advance=taken)
                    assert get("present") == beat
                    assert get("last") == (beat == beats[-1])
                    yield
                apart = generator.randrange(2)  # looked at in the first beat only

    each_cycle(dut, steps)
