# SPDX-License-Identifier: Apache-2.0
import random

from amaranth import ClockDomain, Module
from amaranth.sim import Simulator
import pytest

from hdl.ingress.ingress import Ingress
from hdl.ingress.punctuation import GroupSchedule
from hdl.parameters import JoinParameters, KeyField
from hdl.trees.order_queue import OrderQueue
from hdl.words.inputs import Control, InputKind, input_word, operation_indices
from hdl.words.prepared import region_word
from tests.halves import half
from tests.hdl.ingress_model import Schedule
from tests.hdl.input_words import control_word, integer, open_bounds, region_values, tuple_word
from tests.hdl.stream_bench import StreamBench
from tests.hdl.word_model import AnyWord, executed


def ingress_parameters(**changes):
    """Parameters of a small accelerator with timestamps."""
    values = {
        "cores": 2,
        "keys": (KeyField(name="x", bits=8),),
        "timestamp_bits": 8,
        "probe_bits": 3,
        **changes,
    }
    return JoinParameters.of(**values)


def pass_through(parameters, words, count, *, stalls=0.0, seed=0, stamps=None):
    """Send words; return the annotated words and the masks for the combiner."""
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    layout = input_word(parameters)
    bench.source(dut.i, [integer(layout, word) for word in words], stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    masks = []

    async def combiner(ctx):
        while True:
            ctx.set(dut.room, not bench.pauses())
            *_, closing, sides = await ctx.tick().sample(dut.closing, dut.closing_sides)
            if closing:
                masks.append(sides)

    bench.simulator.add_testbench(combiner, background=True)
    bench.run()
    return [region_word(parameters).from_bits(word) for word in received], masks


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("probes", "bits", "period", "stalls"),
    half([(1, 0), (1, 3), (2, 3), (3, 3), (8, 3)], [0, 1, 2, 3, 5, 8], [0.0, 0.4], of=7),
)
def test_groups_close_where_the_rule_says(probes, bits, period, stalls):
    parameters = ingress_parameters(probes=probes, probe_bits=bits)
    generator = random.Random(probes * 100 + period)
    schedule = Schedule(parameters, 1)
    words, expected, order = [], [], []

    def finish(word):
        words.append(word)
        close, star = schedule.finish()
        if star and not schedule.free:
            order.append(star)
        return close, star

    def set_precision(period):
        flags = finish(control_word("PRECISION", 0, period))
        expected.append((*flags, (changed := Schedule(parameters, period)).free))
        return changed

    schedule = set_precision(period)
    for n in range(15):
        side, run = generator.randrange(2), generator.choice([1, 2, 5, 30])
        for _ in range(run):
            words.append(tuple_word(side, {"x": 1}))
            close, star = schedule.tuple(side)
            expected.append((close, star, schedule.free))
            if star and not schedule.free:
                order.append(star)
        if generator.random() < 0.3:
            words.append(control_word("BOUND_LOW", 0, -3))
            expected.append((0, 0, schedule.free))
        if generator.random() < 0.3:
            op = generator.choice(["FLUSH", "CLEAR", "WINDOW"])
            expected.append((*finish(control_word(op, 0, 5)), schedule.free))
        if n == 7:
            schedule = set_precision(generator.choice([0, 1, period, -1, 100]))
    received, masks = pass_through(parameters, words, len(words), stalls=stalls, seed=period)
    assert [(word.close, word.star, bool(word.free)) for word in received] == expected
    assert masks == order


