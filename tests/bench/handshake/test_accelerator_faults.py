# SPDX-License-Identifier: Apache-2.0
"""Chains with faulty input, a reset in the middle of their work, or a custom predicate."""

import random

from amaranth.hdl import ClockDomain, Module, Value
import pytest

from bench.handshake.accelerator import ChainAccelerator
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import InputKind, input_word
from hdl.words.results import ResultKind, result_word
from sim.scenarios.chain_answers import read_chain
from tests.bench.handshake.programs import Program
from tests.bench.handshake.test_accelerator import CHAINS, MIXED, X8, answer, check, manifest_of
from tests.halves import half
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench
from tests.hdl.test_accelerator import RESET_CYCLES, as_integers, as_rows

R, S = 0, 1
AB = (KeyField(name="x", bits=6), KeyField(name="y", bits=4, signed=False))


def near_or_above(r, s):
    """A custom predicate that is not symmetric."""
    return ((r.x - s.x) * (r.x - s.x) <= 1) | (r.y > s.y + 1)


def below(r, s):
    """A custom predicate that holds for one order of its arguments only."""
    return r.x < s.x


def parameters_of(architecture, cores, **others):
    values = {"sub_window": 2, "keys": X8, "comparator": "equality", "fan_in": 2, **others}
    return JoinParameters.of(cores=cores, architecture=architecture, **values)


def check_faults(parameters, program, **options):
    """Both pairs and faults between marks are those of the program."""
    results = answer(parameters, program, **options)
    assert read_chain(program.manifest, results) == (program.answer, [])
    return program.answer.faults


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("architecture", "cores", "side", "stalls"),
    half(CHAINS, [(2, S, 0.3), (3, R, 0.5), (1, R, 0.0)], of=3),
)
def test_a_tuple_that_overflows_is_dropped_and_pairs_of_the_others_stay(
    architecture, cores, side, stalls
):
    parameters = parameters_of(architecture, cores, timestamp_bits=8)
    program, capacity = Program(manifest_of(parameters)), parameters.capacity
    for own in (R, S):
        program.control("LIFESPAN", own, 20)
    for burst in range(3):
        time, count = 1 + 30 * burst, capacity + 2 * (burst == 1)
        program.tuples([side] * count, [[n % 2] for n in range(count)], [time] * count)
        program.tuples([1 - side] * 2, [[0], [1]], [time + 20] * 2)
        program.control("FLUSH")
    program.control("CLEAR")
    program.tuples([side, 1 - side], [[1], [1]], [0, 0])
    program.control("FLUSH")
    faults = check_faults(parameters, program, stalls=stalls, seed=cores)
    told = 1 << side
    assert [overflow for overflow, *_ in faults] == [0, told, told, told, 0]
    assert [bool(pairs) for pairs in program.answer.pairs] == [True, True, True, False, True]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("architecture", "cores", "stalls"),
    half(CHAINS, [(2, 0.0), (3, 0.2), (1, 0.4)], of=3),
)
def test_nothing_is_joined_from_a_tuple_out_of_order_until_clear(architecture, cores, stalls):
    parameters = parameters_of(architecture, cores, timestamp_bits=8)
    program = Program(manifest_of(parameters))
    program.tuples([R, S, R], [[1]] * 3, [5, 6, 7])
    program.tuples([S, S, R], [[1]] * 3, [6, 9, 9])  # the first of them goes back
    program.control("FLUSH")
    program.tuples([R, S], [[1]] * 2, [10, 11])
    program.control("CLEAR")
    program.tuples([S, R, S], [[1]] * 3, [0, 0, 3])
    program.control("FLUSH")
    faults = check_faults(parameters, program, stalls=stalls, seed=cores)
    assert [disorder for _, disorder, _ in faults] == [1, 1, 0]
    assert [len(pairs) for pairs in program.answer.pairs] == [2, 0, 2]


