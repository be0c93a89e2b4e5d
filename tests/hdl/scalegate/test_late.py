# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.scalegate.port import LateCheck
from hdl.scalegate.words import GateKind, gate_word
from tests.hdl.stream_bench import StreamBench

LAYOUT = gate_word(3, 4, sources=2)
TUPLE, WATERMARK, LEAVE, BARRIER = GateKind


def checked(sent):
    """Return (kind, time, late) of the words behind the check, by the rule for each word."""
    found, reached = [], 0
    for kind, time in sent:
        if kind in (LEAVE, BARRIER):
            reached = 0
            found.append((kind, 0, False))
        else:
            late = time < reached or (kind == WATERMARK and time == reached)
            reached = max(reached, time)
            found.append((kind, reached, late))
    return found


def run(sent, *, stalls=0.0, seed=0, stamps=(None, None)):
    """Send words; return (kind, time, late) of those that leave, whose bodies are checked."""
    dut = LateCheck(LAYOUT)
    bench = StreamBench(dut, deadline=400, stalls=stalls, seed=seed)
    words = [
        LAYOUT.const({"kind": kind, "time": time, "body": n % 16, "source": n % 2})
        for n, (kind, time) in enumerate(sent)
    ]
    bench.source(dut.i, words, stamps=stamps[0])
    received = bench.sink(dut.o, len(words), stamps=stamps[1])
    bench.run()
    found = [LAYOUT.from_bits(bits) for bits in received]
    assert [(one.body, one.source) for one in found] == [(n % 16, n % 2) for n in range(len(found))]
    return [(GateKind(one.kind), one.time, bool(one.late)) for one in found]


def test_late_words_have_the_time_that_was_reached():
    sent = [(WATERMARK, 0), (TUPLE, 3), (TUPLE, 2), (TUPLE, 1), (WATERMARK, 3), (TUPLE, 3)]
    assert run(sent) == [
        (WATERMARK, 0, True), (TUPLE, 3, False), (TUPLE, 3, True), (TUPLE, 3, True),
        (WATERMARK, 3, True), (TUPLE, 3, False),
    ]  # fmt: skip


def test_times_begin_again_behind_a_barrier_and_a_leave():
    sent = [(TUPLE, 5), (BARRIER, 6), (TUPLE, 2), (LEAVE, 7), (TUPLE, 1), (TUPLE, 0)]
    assert run(sent) == checked(sent)
    assert [late for _, _, late in run(sent)] == [False] * 5 + [True]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.4]))
def test_every_word_is_judged_by_all_before_it(seed, stalls):
    random = Random(seed)
    kinds = [TUPLE] * 6 + [WATERMARK] * 3 + [LEAVE, BARRIER]
    sent = [(random.choice(kinds), random.randrange(8)) for _ in range(40)]
    assert run(sent, stalls=stalls, seed=seed) == checked(sent)


def test_the_check_has_its_latency_and_one_word_per_cycle_late_or_not():
    sent, taken = [], []
    run([(TUPLE, time) for time in (5, 4, 3, 6, 2, 2, 7, 0)], stamps=(sent, taken))
    assert {b - a for a, b in zip(sent, taken, strict=True)} == {LateCheck(LAYOUT).latency}
    assert {b - a for a, b in pairwise(taken)} == {1}
