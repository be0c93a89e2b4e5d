# SPDX-License-Identifier: Apache-2.0
"""The words of both lanes and the marks against a model; when each may be sent; cycles."""

import random

import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.handshake.accelerator import Coordinator
from bench.handshake.layouts import LaneKind, lane_word
from hdl.parameters import JoinParameters, KeyField
from hdl.words.results import faults_layout
from tests.bench.handshake.lane_ends import LaneEnds
from tests.bench.handshake.lane_model import LaneModel
from tests.halves import half
from tests.hdl.input_words import control_word, integer, least, region_input, tuple_word
from tests.hdl.stream_bench import StreamBench

CHAINS = (HANDSHAKE, LOW_LATENCY)
MIXED = (KeyField(name="x", bits=7), KeyField(name="y", bits=5, signed=False))
#: Cycles from the transfer of a word of a lane to the cycle in which a chain says that it is taken.
TAKING = 2


def run(parameters, words, *, stalls=0.0, seed=0, delay=lambda: TAKING, sent=None):
    """Send words with their flags; return the model, the ends of the lanes and the marks."""
    dut = Coordinator(parameters)
    model, bench = (
        LaneModel(parameters),
        StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed),
    )
    for word, flags in words:
        model.take(word, **flags)
    inputs = [region_input(parameters, word, **flags) for word, flags in words]
    bench.source(dut.i, inputs, stamps=sent)
    ends, settled = LaneEnds(bench, dut, parameters, delay=delay), []

    async def watch(ctx):
        while True:
            before = ends.settled
            *_, valid, ready = await ctx.tick().sample(dut.marks.valid, dut.marks.ready)
            if valid and ready:
                settled.append(before)

    bench.simulator.add_testbench(watch, background=True)
    marks = bench.sink(dut.marks, len(model.marks))
    bench.run(extra_cycles=60)
    layout = faults_layout(parameters)
    assert marks == [integer(layout, faults) for faults in model.marks]
    assert all(now >= least for now, least in zip(settled, model.settled_before, strict=True))
    return model, ends


def as_words(parameters, lane):
    """The words of a lane, without the bits that mean nothing in a word of its kind."""
    layout, found = lane_word(parameters), []
    for word in map(layout.from_bits, lane):
        values = {"kind": word.kind, "restart": word.restart if word.kind == LaneKind.FENCE else 0}
        if word.kind == LaneKind.TUPLE:
            values["body"] = {"tuple": word.body.tuple}
            for name in ("homeless", "before"):
                if name in layout.members:
                    values[name] = word[name]
        elif word.kind == LaneKind.BOUND:
            values["body"] = {"bound": word.body.bound}
        found.append(integer(layout, values))
    return found


def expected_words(parameters, lane):
    """The words of a lane that a model has sent."""
    layout = lane_word(parameters)
    return [
        integer(layout, {"kind": word.kind, "restart": word.restart, **word.content})
        for word in lane
    ]


def random_words(parameters, seed, count):
    """Tuples and control words at random, time going on, with random faults in the latter."""
    generator, now, words = random.Random(seed), 0, []
    for _ in range(count):
        if generator.random() < 0.8:
            side = generator.choice([generator.randrange(2), int(generator.random() < 0.9)])
            now = min(now + generator.choice([0, 0, 1, 5]), 255)
            keys = {}
            for field in parameters.keys:
                first = least(field)
                keys[field.name] = generator.randrange(first, first + (1 << field.bits))
            time = now if parameters.timestamp_bits else 0
            words.append((tuple_word(side, keys, time), {}))
            continue
        ops = ["CLEAR", "FLUSH", "PRECISION", "WINDOW", "BOUND_LOW", "BOUND_HIGH"]
        if parameters.timestamp_bits:
            ops += ["LIFESPAN"] * 2
        op = generator.choice(ops)
        value = {
            "WINDOW": generator.randint(1, parameters.capacity),
            "LIFESPAN": generator.choice([0, 1, 10, 200]),
        }.get(op, generator.randint(-3, 3))
        now = 0 if op == "CLEAR" else now
        flags = {name: generator.randrange(2) for name in ("disorder", "illegal")}
        words.append((control_word(op, generator.randrange(2), value), flags))
    return [*words, (control_word("FLUSH"), {})]


def check_order(parameters, ends):
    """Fences come behind all words, and tuples behind those of the other side that came before."""
    layout, counted = lane_word(parameters), [[], []]
    for lane, words in enumerate(ends.words):
        tuples, kinds = 0, [layout.from_bits(word) for word in words]
        for word in kinds:
            counted[lane].append(tuples)
            tuples = 0 if word.restart and word.kind == LaneKind.FENCE else tuples
            tuples += word.kind == LaneKind.TUPLE
        counted[lane].append(tuples)
    for lane, words in enumerate(ends.words):
        for n, (bits, taken) in enumerate(zip(words, ends.log[lane], strict=True)):
            word = layout.from_bits(bits)
            if word.kind == LaneKind.FENCE:
                assert taken[lane] == n
            elif word.kind == LaneKind.TUPLE and parameters.arrangement.expedited:
                assert counted[1 - lane][taken[1 - lane]] == word.before


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("architecture", "cores", "comparator", "timestamp_bits", "stalls"),
    half(
        CHAINS,
        [
            (1, "band", 0, 0.0),
            (2, "equality", 8, 0.2),
            (3, "band", 8, 0.5),
            (5, "equality", 0, 0.7),
        ],
    ),
)
def test_both_lanes_get_the_words_of_the_model(
    architecture, cores, comparator, timestamp_bits, stalls
):
    parameters = JoinParameters.of(
        cores=cores, sub_window=2, keys=MIXED, comparator=comparator,
        timestamp_bits=timestamp_bits, architecture=architecture,
    )  # fmt: skip
    generator = random.Random(cores)
    model, ends = run(
        parameters, random_words(parameters, cores, 120), stalls=stalls, seed=cores,
        delay=lambda: generator.randint(TAKING, 9),
    )  # fmt: skip
    for lane in range(2):
        found = as_words(parameters, ends.words[lane])
        assert found == expected_words(parameters, model.lanes[lane])
    check_order(parameters, ends)


