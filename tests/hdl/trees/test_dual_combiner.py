# SPDX-License-Identifier: Apache-2.0
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.trees.combiner import DualCombiner
from hdl.words.results import ResultKind, result_word
from tests.hdl.gathering import gathering_parameters, punctuation, region_pair
from tests.hdl.stream_bench import StreamBench
from tests.hdl.trees.test_combiner import FAILURES, told_of_failures
from tests.hdl.trees.test_turn_queue import ENTRIES, turns_of

PAIR, STAR, MARK, NONE = ResultKind


def combine(sides, order, count, *, stalls=0.0, seed=0, begin=0, stamps=None, parameters=None):
    """Run the combiner until ``count`` results are there; return its words."""
    parameters = (parameters or gathering_parameters(1, 2)).with_(engine="index", tuples_per_word=2)
    layout = result_word(parameters)
    dut = DualCombiner(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    for i, words in zip(dut.i, sides, strict=True):
        shape = i.payload.shape()
        integers = [shape.const(word).as_value().value for word in words]
        bench.source(i, integers, stamps=stamps and stamps[0])
    bench.source(dut.order, order)
    received = bench.sink(
        dut.o, count, stamps=stamps and stamps[1], begin=begin,
        weight=lambda word: results_in(layout.from_bits(word)),
    )  # fmt: skip
    bench.run()
    return [layout.from_bits(word) for word in received]


def results_in(word):
    """How many results a word has."""
    return 1 + (word.two.kind != NONE)


def sequence(words):
    """Kind, side and row of every result; a mark is alone in its word."""
    found = []
    for word in words:
        assert word.one.kind != NONE
        assert word.two.kind != MARK
        assert word.one.kind != MARK or word.two.kind == NONE
        found += [
            (result.kind, result.side, result.body.pair.row if result.kind == PAIR else 0)
            for result in (word.one, word.two)
            if result.kind != NONE
        ]
    return found


def scenario(order, generator, most):
    """The words of both sides for turns, with marks now and then; and the results in order."""
    sides, expected = [[], []], []
    for side in turns_of(order):
        rows = [generator.randrange(100) for _ in range(generator.randrange(most))]
        sides[side] += [*map(region_pair, rows), punctuation(STAR)]
        expected += [*((PAIR, side, row) for row in rows), (STAR, side, 0)]
        if generator.random() < 0.1:
            for words in sides:
                words.append(punctuation(MARK))
            expected.append((MARK, 0, 0))
    return sides, expected


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.sampled_from(ENTRIES), max_size=40),
    st.sampled_from([1, 2, 6, 40]),
    st.sampled_from([0.0, 0.3, 0.7]),
    st.integers(0, 999),
)
def test_turns_follow_one_another_whatever_the_stalls(order, most, stalls, seed):
    sides, expected = scenario(order, random.Random(seed), most)
    words = combine(sides, order, len(expected), stalls=stalls, seed=seed)
    assert sequence(words) == expected


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.sampled_from([PAIR, PAIR, PAIR, STAR]), max_size=80),
    st.lists(st.sampled_from([PAIR, PAIR, PAIR, STAR]), max_size=80),
    st.sampled_from([0.0, 0.3, 0.7]),
    st.integers(0, 999),
)
def test_in_free_order_each_side_keeps_its_own(kinds_r, kinds_s, stalls, seed):
    generator = random.Random(seed)
    sides, own = [], []
    for side, kinds in enumerate((kinds_r, kinds_s)):
        rows = [generator.randrange(100) for _ in kinds]
        words = [
            region_pair(row) if kind == PAIR else punctuation(STAR)
            for kind, row in zip(kinds, rows, strict=True)
        ]
        sides.append([punctuation(MARK, free=1), *words, punctuation(MARK)])
        own.append([(k, side, row if k == PAIR else 0) for k, row in zip(kinds, rows, strict=True)])
    count = sum(map(len, own)) + 2
    words = combine(sides, [], count, stalls=stalls, seed=seed)
    first, *body, last = sequence(words)
    assert first == last == (MARK, 0, 0)
    assert [[result for result in body if result[1] == side] for side in range(2)] == own


def test_a_mark_tells_of_both_windows():
    sides = [[punctuation(MARK, overflow=1, illegal=1)], [punctuation(MARK, overflow=1, illegal=1)]]
    (mark,) = combine(sides, [], 1)
    flags = mark.one.body.punctuation
    assert (flags.overflow, flags.disorder, flags.illegal) == (3, 0, 1)


@pytest.mark.parametrize(("r", "s", "told"), FAILURES)
def test_a_mark_tells_of_a_failure_of_either_side(r, s, told):
    sides = [
        [punctuation(MARK, failed=failed, failed_core=core, failed_parity=failed * (1 + core))]
        for failed, core in (r, s)
    ]
    assert told_of_failures(sides, [], 1, combine, lambda word: word.one) == told[2:]


def test_latency():
    sent, taken = [], []
    words = combine([[punctuation(STAR)], []], [1], 1, stamps=(sent, taken))
    assert sequence(words) == [(STAR, 0, 0)]
    assert taken[0] - sent[0] == DualCombiner(gathering_parameters(1, 2)).latency == 2


def cycles(sides, order, count, **options):
    """Cycles from the first word to the last one."""
    taken = []
    words = combine(sides, order, count, stamps=([], taken), **options)
    assert len(sequence(words)) == count
    return taken[-1] - taken[0] + 1


@pytest.mark.few(1)
@pytest.mark.parametrize("begin", [0, 60])
def test_two_results_per_cycle_while_order_is_free(begin):
    count = 200
    sides = [[punctuation(MARK, free=1)] + [region_pair(n) for n in range(count)] for _ in "RS"]
    spent = cycles(sides, [], 2 * count + 1, begin=begin)
    assert spent <= count + 2


@pytest.mark.few(1)
@pytest.mark.parametrize("entry", [3, 7])
def test_two_stars_per_cycle_where_sides_take_turns(entry):
    sides = [[punctuation(STAR)] * 40 for _ in "RS"]
    assert cycles(sides, [entry] * 40, 80) == 40


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "pairs", [4, 5, 63, *(pytest.param(n, marks=pytest.mark.long) for n in (16, 64))]
)
def test_turns_that_wait_take_half_as_many_cycles_as_results(pairs):
    turns = 12
    group = [*map(region_pair, range(pairs)), punctuation(STAR)]
    sides = [group * (turns // 2) for _ in "RS"]
    order = [3] * (turns // 2)
    spent = cycles(sides, order, turns * len(group))
    rows = -(-len(group) // 2)
    # The first turn does not wait; its results come one per cycle.
    assert spent <= len(group) + turns * (rows + 1)


def test_a_side_with_few_results_is_not_kept_waiting():
    sides = [
        [punctuation(MARK, free=1)] + [region_pair(n) for n in range(60)],
        [punctuation(MARK, free=1), region_pair(99)],
    ]
    words = combine(sides, [], 62)
    places = [n for n, word in enumerate(words) for r in (word.one, word.two) if r.side]
    assert places[0] <= 3