def illegal_words(parameters):
    """Words that mean nothing: of no kind, of an undefined operation, of an index out of range."""
    layout = input_word(parameters)

    def control(op, index):
        shape = layout["body"].shape["control"].shape
        offset = shape["op"].offset, shape["index"].offset
        bits = op << offset[0] | index << offset[1]
        body = layout["body"].offset
        return InputKind.CONTROL.value << layout["kind"].offset | bits << body

    return [
        integer(layout, {"kind": InputKind.BOTH}),
        control(15, 0),
        control(7, 0),  # of an index engine only
        control(4, 2),  # WINDOW of a third side
        control(2, len(parameters.keys)),
        *([] if parameters.timestamp_bits else [control(5, 0)]),
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("architecture", "cores", "timestamp_bits"),
    half(CHAINS, [(2, 8), (3, 0), (1, 0)], of=3),
)
def test_illegal_words_are_dropped_between_tuples(architecture, cores, timestamp_bits):
    parameters = parameters_of(
        architecture, cores, keys=MIXED, comparator="band", timestamp_bits=timestamp_bits
    )
    program = Program(manifest_of(parameters))
    program.tuples([R, S], [[1, 2]] * 2, [0, 0])
    program.control("FLUSH")
    for n, word in enumerate(illegal_words(parameters)):
        program.illegal(word)
        program.tuples([n % 2, 1 - n % 2], [[n % 2, 3]] * 2, [n, n])
    program.control("FLUSH")
    program.control("CLEAR")
    program.tuples([R, S], [[1, 2]] * 2, [0, 0])
    program.control("FLUSH")
    faults = check_faults(parameters, program, stalls=0.3, seed=cores)
    assert [illegal for *_, illegal in faults] == [0, 1, 1, 0]
    assert all(program.answer.pairs[n] for n in (0, 1, 3))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("architecture", "worked", "cores", "options"),
    half(
        CHAINS,
        [
            (60, 2, {"timestamp_bits": 8}),
            (12, 1, {}),
            (300, 5, {"fan_in": 3}),
            (250, 3, {"comparator": "band"}),
        ],
        of=4,
    ),
)
def test_reset_forgets_whatever_was_under_way(architecture, worked, cores, options):
    """In cores, lanes, windows, queues of results and in the coordinator's states."""
    parameters = parameters_of(architecture, cores, **options)
    manifest = manifest_of(parameters)
    before, after = Program(manifest), Program(manifest)
    for side in (R, S):
        before.control("WINDOW", side, 2)
    before.control("BOUND_LOW", 0, 1)
    for program in (before, after):
        count = 30
        program.tuples([n * n % 2 for n in range(count)], [[n % 3] for n in range(count)],
                       list(range(count)))  # fmt: skip
        program.control("FLUSH")
    received, stuck = after_reset(
        parameters, as_integers(before.packed()), as_integers(after.packed()),
        worked=worked, marks=len(after.answer.pairs),
    )  # fmt: skip
    rows = as_rows(received, manifest.result_word.columns)
    assert read_chain(manifest, rows) == (after.answer, [])
    assert stuck == (worked > 100)


def after_reset(parameters, worked_on, words, *, worked, marks):
    """Work for some cycles, reset, then send ``words``; return what comes from then on.

    Also return whether a result was waiting when reset came.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = ChainAccelerator(parameters)
    bench = StreamBench(m, deadline=8_000)
    layout, received, waiting = result_word(parameters), [], []

    async def send(ctx):
        sent = 0
        for cycle in range(worked + RESET_CYCLES):
            ctx.set(sync.rst, cycle >= worked)
            ctx.set(dut.i.valid, cycle < worked)
            ctx.set(dut.i.payload.as_value(), worked_on[sent % len(worked_on)])
            ctx.set(dut.o.ready, cycle % 4 == 0 and cycle < worked // 2)  # then results are stuck
            *_, taken, valid = await ctx.tick().sample(dut.i.ready, dut.o.valid)
            sent += taken and cycle < worked
            waiting.append(valid)
        ctx.set(sync.rst, 0)
        ctx.set(dut.o.ready, 1)
        for word in words:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload.as_value(), word)
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def receive(ctx):
        for _ in range(worked + RESET_CYCLES):  # `repeat` does not go on through a reset
            await ctx.tick()
        missing = marks
        while True:
            *_, valid, word = await ctx.tick().sample(dut.o.valid, Value.cast(dut.o.payload))
            if valid:
                received.append(word)
                missing -= layout.from_bits(word).kind == ResultKind.MARK
                if missing == 0 and layout.from_bits(word).kind == ResultKind.MARK:
                    bench.done()

    bench.simulator.add_testbench(send, background=True)
    bench.spawn(receive)
    bench.run(extra_cycles=60)
    return received, bool(waiting[worked])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("predicate", "architecture", "cores", "stalls"),
    half(["near_or_above", "below"], CHAINS, [(2, 0.0), (1, 0.2), (3, 0.4)], of=4),
)
def test_a_custom_predicate_is_given_r_before_s(architecture, cores, stalls, predicate):
    """Whichever of the two passes, and whichever is kept."""
    parameters = parameters_of(
        architecture, cores, sub_window=3, keys=AB, comparator="custom",
        predicate=f"{__name__}:{predicate}",
    )  # fmt: skip
    generator, program = random.Random(cores), Program(manifest_of(parameters))
    program.control("WINDOW", S, parameters.capacity - 1)
    for count in (30, 3, 0, 12):
        sides = [generator.randrange(2) for _ in range(count)]
        keys = [[generator.randint(-3, 3), generator.randint(0, 3)] for _ in sides]
        if sides:
            program.tuples(sides, keys, [0] * count)
        program.control("FLUSH")
    assert len(program.answer.pairs[0]) > 10
    check(parameters, program, stalls=stalls, seed=cores)
