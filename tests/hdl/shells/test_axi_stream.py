# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.shells.axi_streams import AxiStreamInput, AxiStreamOutput
from hdl.words.inputs import input_word
from hdl.words.results import ResultKind, result_word
from tests.hdl.shells.axi_bench import AxiBench

PARAMETERS = JoinParameters.of(
    cores=3,
    sub_window=8,
    keys=(KeyField(name="x", bits=9),),
    timestamp_bits=5,
    engine="index",
    tuples_per_word=2,
)


@pytest.mark.parametrize("pauses", [0.0, 0.6])
def test_input_words_pass_in_order_and_torn_ones_are_dropped(pauses):
    layout = input_word(PARAMETERS)
    dut = AxiStreamInput(layout)
    assert dut.size == -(-layout.size // 8)
    assert layout.size % 8, "there is padding to be ignored"
    bench = AxiBench(dut, pauses=pauses, seed=3)
    rng = random.Random(5)
    whole = (1 << dut.size) - 1
    words = [
        (
            rng.getrandbits(8 * dut.size),
            rng.choice([whole] * 4 + [0, whole >> 1]),
            rng.getrandbits(1),
        )
        for _ in range(80)
    ]
    expected = [data & (1 << layout.size) - 1 for data, keep, _ in words if keep == whole]
    found, drops = [], []

    async def send(ctx):
        ctx.set(dut.open, 1)
        for data, keep, last in words:
            axis = dut.axis
            pairs = (axis.tdata, data), (axis.tkeep, keep), (axis.tlast, last)
            await bench.send(ctx, axis.tvalid, axis.tready, *pairs)

    async def receive(ctx):
        for _ in expected:
            found.extend(await bench.take(ctx, dut.o.valid, dut.o.ready, dut.o.payload))
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.o.valid)

    async def count(ctx):
        async for *_, dropped in ctx.tick().sample(dut.dropped):
            drops.append(dropped)

    bench.run(send, receive, background=[count])
    assert found == expected
    assert sum(drops) == len(words) - len(expected)
    if not pauses:
        assert bench.cycle <= len(words) + 10


def test_a_closed_input_takes_nothing():
    dut = AxiStreamInput(input_word(PARAMETERS))
    bench = AxiBench(dut)

    async def program(ctx):
        ctx.set(dut.axis.tvalid, 1)
        ctx.set(dut.axis.tkeep, ~0)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.axis.tready)
        assert not ctx.get(dut.o.valid)
        ctx.set(dut.open, 1)
        await ctx.tick()
        ctx.set(dut.axis.tvalid, 0)
        assert dut.latency == 1
        assert ctx.get(dut.o.valid)

    bench.run(program)


@pytest.mark.parametrize("pauses", [0.0, 0.6])
def test_results_pass_in_order_and_marks_are_the_last_of_a_packet(pauses):
    layout = result_word(PARAMETERS)
    dut = AxiStreamOutput(layout)
    bench = AxiBench(dut, pauses=pauses, seed=4)
    rng = random.Random(6)
    words = [rng.getrandbits(layout.size) for _ in range(80)]
    found = []

    async def send(ctx):
        for word in words:
            await bench.send(ctx, dut.i.valid, dut.i.ready, (dut.i.payload, word))

    async def receive(ctx):
        axis = dut.axis
        signals = axis.tdata, axis.tkeep, axis.tlast
        for _ in words:
            found.append(await bench.take(ctx, axis.tvalid, axis.tready, *signals))

    bench.run(send, receive)
    keep = (1 << dut.size) - 1
    kinds = [layout.from_bits(word).one.kind for word in words]
    assert found == [
        [word, keep, int(kind == ResultKind.MARK)] for word, kind in zip(words, kinds, strict=True)
    ]
    assert {last for *_, last in found} == {0, 1}
    if not pauses:
        assert bench.cycle <= len(words) + 10


def test_a_closed_output_takes_nothing_and_keeps_what_it_offers():
    dut = AxiStreamOutput(result_word(PARAMETERS))
    bench = AxiBench(dut)

    async def program(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload.as_value(), 5)
        await ctx.tick()
        assert dut.latency == 1
        ctx.set(dut.closed, 1)
        ctx.set(dut.i.payload.as_value(), 6)
        for _ in range(4):
            assert ctx.get(dut.axis.tvalid)
            assert ctx.get(dut.axis.tdata) == 5
            assert not ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.axis.tready, 1)
        await ctx.tick()
        assert not ctx.get(dut.axis.tvalid)
        await ctx.tick()
        assert not ctx.get(dut.axis.tvalid)

    bench.run(program)


@pytest.mark.parametrize(("packet", "pauses"), [(2, 0.0), (5, 0.0), (5, 0.6), (16, 0.9)])
def test_a_packet_ends_with_a_mark_its_last_word_or_silence(packet, pauses):
    """``tlast`` is expected from when words came and went alone, as the docstring has it."""
    layout = result_word(PARAMETERS)
    dut = AxiStreamOutput(layout, packet=packet)
    assert dut.size == 8
    bench = AxiBench(dut, pauses=pauses, seed=packet)
    rng = random.Random(packet)
    words = [rng.getrandbits(layout.size) for _ in range(120)]
    gaps = [rng.choice([0] * 6 + [packet // 2, packet + 9]) for _ in words]
    found, taken = [], []

    async def send(ctx):
        for word, gap in zip(words, gaps, strict=True):
            for _ in range(gap):
                await ctx.tick()
            await bench.send(ctx, dut.i.valid, dut.i.ready, (dut.i.payload, word))
            taken.append(bench.cycle)

    async def receive(ctx):
        axis = dut.axis
        for _ in words:
            signals = axis.tdata, axis.tlast
            found.append([*await bench.take(ctx, axis.tvalid, axis.tready, *signals), bench.cycle])

    bench.run(send, receive)
    assert [data for data, _, _ in found] == words
    marks = [layout.from_bits(word).one.kind == ResultKind.MARK for word in words]
    place, silent = 0, 0
    for n, (_, last, left) in enumerate(found):
        place += 1
        must = marks[n] or place == packet
        assert last or not must, n
        if last and not must:
            # The next word, if any, came only after so many cycles.
            assert n + 1 == len(words) or taken[n + 1] - taken[n] > packet, n
            silent += 1
        if not pauses:
            assert left - taken[n] <= packet + dut.latency + 1
        place = 0 if last else place
    assert silent, "no packet ended with silence"
    assert found[-1][1], "the last word was kept from the host"


def test_a_word_waits_no_longer_than_its_latency_says():
    dut = AxiStreamOutput(result_word(PARAMETERS), packet=7)
    bench = AxiBench(dut)

    async def program(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload.as_value(), 0)  # a pair
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        waited = 1
        while not ctx.get(dut.axis.tvalid):
            await ctx.tick()
            waited += 1
        assert waited == dut.packet + dut.latency
        assert ctx.get(dut.axis.tlast)

    bench.run(program)