def test_a_schedule_decides_about_the_word_at_hand():
    parameters = ingress_parameters(probes=2)
    dut = GroupSchedule(parameters)
    assert dut.latency == 0
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        ctx.set(dut.period, 3)
        ctx.set(dut.advance, 1)
        decisions = []
        for strobe in (dut.finish, dut.probe, dut.probe, dut.other, dut.probe, dut.finish):
            ctx.set(strobe, 1)
            decisions.append((ctx.get(dut.close), ctx.get(dut.star)))
            await ctx.tick()
            ctx.set(strobe, 0)
        assert decisions == [(1, 0), (0, 0), (1, 1), (0, 0), (0, 0), (1, 1)]
        for free in (1, 0):  # free: groups end without a star
            ctx.set(dut.free, free)
            decisions = []
            for _ in range(3):
                ctx.set(dut.probe, 1)
                decisions.append((ctx.get(dut.close), ctx.get(dut.star)))
                await ctx.tick()
            ctx.set(dut.probe, 0)
            assert decisions == [(0, 0), (1, 1 - free), (1, 1) if free else (0, 0)]

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.few(1)
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_tuples_leave_prepared_with_the_bounds_set_before_them(stalls):
    keys = (KeyField(name="x", bits=8), KeyField(name="y", bits=5, signed=False))
    parameters = ingress_parameters(probes=8, keys=keys)
    generator = random.Random(5)
    words, expected = [], []
    bounds = open_bounds(parameters)
    for n in range(200):
        if generator.random() < 0.4:
            op = generator.choice(["BOUND_LOW", "BOUND_HIGH", "WINDOW"])
            index = generator.choice([0, 1])
            most = 1 << keys[index].bits
            value = generator.randrange(-most, most)
            word = control_word(op, index, value)
            if op != "WINDOW":
                low, high = bounds[keys[index].name]
                pair = (value, high) if op == "BOUND_LOW" else (low, value)
                bounds = {**bounds, keys[index].name: pair}
        else:
            key = {"x": generator.randrange(-128, 128), "y": generator.randrange(32)}
            word = tuple_word(generator.randrange(2), key, n)
        words.append(word)
        expected.append(region_values(parameters, word, bounds=bounds)["body"])
    received, _ = pass_through(parameters, words, len(words), stalls=stalls)
    body = region_word(parameters)["body"].shape
    for word, values in zip(received, expected, strict=True):
        assert word.body.as_value().value == integer(body, values)


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
    received, _ = pass_through(parameters, words, 5)
    assert [word.disorder for word in received] == [0, 0, 1, 1, 0]
    assert received[-1].body.tuple.key.x == 5 + 128  # as it is stored


SHAPES = [
    {},
    {"timestamp_bits": 0},
    {"engine": "index", "timestamp_bits": 0},
    {"engine": "index", "comparator": "equality"},
    {"comparator": "equality", "digest_bits": 3},
    {"keys": tuple(KeyField(name=f"k{n}", bits=3) for n in range(3))},
]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("shape", "stalls"),
    half(SHAPES, [0.0, 0.4], of=4),
)
def test_illegal_words_are_dropped_counted_and_told_until_clear(shape, stalls):
    parameters = ingress_parameters(probes=3, **shape)
    generator = random.Random(stalls)
    known = executed(parameters)
    assert {op.name: n for op, n in operation_indices(parameters).items()} == {
        name: count for name, count in known.items() if count
    }
    words, expected, illegal, dropped = [], [], False, 0
    schedule = Schedule(parameters, 1)
    keys = {key.name: 1 for key in parameters.keys}
    # What SEGMENT does depends on the tuples before it: see test_side_turns.py.
    ops = [op for op in range(16) if op != Control.SEGMENT.value]
    controls = [(op, index) for op in ops for index in (0, 1, 2, 3, 8, 15)]
    listed = False  # core 1 is in the list of the next segment
    generator.shuffle(controls)
    for op, index in controls:
        name = Control(op).name if op < len(Control) else None
        for _ in range(generator.randrange(2)):
            parts = (generator.getrandbits(bits) for bits in (4, 4, 32, 64))
            words.append(AnyWord(parameters, 3, 0, *parts).bits)  # of no kind
            dropped, illegal = dropped + 1, True
        side = generator.randrange(2)
        words.append(integer(input_word(parameters), tuple_word(side, keys, 1)))
        expected.append((InputKind(side), None, illegal, schedule.tuple(side)))
        words.append(AnyWord(parameters, InputKind.CONTROL.value, 0, op, index, 1).bits)
        if name == "CORE":
            legal = parameters.cores > 1 and not listed
            listed, dropped, illegal = True, dropped + (not legal), illegal or not legal
        elif index < known.get(name, 0):
            flags = (0, 0) if name.startswith("BOUND") else schedule.finish()
            expected.append((InputKind.CONTROL, (name, index), illegal, flags))
            illegal &= name != "CLEAR"
            listed &= name != "CLEAR"
        else:
            dropped, illegal = dropped + 1, True
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=1)
    bench.source(dut.i, words)
    received = bench.sink(dut.o, len(expected))
    counted = []

    async def watch(ctx):
        while True:
            ctx.set(dut.room, not bench.pauses())
            counted.append((await ctx.tick().sample(dut.illegal))[-1])

    bench.simulator.add_testbench(watch, background=True)
    bench.run(extra_cycles=20)
    found = []
    for word in map(region_word(parameters).from_bits, received):
        control = word.body.control
        is_control = word.kind == InputKind.CONTROL
        what = (control.op.name, control.index) if is_control else None
        found.append((word.kind, what, bool(word.illegal), (word.close, word.star)))
        assert not word.disorder  # what stood where timestamps do was none
    assert found == expected
    assert sum(counted) == dropped


