# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters
from hdl.trees.result_pairing import SideExit
from hdl.words.results import ResultKind, result_word
from tests.halves import half
from tests.hdl.gathering import gathering_parameters, punctuation, region_pair
from tests.hdl.stream_bench import StreamBench

PAIR, STAR, MARK = ResultKind.PAIR, ResultKind.STAR, ResultKind.MARK


def results_of(word):
    """The results of a word, one or two."""
    if "two" not in word.shape().members:
        return [word]
    return [word.one, *([word.two] if word.two.kind != ResultKind.NONE else [])]


def leave(words, *, side, parameters=None, stamps=None, stalls=0.0, seed=0, begin=0):
    """Send words through an exit; return all results, as layout constants."""
    parameters = parameters or gathering_parameters(1, 2)
    dut = SideExit(parameters, side=side)
    layout = result_word(parameters)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=seed)
    shape = dut.i.payload.shape()
    sent, taken = stamps if stamps else (None, None)
    bench.source(dut.i, [shape.const(word).as_value().value for word in words], stamps=sent)
    received = bench.sink(
        dut.o, len(words), stamps=taken, begin=begin,
        weight=lambda word: len(results_of(layout.from_bits(word))),
    )  # fmt: skip
    bench.run(extra_cycles=10)
    return [result for word in received for result in results_of(layout.from_bits(word))]


@pytest.mark.parametrize(("tuples_per_word", "stalls"), half([1, 2], [0.0, 0.4]))
def test_results_leave_in_order_with_their_side(tuples_per_word, stalls):
    generator = random.Random(tuples_per_word)
    kinds = generator.choices([PAIR, STAR, MARK], [6, 2, 1], k=150)
    words = [region_pair(n % 100) if kind == PAIR else punctuation(kind)
             for n, kind in enumerate(kinds)]  # fmt: skip
    parameters = gathering_parameters(1, 2).with_(engine="index", tuples_per_word=tuples_per_word)
    for side in range(2):
        received = leave(words, side=side, parameters=parameters, stalls=stalls, seed=side)
        assert [w.kind for w in received] == kinds
        assert [w.side for w in received] == [side * (kind != MARK) for kind in kinds]
        pairs = [(w.body.pair.row, w.body.pair.probe) for w in received if w.kind == PAIR]
        rows = [n % 100 for n, kind in enumerate(kinds) if kind == PAIR]
        assert pairs == [(row, row % 16) for row in rows]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kind", [STAR, MARK])
def test_overflow_is_that_of_the_window_that_the_side_reads(side, kind):
    told = [{}, {"overflow": 1}, {"disorder": 1}, {"illegal": 1}]
    received = leave([punctuation(kind, **flags) for flags in told], side=side)
    flags = [word.body.punctuation for word in received]
    assert [(f.overflow, f.disorder, f.illegal) for f in flags] == [
        (0, 0, 0), (0b01 if side else 0b10, 0, 0), (0, 1, 0), (0, 0, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [STAR, MARK])
def test_a_failure_is_told_with_its_core(kind):
    parameters = gathering_parameters(1, 2, gates=True)
    words = [
        punctuation(kind, failed=failed, failed_core=core) for failed, core in [(0, 0), (1, 1)]
    ]
    flags = [word.body.punctuation for word in leave(words, side=1, parameters=parameters)]
    assert [(f.failed, f.failed_core) for f in flags] == [(0, 0), (1, 1)]


def test_the_star_of_a_round_is_one_and_a_mark_has_no_round():
    parameters = JoinParameters.of(cores=1, fan_in=2, sub_window=100, probe_bits=4, rounds=True)
    words = [punctuation(kind, inner=inner) for kind in (STAR, MARK) for inner in (0, 1)]
    received = leave(words, side=0, parameters=parameters)
    assert [w.body.punctuation.inner for w in received] == [0, 1, 0, 0]


@pytest.mark.parametrize("tuples_per_word", [1, 2])
def test_latency_and_throughput(tuples_per_word):
    parameters = gathering_parameters(1, 2).with_(engine="index", tuples_per_word=tuples_per_word)
    sent, taken = [], []
    words = [region_pair(n) for n in range(50)] + [punctuation(STAR)]
    leave(words, side=0, parameters=parameters, stamps=(sent, taken))
    assert taken == [s + SideExit(parameters, side=0).latency for s in sent]
    assert taken[-1] - taken[0] == 50


def test_results_that_wait_share_words():
    parameters = gathering_parameters(1, 2).with_(engine="index", tuples_per_word=2)
    taken = []
    words = [region_pair(n) for n in range(20)]
    leave(words, side=1, parameters=parameters, stamps=([], taken), begin=30)
    assert taken == list(range(30, 30 + len(taken)))
    assert len(taken) < 13
