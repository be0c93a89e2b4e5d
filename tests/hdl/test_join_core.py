# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.join_core import JoinCore, mirrored
from hdl.region import Region
from hdl.words.inputs import Control, InputKind
from hdl.words.prepared import region_word
from hdl.words.results import ResultKind, node_result
from tests.halves import half
from tests.hdl.input_words import (
    control_word,
    integer,
    mirrored_word,
    region_values,
    tuple_word,
)
from tests.hdl.region_model import Model, as_tuple, region_parameters
from tests.hdl.stream_bench import StreamBench


def region_words(parameters):
    """A word of every kind, with all flags."""
    controls = [control_word(op.name, index, -3) for op in Control for index in (0, 1, 2)]
    tuples = [tuple_word(side, {"x": -7}, 5) for side in (0, 1)]
    return [
        region_values(
            parameters, word, close=close, star=3 - close, disorder=close & 1, free=close >> 1
        )
        for word in controls + tuples
        for close in range(4)
    ]


def test_mirroring_exchanges_two_tuples():
    parameters = region_parameters(engine="index", timestamp_bits=8, tuples_per_word=2)
    layout = region_word(parameters)
    m = Module()
    word = Signal(layout)
    once = mirrored(m, word)
    twice = mirrored(m, once)
    simulator = Simulator(m)
    exchanged = {InputKind.R: InputKind.S, InputKind.S: InputKind.R}

    async def bench(ctx):
        for kind in (InputKind.R, InputKind.S, InputKind.BOTH):
            for first in range(2):
                r, s = {"bucket": 3, "timestamp": 7}, {"bucket": 5, "timestamp": 9}
                values = {"kind": kind, "first": first, "body": {"both": {"r": r, "s": s}}}
                other = {
                    "kind": exchanged.get(kind, kind),
                    "first": 1 - first,
                    "body": {"both": {"r": s, "s": r}},
                }
                ctx.set(Value.cast(word), integer(layout, {**values, "close": 1, "star": 2}))
                expected = integer(layout, {**other, "close": 2, "star": 1})
                assert ctx.get(Value.cast(once)) == expected
                assert ctx.get(Value.cast(twice)) == ctx.get(Value.cast(word))
        for op in Control:
            control = control_word(op.name, 1, -3)
            ctx.set(Value.cast(word), integer(layout, control))
            found = ctx.get(once)
            assert found.kind == InputKind.CONTROL
            flags = {"close": 0, "star": 0, "leaves": 0, "storing": [0, 0], "leaving": [0, 0]}
            expected = mirrored_word({**control, **flags})["body"]["control"]
            assert found.body.control.index == expected["index"]
            assert found.body.control.op == op

    simulator.add_testbench(bench)
    simulator.run()


def test_mirroring_exchanges_the_sides_and_nothing_else():
    parameters = region_parameters(timestamp_bits=8)
    layout = region_word(parameters)
    m = Module()
    word = Signal(layout)
    once = mirrored(m, word)
    twice = mirrored(m, once)
    simulator = Simulator(m)

    async def bench(ctx):
        for values in region_words(parameters):
            ctx.set(Value.cast(word), integer(layout, values))
            found = ctx.get(Value.cast(once))
            assert found == integer(layout, mirrored_word(values))
            assert ctx.get(Value.cast(twice)) == integer(layout, values)
            if values["kind"] == InputKind.CONTROL:
                assert layout.from_bits(found).kind == InputKind.CONTROL
            else:
                assert layout.from_bits(found).kind.value == 1 - values["kind"].value

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.few(1)
@pytest.mark.parametrize(("lanes", "probes", "stalls"), half([(1, 1), (2, 3)], [0.0, 0.4]))
def test_both_regions_answer_like_lists(stalls, lanes, probes):
    """Pairs and stars of each side; both are told all words."""
    parameters = region_parameters(cores=2, lanes=lanes, probes=probes)
    models = [Model(parameters, side, 1, 10) for side in (0, 1)]
    words = [*(model.words.pop() for model in models)]
    for n in range(90):
        side, key = n * n % 7 % 2, n * 5 % 4
        for model in models:
            model.tuple(side, key)
        own, other = (model.words.pop() for model in models)
        # The model that stores the tuple knows whose turn it is.
        flags = {name: own[name] | other[name] for name in ("close", "star")}
        words.append({**(other if side == 0 else own), **flags})
        if n % 4 == 3:  # before the slack is used up
            star = sum(1 << side for side, model in enumerate(models) if model.group)
            for model in models:
                model.flush()
                model.words.pop()
            words.append(region_values(parameters, control_word("FLUSH"), close=3, star=star))
    dut = JoinCore(parameters)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=1)

    async def place(ctx):
        ctx.set(dut.position, 1)

    bench.simulator.add_testbench(place, background=True)
    bench.source(dut.words, [integer(region_word(parameters), word) for word in words])
    received = [
        bench.sink(results, len(model.answers))
        for results, model in zip(dut.results, models, strict=True)
    ]
    bench.run(extra_cycles=40)
    for side, model in enumerate(models):
        assert model.answers.count((ResultKind.STAR,)) > 10
        found = [as_tuple(node_result(parameters, 0).from_bits(word)) for word in received[side]]
        assert found == model.answers


@pytest.mark.few(1)
@pytest.mark.parametrize("side", [0, 1])
def test_latency_is_that_of_a_region(side):
    parameters = region_parameters(cores=1, sub_window=9)
    dut = JoinCore(parameters)
    assert dut.latency == Region(parameters, probe_side=side).latency
    bench = StreamBench(dut, deadline=1_000)
    word = region_values(parameters, tuple_word(side, {"x": 0}), close=1 << side, star=1 << side)
    sent, taken = [], []
    bench.source(dut.words, [integer(region_word(parameters), word)], stamps=sent)
    bench.sink(dut.results[side], 1, stamps=taken)
    bench.run()
    assert taken[0] - sent[0] == dut.latency + 1  # an empty span takes a cycle
