# SPDX-License-Identifier: Apache-2.0
"""Whole aggregate accelerators, against windows by their definition."""

from amaranth.hdl import Value
import pytest

from hdl.aggregate.accelerator import AggregateAccelerator
from hdl.aggregate.words import (
    AggregateControl,
    AggregateKind,
    ValueKind,
    aggregate_word,
    value_result,
)
from host.operators.windowed import Field, Key
from tests.halves import half
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.input_program import InputProgram
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.stream_bench import StreamBench

#: Tuples with up to three keys of two parts, some of which are equal or missing.
PAIRS = operator(
    "sum", "max", "count", size=6, advance=2, name="pairs",
    fields=[*(Field(f"w{n}", 2, signed=False) for n in range(3)), Field("v", 8)],
    keys=[Key([f"w{n}", "v < 0"], when=f"w{n} != 3") for n in range(3)],
)  # fmt: skip


def run_accelerator(parameters, program, *, stalls=0.0, seed=0, stamps=(None, None)):
    """Run a program; return the result words."""
    dut = AggregateAccelerator(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    bench.source(dut.i, program.words, stamps=stamps[0])
    received = bench.sink(dut.o, len(program.expected), stamps=stamps[1])
    bench.run(extra_cycles=60)
    return received


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("described", "cores", "fan_in", "stalls"),
    [
        pytest.param(operator("sum", "count", size=12, advance=3), 1, 2, 0.0),
        pytest.param(operator("min", "max", size=10, advance=4), 2, 2, 0.3),
        pytest.param(
            operator("sum", "reduce", size=5, advance=5), 3, 4, 0.2, marks=pytest.mark.long
        ),
        pytest.param(PAIRS, 4, 4, 0.0, marks=pytest.mark.long),
        pytest.param(PAIRS, 3, 2, 0.2),
        pytest.param(PAIRS, 5, 2, 0.3, marks=pytest.mark.long),
        pytest.param(operator("count", size=4, advance=2, keys=[]), 1, 2, 0.1),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_every_window_leaves_as_defined_sorted_by_its_boundary(described, cores, fan_in, stalls):
    parameters = aggregate_parameters(described, cores=cores, fan_in=fan_in, fan_out=2, panes=6)
    program = InputProgram(described, parameters)
    program.random_tuples(f"{cores} {stalls}", 40)
    program.flush()
    program.clear(pane=3, size=4, advance=1)
    program.random_tuples(cores, 30)
    program.clear(pane=1, size=2, advance=2)  # while windows are open
    program.random_tuples(cores, 20)
    program.flush()
    received = run_accelerator(parameters, program, stalls=stalls, seed=cores)
    assert decoded(parameters, received) == program.expected
    boundaries = [result[0] for result in program.expected if result != "mark"]
    assert len(boundaries) > 30


def test_tuples_between_windows_are_in_none_where_the_advance_is_above_the_size():
    described = operator("sum", "max", size=2, advance=1)
    parameters = aggregate_parameters(described, cores=2, panes=6)
    program = InputProgram(described, parameters)
    program.clear(pane=2, size=2, advance=5)
    for time in (0, 4, 9, 11, 13, 14, 19, 20, 25, 26):  # windows are 0 to 3, 10 to 13, 20 to 23
        program.add(time, item=time % 3, v=time)
    program.flush()
    program.clear(pane=1, size=1, advance=6)
    program.random_tuples(7, 40)
    program.flush()
    received = run_accelerator(parameters, program)
    assert decoded(parameters, received) == program.expected
    of_first = program.expected[1 : program.expected.index("mark", 1)]
    assert {boundary for boundary, *_ in of_first} == {4, 14, 24}


def test_stars_tell_of_faults_from_their_pane_on_until_clear():
    described = operator("sum", size=8, advance=4)
    parameters = aggregate_parameters(described, cores=2, keys=10)
    program = InputProgram(described, parameters)
    program.add(1, item=3, v=5)
    program.reach(4)  # boundary 4: nothing wrong
    program.add(5, item=12, v=1)  # beyond the capacity
    program.add(6, item=3, v=1)
    program.add(5, item=11, v=1)  # beyond it too, but not the first one
    program.reach(8)
    program.add(2, item=1, v=1)  # its pane has ended
    program.reach(3)  # not below an earlier watermark: no effect
    program.reach(12)
    program.words.append(_control_word(parameters, 7))
    program.control(AggregateControl.FLUSH)
    program.answer()
    program.clear()  # its mark still tells
    program.clear()
    received = run_accelerator(parameters, program)
    assert decoded(parameters, received) == program.expected
    assert _told(parameters, received) == [
        {}, {"capacity": 12}, {"capacity": 12, "disorder": 12},
        {"capacity": 12, "disorder": 12, "illegal": 12},
        {"capacity": 12, "disorder": 12, "illegal": 12}, {},
    ]  # fmt: skip


def _too_wide(program, parameters):
    for _ in range(3):
        program.add(program.watermark, item=7, v=-128)  # -384 is outside of 9 bits


#: Words, each of which is a fault at time 9 of panes of one unit, with the key that it tells of.
FAULTS = {
    "capacity": (12, lambda program, _: program.add(program.watermark, item=12, v=1)),
    "range": (7, _too_wide),
    "disorder": (0, lambda program, _: program.add(2, item=1, v=1)),
    "illegal": (0, lambda program, parameters: program.words.append(_control_word(parameters, 6))),
}


@pytest.mark.few(2)
@pytest.mark.parametrize(("fault", "cores", "stalls"), half(FAULTS, [(1, 0.0), (3, 0.3)]))
def test_the_mark_of_clear_tells_of_a_fault_behind_the_last_star(fault, cores, stalls):
    """Whatever pane is open; the next CLEAR and the windows after it tell of nothing."""
    described = operator("sum", "max", size=2, advance=1)
    parameters = aggregate_parameters(described, cores=cores, fan_in=2, keys=10, pane_bits=9)
    program, (key, cause) = InputProgram(described, parameters), FAULTS[fault]
    expected = []
    for reached in (9, 10):  # the open pane is in one bank of the cores, and in the other one
        for faulty in (True, False):
            program.add(4, item=7, v=127)
            program.reach(reached)  # all windows leave
            program.control(AggregateControl.FLUSH)
            program.answer()
            program.add(reached, item=7, v=127)
            if faulty:
                cause(program, parameters)
            if reached == 10:  # so does that of FLUSH, while the pane is open
                program.control(AggregateControl.FLUSH)
                program.answer()
            program.clear()
            told = {fault: key} if faulty else {}
            expected += [{}] * 3 + [told] * (2 if reached == 10 else 1)
    received = run_accelerator(parameters, program, stalls=stalls, seed=cores)
    assert decoded(parameters, received) == program.expected
    assert _told(parameters, received) == expected


def _told(parameters, received):
    """The faults that each star and mark tells of, with the key that it names."""
    words = [value_result(parameters).from_bits(bits) for bits in received]
    return [
        {name: word.body.faults.key for name, _ in word.body.faults.shape()
         if name != "key" and word.body.faults[name]}
        for word in words if word.kind != ValueKind.VALUE
    ]  # fmt: skip


def _control_word(parameters, op):
    """A control word with an operation that does not exist."""
    layout = aggregate_word(parameters)
    control = layout["body"].shape["control"].shape
    bits = op << control["op"].offset
    return (bits << layout["body"].offset) | AggregateKind.CONTROL.value


def test_a_window_leaves_after_the_latency_and_a_jump_takes_what_it_says():
    described = operator("sum", "max", size=4, advance=1)
    parameters = aggregate_parameters(described, cores=3, fan_in=2)
    dut = AggregateAccelerator(parameters)
    program = InputProgram(described, parameters)
    program.control(AggregateControl.FLUSH)
    program.answer()
    program.add(0, item=0, v=5)
    program.add(1, item=3, v=1)
    program.flush()
    count = len(program.expected)
    program.add(30_000, item=0, v=1)  # nothing is open any more: a jump
    program.reach(30_001)
    program.control(AggregateControl.FLUSH)
    program.answer()
    sent, taken = [], []
    bench = StreamBench(dut, deadline=2_000)

    async def source(ctx):
        for n, word in enumerate(program.words):
            while n in (1, 5) and len(received) < (1, count)[n == 5]:
                await ctx.tick()  # until the accelerator is idle
            ctx.set(Value.cast(dut.i.payload), word.as_value().value)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            sent.append(bench.cycle - 1)
            ctx.set(dut.i.valid, 0)
        bench.done()

    bench.spawn(source)
    received = bench.sink(dut.o, len(program.expected), stamps=taken)
    bench.run()
    assert decoded(parameters, received) == program.expected
    assert taken[1] - sent[2] == dut.latency
    assert taken[count] - sent[6] == dut.latency + dut.ingress.clock.jump


def test_a_tuple_of_one_key_costs_the_same_with_any_number_of_cores():
    described = operator("sum", size=2, advance=2)
    accepted = []
    for cores in (1, 3):
        parameters = aggregate_parameters(described, cores=cores)
        program = InputProgram(described, parameters)
        for n in range(240):
            program.add(n // 60, item=(7 * n + n // 5) % 16, v=n % 100)
        program.flush()
        taken = []
        received = run_accelerator(parameters, program, stamps=(taken, None))
        assert decoded(parameters, received) == program.expected
        accepted.append([cycle - taken[59] for cycle in taken[60:240]])  # memories are clear
    assert accepted[0] == accepted[1]
    assert accepted[0][-1] <= 180 + 2 * 3  # one per tuple, and at most two per end of a pane
