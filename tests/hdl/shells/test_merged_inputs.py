# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.shells.merged_inputs import MergedInputs
from hdl.words.inputs import input_word
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.stream_bench import StreamBench

PARAMETERS = JoinParameters(
    cores=1, sub_window=2, keys=(KeyField(name="x", bits=4),), timestamp_bits=7
)
LAYOUT = input_word(PARAMETERS)
CLEAR = integer(LAYOUT, control_word("CLEAR"))


def words(side, times):
    return [integer(LAYOUT, tuple_word(side, {"x": side}, time)) for time in times]


def merge(sent_words, count, **options):
    """Return the words that leave, and the cycles of their transfers in and out."""
    dut = MergedInputs(PARAMETERS, **options)
    bench = StreamBench(dut, deadline=500)
    sent, taken = [], []
    for i, some in zip(dut.i, sent_words, strict=True):
        bench.source(i, some, stamps=sent)
    received = bench.sink(dut.o, count, stamps=taken)
    bench.run()
    return received, sent, taken, dut


def test_a_tuple_per_cycle_leaves_in_the_order_of_time_with_the_stated_latency():
    inputs = [words(side, range(side, 80, 2)) for side in (0, 1)]
    received, sent, taken, dut = merge(inputs, 79)
    assert received == [word for pair in zip(*inputs, strict=True) for word in pair][:79]
    assert taken[0] - min(sent) == dut.latency == 5
    assert taken[78] - taken[0] == 78


def test_a_control_word_comes_at_both_inputs_and_leaves_once():
    received, *_ = merge([[CLEAR, *words(0, [5]), CLEAR], [*[CLEAR] * 2]], 3)
    assert received == [CLEAR, *words(0, [5]), CLEAR]


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
    assert taken[0] - min(sent) == dut.latency == 9


def test_one_input_is_no_merge():
    with pytest.raises(ValueError, match="A merge needs at least two inputs, not 1"):
        MergedInputs(PARAMETERS, inputs=1)
