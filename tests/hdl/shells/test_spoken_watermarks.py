# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.aggregate.words import AggregateControl
from hdl.scalegate.words import GateKind
from hdl.shells.merged_inputs import SpokenWatermarks
from tests.hdl.aggregate.aggregate_words import control_word, tuple_word
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.stream_bench import StreamBench

PARAMETERS = aggregate_parameters(operator("sum"), timestamp_bits=6)
CLEAR, FLUSH = (control_word(PARAMETERS, AggregateControl[name]) for name in ("CLEAR", "FLUSH"))


def mark(time):
    return control_word(PARAMETERS, AggregateControl.WATERMARK, time)


def own(time):
    return tuple_word(PARAMETERS, time, item=3, v=-1)


def spoken(steps, count, stalls=0.0):
    """Send words of a gate: kind, time, body, source, late. Return words, and who was late."""
    dut = SpokenWatermarks(PARAMETERS, sources=3)
    layout = dut.i.payload.shape()
    bench = StreamBench(dut, deadline=500, stalls=stalls, seed=4)
    places = {name: field.offset for name, field in layout}
    words = [
        GateKind[kind].value << places["kind"]
        | time << places["time"]
        | body << places["body"]
        | source << places["source"]
        | late << places["late"]
        for kind, time, body, source, late in steps
    ]
    found, stamps = [], []

    async def look(ctx):
        async for _, _, late in ctx.tick().sample(dut.late):
            found.extend([late] if late else [])

    bench.simulator.add_testbench(look, background=True)
    bench.source(dut.i, words)
    received = bench.sink(dut.o, count, stamps=stamps)
    bench.run()
    return received, found, stamps


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_words_of_a_gate_become_words_of_the_accelerator(stalls):
    steps = [
        ("TUPLE", 5, own(5), 0, 0),
        ("WATERMARK", 70, 0, 0, 0),  # beyond all timestamps
        ("TUPLE", 71, mark(3), 1, 1),  # a watermark that was kept
        ("TUPLE", 71, own(4), 2, 1),
        ("TUPLE", 71, own(6), 1, 1),
        ("BARRIER", 0, FLUSH, 0, 0),
        ("LEAVE", 0, 0, 0, 0),
        ("TUPLE", 8, own(8), 0, 0),  # below what was reached before FLUSH
        ("BARRIER", 0, CLEAR, 0, 0),
        ("TUPLE", 8, own(8), 1, 0),
        ("TUPLE", 7, own(7), 1, 0),
    ]
    expected = [
        own(5), mark(70), mark(71), mark(71), own(4), mark(71), own(6), FLUSH, own(8), CLEAR,
        own(8), own(7),
    ]  # fmt: skip
    received, late, _ = spoken(steps, len(expected), stalls)
    assert received == expected
    assert late == [0b100, 0b010, 0b001, 0b010]


def test_a_word_per_cycle_and_two_cycles_for_a_late_tuple():
    steps = [("TUPLE", time, own(time), 0, 0) for time in range(20)]
    _, _, stamps = spoken(steps, 20)
    assert stamps == list(range(stamps[0], stamps[0] + 20))
    _, _, stamps = spoken([("TUPLE", 5, own(1), 0, 1)] * 10, 20)
    assert stamps == list(range(stamps[0], stamps[0] + 20))
