# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.aggregate.words import AggregateControl
from hdl.parameters import JoinParameters, KeyField
from hdl.scalegate.words import GateKind
from hdl.shells.merged_inputs import SourceWords
from hdl.words.inputs import SOURCE_OPERATION, Control, SourceOrder, input_word
from tests.hdl.aggregate.aggregate_words import control_word as aggregate_control
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.shells.source_orders import order
from tests.hdl.stream_bench import StreamBench


def with_key(bits):
    """Return parameters whose control words have room for a bound of a key of so many bits."""
    return JoinParameters.of(
        cores=1, sub_window=2, keys=(KeyField(name="x", bits=bits),), timestamp_bits=9
    )


PARAMETERS = with_key(8)


def passed(number, words, count, sides=(0, 1), parameters=PARAMETERS):
    """Return what a source gets, and how often it was told of something."""
    dut = SourceWords(parameters, sides=sides, number=number)
    bench = StreamBench(dut, deadline=200, stalls=0.3, seed=1)
    bench.source(dut.i, words)
    received = bench.sink(dut.o, count)
    told = {"wrong": 0, "exclude": []}

    async def look(ctx):
        async for _, _, wrong, exclude in ctx.tick().sample(dut.wrong, dut.exclude):
            told["wrong"] += wrong
            told["exclude"] += [exclude] if exclude else []

    bench.simulator.add_testbench(look, background=True)
    bench.run()
    layout = dut.o.payload.shape()
    found = [layout.from_bits(bits) for bits in received]
    return [(GateKind(one.kind), one.time) for one in found], [one.body for one in found], told


@pytest.mark.parametrize("side", [0, 1])
def test_words_become_words_of_a_source(side):
    layout = input_word(PARAMETERS)
    words = [
        integer(layout, control_word("CLEAR")),
        integer(layout, tuple_word(side, {"x": -3}, 17)),
        order(PARAMETERS, SourceOrder.WATERMARK.value, 99),
        order(PARAMETERS, SourceOrder.LEAVE.value),
        order(PARAMETERS, SourceOrder.EXCLUDE.value),
        integer(layout, tuple_word(side, {"x": 5}, 511)),
    ]
    found, bodies, told = passed(side, words, 5)
    kinds = [kind for kind, _ in found]
    assert kinds == [
        GateKind.BARRIER, GateKind.TUPLE, GateKind.WATERMARK, GateKind.LEAVE, GateKind.TUPLE,
    ]  # fmt: skip
    assert [found[n][1] for n in (1, 2, 4)] == [17, 99, 511]
    assert [bodies[n].as_bits() for n in (0, 1, 4)] == [words[n] for n in (0, 1, 5)]
    assert told == {"wrong": 0, "exclude": [2 if side == 0 else 1]}


def test_words_of_the_other_side_and_unknown_orders_are_told():
    layout = input_word(PARAMETERS)
    words = [
        integer(layout, tuple_word(1, {"x": 1}, 4)),
        order(PARAMETERS, 3),
        order(PARAMETERS, 15),
    ]
    words.append(integer(layout, tuple_word(0, {"x": 1}, 4)))
    found, _, told = passed(0, words, 2)
    assert [time for _, time in found] == [4, 4]
    assert told == {"wrong": 3, "exclude": []}


@pytest.mark.parametrize("bits", [8, 9, 10, 20])
def test_a_watermark_beyond_the_times_stands_for_the_nearest_time(bits):
    parameters, last = with_key(bits), 511
    most = (1 << max(9, bits)) - 1  # of a value: one bit more than a time, or than a key
    values = {-most - 1, -last - 2, -5, -1, 0, 1, 99, last - 1, last, last + 1, last + 100, most}
    values = sorted(value for value in values if -most - 1 <= value <= most)
    words = [order(parameters, SourceOrder.WATERMARK.value, value) for value in values]
    found, _, told = passed(0, words, len(words), parameters=parameters)
    assert found == [(GateKind.WATERMARK, min(max(value, 0), last)) for value in values]
    assert told == {"wrong": 0, "exclude": []}


def test_a_watermark_of_an_aggregate_is_the_time_that_it_says():
    parameters = aggregate_parameters(operator("sum"))
    values = [0, 1, (1 << parameters.timestamp_bits) - 1, 1 << parameters.timestamp_bits]
    values.append((2 << parameters.timestamp_bits) - 1)
    words = [aggregate_control(parameters, AggregateControl.WATERMARK, value) for value in values]
    found, *_ = passed(0, words, len(words), sides=(0, 0), parameters=parameters)
    assert found == [(GateKind.WATERMARK, value) for value in values]


def test_of_more_than_two_inputs_an_order_excludes_the_one_that_it_names():
    excludes = [order(PARAMETERS, SourceOrder.EXCLUDE.value, value) for value in (2, 0, 3, -1)]
    end = integer(input_word(PARAMETERS), tuple_word(1, {"x": 1}, 4))
    _, _, told = passed(1, [*excludes, end], 1, sides=(0, 1, 1))
    assert told == {"wrong": 2, "exclude": [0b100, 0b001]}


def test_the_accelerator_has_no_operation_of_that_number():
    assert SOURCE_OPERATION not in [operation.value for operation in Control]
