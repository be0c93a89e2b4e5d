# SPDX-License-Identifier: Apache-2.0
"""One core of an aggregate, against windows by their definition."""

import itertools

import pytest

from hdl.aggregate.accelerator import AggregateCore
from hdl.aggregate.words import CoreKind, ValueKind, value_result
from tests.hdl.aggregate.core_program import CoreProgram, decoded, random_stretch
from tests.hdl.aggregate.operators import REDUCTIONS, aggregate_parameters, operator
from tests.hdl.aggregate.window_model import Windows
from tests.hdl.stream_bench import StreamBench

#: Sizes and advances of windows, in panes; also of windows with gaps between them.
SHAPES = [(4, 1), (1, 1), (3, 2), (1, 3)]


def run_core(parameters, words, count, *, stalls=0.0, seed=0, stamps=(None, None)):
    """Run a core; return its results."""
    dut = AggregateCore(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    bench.source(dut.words, words, stamps=stamps[0])
    received = bench.sink(dut.results, count, stamps=stamps[1])
    bench.run(extra_cycles=40)
    return received


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("functions", "stalls"),
    [(("sum",), 0.0), (("min", "max", "reduce"), 0.3), (tuple(REDUCTIONS), 0.2)],
)
def test_a_core_sends_every_window_as_defined(functions, stalls):
    described = operator(*functions)
    parameters = aggregate_parameters(described, keys=12)
    program = CoreProgram(described, parameters)
    for size, advance in SHAPES:
        program.clear(Windows(pane=5, size=size, advance=advance))
        random_stretch(program, f"{size} {advance} {functions}", tuples=60)
        program.finish()
    received = run_core(parameters, program.words, len(program.expected), stalls=stalls)
    assert decoded(parameters, received) == program.expected


def test_the_first_value_comes_after_the_latency_and_tuples_never_wait_for_a_scan():
    described = operator("sum", "min")
    parameters = aggregate_parameters(described, keys=12)
    program = CoreProgram(described, parameters)
    dut = AggregateCore(parameters)
    program.clear(Windows(pane=1, size=4, advance=1))
    least = parameters.core_keys + dut.overhead  # tuples of a pane that hide the scan of another
    for number in range(5 * least):
        program.add(number // least, number % 3 % 2, number % 100)
    first = [word.kind for word in program.words].index(CoreKind.CLOSE)
    program.finish()
    sent, taken = [], []
    received = run_core(parameters, program.words, len(program.expected), stamps=(sent, taken))
    assert decoded(parameters, received) == program.expected
    assert taken[1] - sent[first] == dut.latency
    tuples = sent[1 : 5 * least + 5]  # with the four words that end panes among them
    assert tuples == list(range(tuples[0], tuples[0] + len(tuples)))
    closes = sent[5 * least + 5 : -1]  # pane behind pane, without tuples
    assert {b - a for a, b in itertools.pairwise(closes)} == {least}


def test_a_sum_too_wide_for_its_pane_or_its_window_is_named_by_key_until_clear():
    described = operator("sum", "max", size=2)
    parameters = aggregate_parameters(described, cores=3, pane_bits=9)
    program = CoreProgram(described, parameters)
    windows = Windows(pane=1, size=2, advance=1)
    program.clear(windows)
    program.add(0, 6, 127)
    program.add(0, 6, 127)  # 254 is within 9 bits, ...
    program.add(1, 6, 127)  # ... and 381 within the 10 bits of a window
    program.finish()
    program.clear(windows)
    program.add(0, 3, 1)
    for _ in range(3):
        program.add(1, 6, -128)  # -384 is outside of 9 bits
    program.add(1, 9, 1)
    program.finish()
    program.clear(windows)
    program.finish()
    received = run_core(parameters, program.words, 4 + 6 + 9)
    layout = value_result(parameters)
    words = [layout.from_bits(bits) for bits in received]
    faults = [word.body.faults for word in words if word.kind != ValueKind.VALUE]
    assert [fault.range for fault in faults] == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0]
    assert {fault.key for fault in faults if fault.range} == {6}
