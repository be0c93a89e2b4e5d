# SPDX-License-Identifier: Apache-2.0
from functools import reduce
from operator import or_

from amaranth.hdl import ClockDomain, Module
from amaranth.lib.wiring import connect
import pytest

from hdl.aggregate.accelerator import AggregateAccelerator
from hdl.aggregate.words import AggregateControl
from hdl.parameters import JoinParameters, KeyField
from hdl.shells.merged_inputs import MergedInputs
from hdl.words.inputs import SourceOrder, input_word
from tests.hdl.aggregate.aggregate_words import control_word as aggregate_control
from tests.hdl.aggregate.aggregate_words import tuple_word as aggregate_tuple
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.aggregate.source_program import SourceProgram
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.shells.source_orders import order
from tests.hdl.stream_bench import StreamBench

PARAMETERS = JoinParameters.of(
    cores=1, sub_window=2, keys=(KeyField(name="x", bits=10),), timestamp_bits=7
)
LAYOUT = input_word(PARAMETERS)
CLEAR = integer(LAYOUT, control_word("CLEAR"))


def words(side, times):
    return [integer(LAYOUT, tuple_word(side, {"x": side}, time)) for time in times]


def merge(sent_words, count, told=None, **options):
    """Return the words that leave, and the cycles of their transfers in and out.

    ``told`` receives which inputs are late, cycle by cycle.
    """
    dut = MergedInputs(PARAMETERS, **options)
    bench = StreamBench(dut, deadline=500)
    sent, taken = [], []
    for i, some in zip(dut.i, sent_words, strict=True):
        bench.source(i, some, stamps=sent)
    received = bench.sink(dut.o, count, stamps=taken)
    if told is not None:
        bench.simulator.add_testbench(watch(dut, told), background=True)
    bench.run()
    return received, sent, taken, dut


def watch(dut, told):
    """Return a process that notes in every cycle which inputs are late."""

    async def look(ctx):
        async for _, _, late in ctx.tick().sample(dut.late):
            told.append(late)

    return look


def test_a_tuple_per_cycle_leaves_in_the_order_of_time_with_the_stated_latency():
    inputs = [words(side, range(side, 80, 2)) for side in (0, 1)]
    received, sent, taken, dut = merge(inputs, 79)
    assert received == [word for pair in zip(*inputs, strict=True) for word in pair][:79]
    assert taken[0] - min(sent) == dut.latency == 6
    assert taken[78] - taken[0] == 78


def test_a_control_word_comes_at_both_inputs_and_leaves_once():
    received, *_ = merge([[CLEAR, *words(0, [5]), CLEAR], [*[CLEAR] * 2]], 3)
    assert received == [CLEAR, *words(0, [5]), CLEAR]


@pytest.mark.few(2)
@pytest.mark.parametrize("value", [128, 200, 1023])
def test_an_input_that_sends_nothing_more_says_so_by_a_watermark_beyond_all_times(value):
    of_s = [*words(1, [5, 6, 126]), order(PARAMETERS, SourceOrder.LEAVE.value)]
    beyond = order(PARAMETERS, SourceOrder.WATERMARK.value, value)
    received, *_ = merge([[beyond], of_s], 3)
    assert received == of_s[:3]


@pytest.mark.few(2)
@pytest.mark.parametrize("value", [-1, -128, -1024])
def test_a_watermark_below_all_times_makes_no_tuple_late(value):
    below = order(PARAMETERS, SourceOrder.WATERMARK.value, value)
    told, inputs = [], [[below, *words(0, [0, 3, 9]), CLEAR], [*words(1, [5, 8]), CLEAR]]
    received, *_ = merge(inputs, 6, told=told)
    in_order = [*words(0, [0, 3]), *words(1, [5, 8]), *words(0, [9]), CLEAR]
    assert received == in_order
    assert not any(told)


def test_five_inputs_keep_the_order_of_time_and_input_and_the_stated_latency():
    sides = (0, 1, 1, 1, 1)
    inputs = [words(side, range(0, 8, 2)) for side in sides]
    inputs[3] = words(1, range(1, 9, 2))
    received, sent, taken, dut = merge(inputs, 16, inputs=5, r_inputs=1)
    assert dut.sides == sides
    in_order = sorted(
        (2 * n + (number == 3), number, word)
        for number, some in enumerate(inputs)
        for n, word in enumerate(some)
    )
    assert received == [word for _, _, word in in_order[:16]]
    assert taken[0] - min(sent) == dut.latency == 12


@pytest.mark.parametrize("inputs", [2, pytest.param(8, marks=pytest.mark.long)])
def test_inputs_of_an_aggregate_give_a_tuple_per_cycle_and_watermarks_between_them(inputs):
    parameters = aggregate_parameters(operator("sum"))
    dut = MergedInputs(parameters, inputs=inputs)
    bench = StreamBench(dut, deadline=500)
    sent, taken, count = [], [], 30 * inputs
    tuples = [
        [aggregate_tuple(parameters, time, item=3, v=n) for time in range(n, count, inputs)]
        for n in range(inputs)
    ]
    end = [aggregate_control(parameters, AggregateControl.WATERMARK, count)]
    for i, some in zip(dut.i, tuples, strict=True):
        bench.source(i, [*some, *end], stamps=sent)
    received = bench.sink(dut.o, count + 1, stamps=taken)
    bench.run()
    in_order = [word for several in zip(*tuples, strict=True) for word in several]
    assert received == [*in_order, *end]
    assert taken[0] - min(sent) == dut.latency
    assert taken[count - 1] - taken[0] == count - 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_sources_of_an_aggregate_send_its_windows_are_those_of_the_definition(seed):
    described = operator("sum", "max", size=6, advance=2)
    parameters = aggregate_parameters(described, cores=1 + seed % 3, fan_in=2)
    inputs = (2, 3, 5, 8)[seed % 4]
    program = SourceProgram(described, parameters, sources=inputs, seed=seed)
    for epoch in range(6):
        program.epoch(tuples=4 + 40 // inputs, lateness=0.2 * (epoch % 3))
        (program.mark, program.flush, program.clear)[program.random.randrange(3)]()
    program.flush()
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.merged = merged = MergedInputs(parameters, inputs=inputs)
    top.submodules.accelerator = accelerator = AggregateAccelerator(parameters)
    connect(top, merged.o, accelerator.i)
    bench = StreamBench(top, deadline=40_000, stalls=(0.0, 0.3, 0.6)[seed % 3], seed=seed)
    for i, words in zip(merged.i, program.sent, strict=True):
        bench.source(i, words)
    told = []
    bench.simulator.add_testbench(watch(merged, told), background=True)
    received = bench.sink(accelerator.o, len(program.merged.expected))
    bench.run(extra_cycles=60)
    assert decoded(parameters, received) == program.merged.expected
    assert reduce(or_, told) == sum(1 << source for source in program.late)


def test_one_input_is_no_merge():
    with pytest.raises(ValueError, match="A merge needs at least two inputs, not 1"):
        MergedInputs(PARAMETERS, inputs=1)
