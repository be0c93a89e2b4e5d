# SPDX-License-Identifier: Apache-2.0
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


def merge(inputs, count):
    """Return the words that leave, and the cycles of their transfers in and out."""
    dut = MergedInputs(PARAMETERS)
    bench = StreamBench(dut, deadline=500)
    sent, taken = [], []
    for i, some in zip(dut.i, inputs, strict=True):
        bench.source(i, some, stamps=sent)
    received = bench.sink(dut.o, count, stamps=taken)
    bench.run()
    return received, sent, taken, dut


def test_a_tuple_per_cycle_leaves_in_the_order_of_time_with_the_stated_latency():
    inputs = [words(side, range(side, 80, 2)) for side in (0, 1)]
    received, sent, taken, dut = merge(inputs, 79)
    assert received == [word for pair in zip(*inputs, strict=True) for word in pair][:79]
    assert taken[0] - min(sent) == dut.latency == 3
    assert taken[78] - taken[0] == 78


def test_a_control_word_comes_at_both_inputs_and_leaves_once():
    received, *_ = merge([[CLEAR, *words(0, [5]), CLEAR], [*[CLEAR] * 2]], 3)
    assert received == [CLEAR, *words(0, [5]), CLEAR]
