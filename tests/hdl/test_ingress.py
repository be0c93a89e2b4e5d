# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ingress import Ingress
from hdl.layouts import input_word, region_word
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.stream_bench import StreamBench


def ingress_parameters(**changes):
    """Parameters of a small accelerator with timestamps."""
    values = {
        "cores": 2,
        "keys": (KeyField(name="x", bits=8),),
        "timestamp_bits": 8,
        "probe_bits": 3,
        **changes,
    }
    return JoinParameters(**values)


def pass_through(parameters, words, count, orders, *, stalls=0.0, seed=0, stamps=None):
    """Send words; return the annotated words and the masks for the combiner."""
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    layout = input_word(parameters)
    bench.source(dut.i, [integer(layout, word) for word in words], stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    order = bench.sink(dut.order, orders)
    bench.run()
    return [region_word(parameters).from_bits(word) for word in received], order


class Schedule:
    """When groups end, written down from the architecture, section 2, one side at a time."""

    def __init__(self, parameters, period):
        longest = 1 << parameters.probe_bits
        self.period = period if 0 < period <= longest else longest
        self.probes = parameters.probes
        self.limit = parameters.cores * parameters.slack
        self.free = self.period > parameters.probes
        self.group = [0, 0]
        self.passed = [0, 0]
        self.since = [0, 0]

    def tuple(self, side):
        """Close and star bits of a tuple of ``side``."""
        close = star = 0
        other = 1 - side
        self.group[side] += 1
        self.since[side] += 1
        due = self.since[side] == self.period
        if due or self.group[side] == self.probes:
            close |= 1 << side
            if due or not self.free:
                star |= 1 << side
        if self.group[other]:
            self.passed[other] += 1
            if self.passed[other] == self.limit:
                close |= 1 << other
                if not self.free:
                    star |= 1 << other
        self.end(close, star)
        return close, star

    def finish(self):
        """Close and star bits of a control word that ends groups."""
        star = sum(1 << side for side in range(2) if self.since[side])
        self.end(3, star)
        return 3, star

    def end(self, close, star):
        """Begin new groups."""
        for side in range(2):
            if close >> side & 1:
                self.group[side] = self.passed[side] = 0
            if star >> side & 1:
                self.since[side] = 0


@pytest.mark.parametrize("probes", [1, 2, 3, 8])
@pytest.mark.parametrize("period", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_groups_close_where_the_rule_says(probes, period, stalls):
    parameters = ingress_parameters(probes=probes)
    generator = random.Random(probes * 100 + period)
    schedule = Schedule(parameters, 1)
    words, expected, order = [], [], []

    def finish(word):
        words.append(word)
        expected.append(schedule.finish())
        if expected[-1][1] and not schedule.free:
            order.append(expected[-1][1])

    finish(control_word("PRECISION", 0, period))
    schedule = Schedule(parameters, period)
    for _ in range(15):
        side, run = generator.randrange(2), generator.choice([1, 2, 5, 30])
        for _ in range(run):
            words.append(tuple_word(side, {"x": 1}))
            expected.append(schedule.tuple(side))
            if expected[-1][1] and not schedule.free:
                order.append(expected[-1][1])
        if generator.random() < 0.3:
            words.append(control_word("BOUND_LOW", 0, -3))
            expected.append((0, 0))
        if generator.random() < 0.3:
            finish(control_word(generator.choice(["FLUSH", "CLEAR", "WINDOW"]), 0, 5))
    received, masks = pass_through(
        parameters, words, len(words), len(order), stalls=stalls, seed=period
    )
    assert [(word.close, word.star) for word in received] == expected
    assert masks == order
    assert all(word.free == (word.close == 3 and schedule.free) or word.free for word in received)


def test_backward_time_drops_tuples_until_clear_and_marks_say_so():
    parameters = ingress_parameters()
    words = [
        tuple_word(0, {"x": 1}, 5),
        tuple_word(1, {"x": 2}, 5),
        tuple_word(0, {"x": 3}, 4),  # backward: dropped
        tuple_word(0, {"x": 4}, 9),  # dropped as well
        control_word("FLUSH"),
        control_word("CLEAR"),
        tuple_word(0, {"x": 5}, 0),
    ]
    received, _ = pass_through(parameters, words, 5, 3)
    assert [word.disorder for word in received] == [0, 0, 1, 1, 0]
    assert received[-1].word.body.tuple.key.x == 5


def test_latency_and_throughput():
    parameters = ingress_parameters(probes=8)
    words = [tuple_word(n % 2, {"x": n}, n) for n in range(100)]
    sent, taken = [], []
    pass_through(parameters, words, 100, 0, stamps=(sent, taken))
    assert taken == [s + Ingress(parameters).latency for s in sent]
    assert sent[-1] - sent[0] == 99