def of_x(parameters, side, x, time=0):
    return tuple_word(side, {"x": x, "y": 0}, time), {}


def small(architecture, **others):
    return JoinParameters.of(cores=2, sub_window=2, keys=MIXED, architecture=architecture, **others)


@pytest.mark.parametrize("architecture", CHAINS)
def test_a_tuple_without_room_is_dropped_and_told_until_the_mark_of_clear(architecture):
    """A word that has to wait for a deadline, of either side, decides about the tuple at hand."""
    parameters = small(architecture, timestamp_bits=8)
    words = [(control_word("LIFESPAN", 1, 3), {})]
    words += [of_x(parameters, 1, x, 10) for x in range(6)]  # two too many
    words += [of_x(parameters, 1, 7, 14), of_x(parameters, 0, 8, 14)]  # the others are late now
    words += [(control_word(op), {}) for op in ("FLUSH", "CLEAR", "FLUSH")]
    model, ends = run(parameters, words)
    assert [faults["overflow"] for faults in model.marks] == [2, 2, 0]
    kinds = [lane_word(parameters).from_bits(word).kind for word in ends.words[1]]
    assert kinds.count(LaneKind.TUPLE) == 5
    for lane in range(2):
        found = as_words(parameters, ends.words[lane])
        assert found == expected_words(parameters, model.lanes[lane])


@pytest.mark.parametrize("architecture", CHAINS)
def test_a_tuple_reaches_its_lane_after_the_stated_cycles(architecture):
    parameters, sent = small(architecture), []
    dut = Coordinator(parameters)
    _, ends = run(parameters, [of_x(parameters, 0, 1), (control_word("FLUSH"), {})], sent=sent)
    # Into the register at the begin of the lane, and out of it.
    assert ends.stamps[0][0] - sent[0] == dut.latency + 1


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("architecture", "window", "turns", "cycles"),
    [
        (HANDSHAKE, 4, (0, 1), 2),
        (HANDSHAKE, 1, (0, 1), 4),  # two more for the one that leaves
        (HANDSHAKE, 4, (0,), 2),
        (LOW_LATENCY, 4, (0,), 2),
        (LOW_LATENCY, 4, (0, 1), 2 + Coordinator.ALTERNATION),
    ],
)
def test_tuples_follow_each_other_after_the_stated_cycles(architecture, window, turns, cycles):
    parameters = JoinParameters.of(cores=16, sub_window=4, keys=MIXED, architecture=architecture)
    window = window if window == 1 else parameters.capacity
    words = [(control_word("WINDOW", side, window), {}) for side in range(2)]
    words += [of_x(parameters, turns[n % len(turns)], n) for n in range(30)]
    sent = []
    run(parameters, [*words, (control_word("FLUSH"), {})], sent=sent)
    times = sent[8:32]
    assert times[-1] - times[0] == cycles * (len(times) - 1)


@pytest.mark.parametrize("architecture", CHAINS)
def test_a_window_begins_when_its_tuples_have_left(architecture):
    """WINDOW empties its own side, CLEAR both; in the handshake join every word empties both."""
    parameters = small(architecture)
    words = [of_x(parameters, side, 3) for side in (0, 1, 0, 1)]
    words += [(control_word("WINDOW", 1, 1), {})]
    words += [of_x(parameters, 1, x) for x in range(3)]
    model, ends = run(parameters, [*words, (control_word("CLEAR"), {})])
    kinds = [[lane_word(parameters).from_bits(word).kind for word in lane] for lane in ends.words]
    handshake = architecture == HANDSHAKE
    # Tuples of R leave in S's lane: before WINDOW of the other side only in the handshake join.
    before = kinds[1][: kinds[1].index(LaneKind.FENCE)]
    assert before.count(LaneKind.EXPIRE) == (2 if handshake else 0)
    assert kinds[0].count(LaneKind.EXPIRE) == 2 + 2 + 1
    assert kinds[1].count(LaneKind.EXPIRE) == 2
    assert [kinds[lane].count(LaneKind.FENCE) for lane in range(2)] == [3, 3]
    for lane in range(2):
        found = as_words(parameters, ends.words[lane])
        assert found == expected_words(parameters, model.lanes[lane])


def test_bounds_flow_only_where_cores_prepare_criteria():
    words = [(control_word("BOUND_LOW", 1, -2), {}), (control_word("FLUSH"), {})]
    for architecture, comparator, count in [
        (CHAINS[0], "band", 1), (CHAINS[0], "equality", 0), (CHAINS[1], "band", 0),
    ]:  # fmt: skip
        parameters = small(architecture, comparator=comparator)
        _, ends = run(parameters, words)
        kinds = [lane_word(parameters).from_bits(word).kind for word in ends.words[0]]
        assert kinds.count(LaneKind.BOUND) == count
