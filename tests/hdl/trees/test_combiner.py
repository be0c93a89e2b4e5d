# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.trees.combiner import Combiner
from hdl.words.results import ResultKind, result_word
from tests.hdl.gathering import gathering_parameters, punctuation, region_pair
from tests.hdl.stream_bench import StreamBench

PAIR, STAR, MARK = ResultKind.PAIR, ResultKind.STAR, ResultKind.MARK


def combine(sides, order, count, *, stalls=0.0, seed=0, stamps=None, parameters=None):
    """Run a combiner; return its words as layout constants."""
    parameters = parameters or gathering_parameters(1, 2)
    dut = Combiner(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    for i, words in zip(dut.i, sides, strict=True):
        shape = i.payload.shape()
        integers = [shape.const(word).as_value().value for word in words]
        bench.source(i, integers, stamps=stamps and stamps[0])
    bench.source(dut.order, order)
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    bench.run()
    return [result_word(parameters).from_bits(word) for word in received]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_sides_alternate_as_their_groups_closed(seed):
    generator = random.Random(seed)
    sides, order, expected = [[], []], [], []
    for n in range(40):
        mask = generator.choice([1, 1, 2, 2, 3])
        order.append(mask)
        for side in range(2):
            if mask >> side & 1:
                rows = [generator.randrange(100) for _ in range(generator.randrange(4))]
                sides[side] += [*(region_pair(r) for r in rows), punctuation(STAR)]
                expected += [*((PAIR, side, r) for r in rows), (STAR, side, 0)]
        if n % 10 == 9:
            for side in range(2):
                sides[side].append(punctuation(MARK))
            expected.append((MARK, 0, 0))
    received = combine(sides, order, len(expected), stalls=0.3 * (seed % 3), seed=seed)
    assert [
        (w.kind, w.side, w.body.pair.row if w.kind == PAIR else 0) for w in received
    ] == expected


def test_overflow_names_the_side_that_is_stored():
    # Probes of R meet the window of S, and the other way round.
    star_r, star_s, mark = combine(
        [
            [punctuation(STAR, overflow=1), punctuation(MARK, overflow=1)],
            [punctuation(STAR, disorder=1, illegal=1), punctuation(MARK)],
        ],
        [3],
        3,
    )
    assert star_r.body.punctuation.overflow == 0b10
    assert star_s.body.punctuation.overflow == 0b00
    assert star_s.body.punctuation.disorder == star_s.body.punctuation.illegal == 1
    assert star_r.body.punctuation.disorder == star_r.body.punctuation.illegal == 0
    assert mark.body.punctuation.overflow == 0b10


def told_of_failures(sides, order, count, combine, word_of):
    """Run a combiner of a core with a gate; return (failed, core) of its stars and marks."""
    parameters = gathering_parameters(1, 2, parity=True)
    words = combine(sides, order, count, parameters=parameters)
    flags = [word_of(word).body.punctuation for word in words]
    for told in flags:  # the cause goes with the core
        assert told.failed_parity * told.failed == (1 + told.failed_core) * told.failed
    return [(told.failed, told.failed_core * told.failed) for told in flags]


FAILURES = [
    # What each side's star and mark tell, and what the user is told by both stars and the mark.
    ((0, 0), (0, 0), [(0, 0), (0, 0), (0, 0)]),
    ((1, 1), (0, 0), [(1, 1), (0, 0), (1, 1)]),
    ((0, 0), (1, 1), [(0, 0), (1, 1), (1, 1)]),
    ((1, 0), (1, 1), [(1, 0), (1, 1), (1, 0)]),
]


@pytest.mark.parametrize(("r", "s", "told"), FAILURES)
def test_a_failure_is_told_by_the_side_and_by_marks(r, s, told):
    sides = [
        [
            punctuation(kind, failed=failed, failed_core=core, failed_parity=failed * (1 + core))
            for kind in (STAR, MARK)
        ]
        for failed, core in (r, s)
    ]
    assert told_of_failures(sides, [3], 3, combine, lambda word: word) == told


def test_free_order_needs_no_order_words():
    sides = [
        [punctuation(MARK, free=1)]
        + [w for n in range(5) for w in (region_pair(n), punctuation(STAR))]
        + [punctuation(MARK)]
        for _ in range(2)
    ]
    received = combine(sides, [], 22, stalls=0.3)
    for side in range(2):
        rows = [w.body.pair.row for w in received if w.kind == PAIR and w.side == side]
        assert rows == list(range(5))
    assert [w.kind for w in received].count(STAR) == 10
    assert received[0].kind == received[-1].kind == MARK


def test_latency_and_throughput():
    parameters = gathering_parameters(1, 2)
    assert Combiner(parameters).latency == 2
    sent, taken = [], []
    sides = [[region_pair(n) for n in range(50)] + [punctuation(STAR)], []]
    combine(sides, [1], 51, stamps=(sent, taken))
    # The first word waits for `order`, which comes with it; then there is a word per cycle.
    assert taken == [s + Combiner(parameters).latency for s in sent]
    assert taken[-1] - taken[0] == 50


@pytest.mark.parametrize("order", [[1, 2] * 20, [3] * 20, [3, 1, 2, 2, 3, 1] * 5])
def test_a_star_per_cycle(order):
    parameters = gathering_parameters(1, 2)
    sides = [[punctuation(STAR) for mask in order if mask >> side & 1] for side in range(2)]
    count = sum(map(len, sides))
    sent, taken = [], []
    words = combine(sides, order, count, stamps=(sent, taken))
    assert [w.side for w in words] == [n for mask in order for n in range(2) if mask >> n & 1]
    first = min(sent) + Combiner(parameters).latency
    assert taken == list(range(first, first + count))