def test_latency_and_throughput():
    parameters = ingress_parameters(probes=8)
    words = [tuple_word(n % 2, {"x": n}, n) for n in range(100)]
    sent, taken = [], []
    pass_through(parameters, words, 100, stamps=(sent, taken))
    assert Ingress(parameters).latency == 7
    assert taken == [s + Ingress(parameters).latency for s in sent]
    assert sent[-1] - sent[0] == 99


def test_a_control_word_takes_one_cycle():
    parameters = ingress_parameters(probes=8)
    words = []
    for n, op in enumerate(["PRECISION", "BOUND_LOW", "FLUSH", "CLEAR", "PRECISION"]):
        words += [control_word(op, 0, n), control_word(op, 0, n + 1), tuple_word(n % 2, {"x": 1})]
    sent, taken = [], []
    pass_through(parameters, words, len(words), stamps=(sent, taken))
    assert taken == [s + Ingress(parameters).latency for s in sent]
    assert sent == list(range(sent[0], sent[0] + len(words)))


@pytest.mark.few(1)
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_closings_in_flight_when_room_ends(stalls):
    """Every tuple ends a group with a star, so every word accepted becomes a closing."""
    parameters = ingress_parameters()
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=10_000, stalls=stalls, seed=3)
    words = [tuple_word(n % 2, {"x": 1}) for n in range(400)]
    bench.source(dut.i, [integer(input_word(parameters), word) for word in words])
    bench.sink(dut.o, len(words))
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
    assert max(in_flight) == 3 <= OrderQueue.IN_FLIGHT


def test_no_word_is_taken_while_reset_is_on_its_way():
    parameters = ingress_parameters()
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = Ingress(parameters)
    bench = StreamBench(m, deadline=1_000)
    words = [tuple_word(0, {"x": n}) for n in range(10)]

    async def send(ctx):
        ctx.set(dut.room, 1)
        for reset in (0, 1):  # words before it may be forgotten
            ctx.set(sync.rst, reset)
            for _ in range(6):
                ctx.set(dut.i.valid, not reset)
                await ctx.tick()
        ctx.set(sync.rst, 0)
        for word in words:
            ctx.set(dut.i.payload, word)
            ctx.set(dut.i.valid, 1)
            while not (await ctx.tick().sample(dut.i.ready))[-1]:
                pass
        ctx.set(dut.i.valid, 0)
        bench.done()

    bench.spawn(send)
    received = bench.sink(dut.o, 0)
    bench.run(extra_cycles=20)
    keys = [region_word(parameters).from_bits(word).body.tuple.key.x for word in received]
    assert keys[-len(words) :] == [n + 128 for n in range(10)]


def test_a_tuple_is_accepted_in_the_cycle_after_it_was_sent_on():
    parameters = ingress_parameters()
    dut = Ingress(parameters)
    bench = StreamBench(dut, deadline=1_000, stalls=0.4, seed=1)
    sides = [0, 1, 1, 0, 1, 1, 1, 0]
    words = [control_word("FLUSH"), *(tuple_word(side, {"x": 1}) for side in sides)]
    bench.source(dut.i, [integer(input_word(parameters), word) for word in words])
    taken, accepted = [], []
    bench.sink(dut.o, len(words), stamps=taken)

    async def watch(ctx):
        ctx.set(dut.room, 1)
        async for *_, mask in ctx.tick().sample(dut.accepted):
            if mask:
                accepted.append((bench.cycle - 1, mask))

    bench.simulator.add_testbench(watch, background=True)
    bench.run()
    assert [mask for _, mask in accepted] == [1 << side for side in sides]
    # Sent on to the preparation, which takes its latency.
    assert all(cycle - 1 <= t - 2 for (cycle, _), t in zip(accepted, taken[1:], strict=True))
