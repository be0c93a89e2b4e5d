# SPDX-License-Identifier: Apache-2.0
"""The ingress with two tuples in a word: what leaves means the same as one after the other."""

import random

import pytest

from hdl.ingress.ingress import Ingress
from hdl.parameters import JoinParameters, KeyField
from hdl.trees.order_queue import OrderQueue
from hdl.words.inputs import InputKind, input_word
from hdl.words.prepared import region_word
from tests.halves import half
from tests.hdl.ingress_model import Schedule
from tests.hdl.input_words import both_word, control_word, halves, integer, tuple_word
from tests.hdl.stream_bench import StreamBench


def pair_parameters(**changes):
    """Parameters of a small accelerator with timestamps and two tuples in a word."""
    values = {"cores": 1, "keys": (KeyField(name="x", bits=8),), "probe_bits": 3}
    values |= {"comparator": "equality", "engine": "index", "timestamp_bits": 16}
    return JoinParameters.of(**{**values, "tuples_per_word": 2, **changes})


def pass_through(parameters, words, *, stalls=0.0, seed=0, stamps=None, count=0):
    """Send words; return the words that leave, the sides whose stars follow, and tuples accepted.

    At least ``count`` words leave, of which the stamps are. The sides of one entry for the combiner
    are brought into their order.
    """
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    layout = input_word(parameters)
    bench.source(dut.i, [integer(layout, word) for word in words], stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    order, accepted = [], [0, 0]

    async def watch(ctx):
        while True:
            ctx.set(dut.room, not bench.pauses())
            *_, closing, sides, mask = await ctx.tick().sample(
                dut.closing, dut.closing_sides, dut.accepted
            )
            if closing:
                turns = [side for side in range(2) if sides >> side & 1]
                order.extend(reversed(turns) if sides & 4 else turns)
            for side in range(2):
                accepted[side] += mask >> side & 1

    bench.simulator.add_testbench(watch, background=True)
    bench.run(extra_cycles=100)
    return [region_word(parameters).from_bits(word) for word in received], order, accepted


def flat(parameters, words):
    """What leaves, tuple by tuple: side and key, or control; and flags, with those of its word."""
    found = []
    for word in words:
        flags = (word.close, word.star)
        if word.kind == InputKind.CONTROL:
            found.append(("control", word.body.control.op, flags))
        elif word.kind == InputKind.BOTH:
            sides = (word.first, 1 - word.first)
            keys = [word.body.both["rs"[side]].key.x for side in sides]
            found.append((sides[0], keys[0], None))
            found.append((sides[1], keys[1], flags))
        else:
            side = word.kind.value
            found.append((side, word.body.both["rs"[side]].key.x, flags))
    return found


def random_words(generator, count, *, pairs, burst):
    """Tuples alone and in pairs, in bursts of one side; controls among them. Times rise."""
    words, now = [], 0
    while len(words) < count:
        if generator.random() < 0.05:
            words.append(control_word(generator.choice(["FLUSH", "CLEAR"])))
        if generator.random() < pairs:
            first = generator.randrange(2)
            times = [now, now + generator.randrange(3)]
            now = times[1]
            r_time, s_time = times if first == 0 else reversed(times)
            keys = ({"x": generator.randrange(-9, 9)} for _ in range(2))
            words.append(both_word(first, *keys, r_time, s_time))
            continue
        side = generator.randrange(2)
        for _ in range(generator.randrange(1, burst)):
            now += generator.randrange(3)
            words.append(tuple_word(side, {"x": generator.randrange(-9, 9)}, now))
    return words


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("probes", "bits", "period", "stalls", "pairs", "burst"),
    half(
        [(1, 3), (2, 3), (3, 3), (16, 4)],
        [0, 1, 3],
        [(0.0, 0.9, 2), (0.4, 0.5, 90)],
        of=3,
    ),
)
def test_two_tuples_mean_what_they_mean_one_after_the_other(
    probes, bits, period, stalls, pairs, burst
):
    parameters = pair_parameters(probes=probes, probe_bits=bits)
    generator = random.Random(f"{probes} {period} {stalls}")
    sent = [control_word("PRECISION", 0, period)]
    sent += random_words(generator, 120, pairs=pairs, burst=burst)
    words = [half for word in sent if word["kind"] != InputKind.CONTROL for half in halves(word)]
    received, order, accepted = pass_through(parameters, sent, stalls=stalls)

    schedule, turns, expected = Schedule(parameters, 1), [], []
    for n, word in enumerate(one for both in sent for one in halves(both)):
        if word["kind"] == InputKind.CONTROL:
            entry = ("control", word["body"]["control"]["op"])
            close, star = schedule.finish()
        else:
            side = word["kind"].value
            entry = (side, word["body"]["tuple"]["key"]["x"])
            close, star = schedule.tuple(side)
        expected.append((*entry, (close, star)))
        if not schedule.free:
            turns += [side for side in range(2) if star >> side & 1]
        if n == 0:
            schedule = Schedule(parameters, period)
    found = flat(parameters, received)
    assert [entry[:2] for entry in found] == [entry[:2] for entry in expected]
    # A word of two tuples has the flags of both, which are of different groups.
    before = (0, 0)
    for (*_, flags), (*_, (close, star)) in zip(found, expected, strict=True):
        if flags is None:
            before = (close, star)
            continue
        assert not before[0] & close
        assert flags == (before[0] | close, before[1] | star)
        before = (0, 0)
    assert order == turns
    assert accepted == [sum(word["kind"].value == side for word in words) for side in range(2)]


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_tuples_out_of_order_the_first_leaves_alone(first):
    parameters = pair_parameters()

    def pair(n, early, late):
        """The first tuple has the time ``early``."""
        times = (early, late) if first == 0 else (late, early)
        return both_word(first, {"x": n}, {"x": n}, *times)

    words = [
        pair(1, 5, 5),
        pair(2, 7, 6),  # the second one comes too early, and all tuples after it are dropped
        pair(3, 9, 9),
        control_word("FLUSH"),
        control_word("CLEAR"),
        pair(4, 3, 4),
        pair(5, 3, 9),  # both are dropped: the first one comes too early
        control_word("FLUSH"),
    ]
    received, _, accepted = pass_through(parameters, words)
    found = [entry[:2] for entry in flat(parameters, received) if entry[0] != "control"]
    assert found == [(first, 1), (1 - first, 1), (first, 2), (first, 4), (1 - first, 4)]
    controls = [word.disorder for word in received if word.kind == InputKind.CONTROL]
    assert controls == [1, 1, 1]
    tuples = [word.disorder for word in received if word.kind != InputKind.CONTROL]
    assert not any(tuples)
    assert sorted(accepted) == [2, 3]


