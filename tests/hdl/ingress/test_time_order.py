# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ingress.word_facts import TimeOrder, ordered_word
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import input_word
from tests.hdl.input_words import both_word, control_word, integer, tuple_word
from tests.hdl.stream_bench import StreamBench

BITS = 4


def order_of(tuples_per_word):
    """A component for narrow words, with or without pairs."""
    return TimeOrder(
        JoinParameters.of(
            cores=1, sub_window=4, keys=(KeyField(name="x", bits=4, signed=False),),
            timestamp_bits=BITS, engine="index", tuples_per_word=tuples_per_word,
        )
    )  # fmt: skip


def random_words(generator, count, tuples_per_word):
    """Words of all kinds, whose time goes backwards now and then."""
    now = 0
    for _ in range(count):
        choice = generator.random()
        if choice < 0.1:
            yield control_word(generator.choice(["CLEAR", "FLUSH", "WINDOW"]), 0, 3), None
            continue
        now = max(0, min((1 << BITS) - 2, now + generator.choice([-1, 0, 0, 0, 1, 1])))
        key = {"x": generator.randrange(16)}
        if tuples_per_word == 2 and choice < 0.6:
            then = max(0, now + generator.choice([-1, 0, 0, 1]))
            first = generator.randrange(2)
            r_time, s_time = (then, now) if first else (now, then)
            yield both_word(first, key, key, r_time, s_time), (now, then)
            now = then
        else:
            yield tuple_word(generator.randrange(2), key, now), (now, now)


def expected(words):
    """What the timestamps of words say, word by word."""
    newest = 0
    for word, times in words:
        if times is None:
            if word["body"]["control"]["op"].name == "CLEAR":
                newest = 0
            yield None
            continue
        yield times[0] < newest, times[1] < times[0]
        newest = times[1]


@pytest.mark.few(2)
@pytest.mark.parametrize("tuples_per_word", [1, 2])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_time_is_compared_with_the_word_before_and_within_a_word(tuples_per_word, stalls):
    dut = order_of(tuples_per_word)
    layout, arriving = ordered_word(dut.parameters), input_word(dut.parameters)
    words = list(random_words(random.Random(tuples_per_word), 400, tuples_per_word))
    sent = [integer(arriving, word) for word, _ in words]
    bench = StreamBench(dut, deadline=4_000, stalls=stalls, seed=3)
    starts, ends = [], []
    bench.source(dut.i, sent, stamps=starts)
    received = bench.sink(dut.o, len(sent), stamps=ends)
    bench.run()
    seen = [0, 0]
    for word, said, found in zip(sent, expected(words), received, strict=True):
        ordered = layout.from_bits(found)
        assert integer(arriving, ordered.word) == word
        if said is not None:
            assert (ordered.backward, ordered.late) == said
            seen = [count + flag for count, flag in zip(seen, said, strict=True)]
    assert seen[0] > 20
    assert (seen[1] > 20) == (tuples_per_word == 2)
    if not stalls:
        assert {end - start for start, end in zip(starts, ends, strict=True)} == {dut.latency}
        assert starts[-1] - starts[0] == len(sent) - 1
