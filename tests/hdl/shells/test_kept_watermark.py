# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.scalegate.words import GateKind, source_word
from hdl.shells.merged_inputs import KeptWatermark
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench

LAYOUT = source_word(6, 4)


def word(kind, time=0, body=0):
    return integer(LAYOUT, {"kind": GateKind[kind], "time": time, "body": body})


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_a_barrier_or_departure_behind_a_watermark_has_a_tuple_of_time_zero_before_it(stalls):
    mark = word("WATERMARK", 9)
    ends = [word("BARRIER", 1, 7), word("LEAVE", 1, 8)]
    said = [word("TUPLE", 0, 7), word("TUPLE", 0, 8)]
    tuple_ = word("TUPLE", 11, 3)
    words, expected = [], []
    for end, before in zip(ends, said, strict=True):
        words += [mark, end, end, mark, mark, end, mark, tuple_, end, tuple_]
        expected += [mark, before, end, end, mark, mark, before, end, mark, tuple_, end, tuple_]
    dut = KeptWatermark(LAYOUT)
    bench = StreamBench(dut, deadline=500, stalls=stalls, seed=2)
    stamps = []
    bench.source(dut.i, words)
    received = bench.sink(dut.o, len(expected), stamps=stamps)
    bench.run()
    assert received == expected
    if not stalls:
        assert stamps[-1] - stamps[0] == len(expected) - 1