def test_pairs_go_through_side_by_side_at_a_word_per_cycle():
    parameters = pair_parameters(probes=4)
    words = [both_word(n % 2, {"x": n}, {"x": n}, n, n) for n in range(100)]
    sent, taken = [], []
    pass_through(parameters, words, stamps=(sent, taken), count=100)
    assert Ingress(parameters).latency == Ingress(parameters.lane).latency
    assert taken == [cycle + Ingress(parameters).latency for cycle in sent]
    assert sent == list(range(sent[0], sent[0] + 100))


def test_a_pair_whose_first_tuple_ends_the_other_sides_group_leaves_as_two():
    parameters = pair_parameters(probes=8)
    limit = parameters.slack
    words = [control_word("PRECISION", 0, 8), tuple_word(0, {"x": 0})]
    words += [tuple_word(1, {"x": 0}) for _ in range(limit - 1)]
    for first, kinds in ((1, [InputKind.S, InputKind.R]), (0, [InputKind.BOTH])):
        received, _, _ = pass_through(parameters, [*words, both_word(first, {"x": 1}, {"x": 1})])
        last = received[len(words) :]
        assert [word.kind for word in last] == kinds
        assert [word.close & 1 for word in last] == [1, 0][: len(kinds)]


@pytest.mark.few(1)
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_closings_in_flight_when_room_ends(stalls):
    """Every tuple ends a group with a star."""
    parameters = pair_parameters()
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=10_000, stalls=stalls, seed=3)
    words = [both_word(n % 2, {"x": 1}, {"x": 1}) for n in range(300)]
    bench.source(dut.i, [integer(input_word(parameters), word) for word in words])
    bench.sink(dut.o, 300)
    generator = random.Random(4)
    in_flight = []

    async def combiner(ctx):
        while True:
            for room in (1, 0):
                for _ in range(generator.randrange(1, 15)):
                    ctx.set(dut.room, room)
                    *_, closing = await ctx.tick().sample(dut.closing)
                    if room:
                        in_flight.append(0)
                    in_flight[-1] += closing

    bench.simulator.add_testbench(combiner, background=True)
    bench.run()
    queue = OrderQueue(3, depth=64, per_word=2)
    assert max(in_flight) == 3 <= queue.in_flight - OrderQueue.IN_FLIGHT + 3
