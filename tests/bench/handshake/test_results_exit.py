# SPDX-License-Identifier: Apache-2.0
"""Results and marks on their way out."""

import random

import pytest

from bench.handshake import HANDSHAKE
from bench.handshake.exits import ResultsExit
from bench.handshake.layouts import chain_result
from hdl.parameters import JoinParameters
from hdl.words.results import ResultKind, faults_layout, result_word
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench


def parameters_of(cores=3):
    return JoinParameters.of(cores=cores, sub_window=4, architecture=HANDSHAKE)


def pair(parameters, side, r, s):
    """A pair as it comes from the chain."""
    return integer(chain_result(parameters), {"side": side, "pair": {"r": r, "s": s}})


def mark(parameters):
    """The mark of a fence; what else is in the word means nothing."""
    junk = {"mark": 1, "side": 1, "pair": {"r": 5, "s": 9}}
    return integer(chain_result(parameters), junk)


def result_pair(parameters, side, r, s):
    """A pair as the user gets it."""
    body = {"pair": {"r": r, "s": s}}
    return integer(result_word(parameters), {"kind": ResultKind.PAIR, "side": side, "body": body})


def result_mark(parameters, faults):
    """A mark as the user gets it."""
    layout = result_word(parameters)
    return integer(layout, {"kind": ResultKind.MARK, "body": {"punctuation": faults}})


def random_faults(parameters, generator):
    layout = faults_layout(parameters)
    return {name: generator.getrandbits(shape.shape.width) for name, shape in layout}


@pytest.mark.parametrize(
    ("cores", "stalls", "seed"), [(1, 0.0, 0), (2, 0.3, 1), (3, 0.6, 2), (5, 0.8, 3)]
)
def test_pairs_leave_in_order_and_marks_when_the_coordinator_says(cores, stalls, seed):
    """The coordinator answers the mark of a fence, or the second of two as CLEAR does."""
    parameters, generator = parameters_of(cores), random.Random(seed)
    dut = ResultsExit(parameters)
    bench = StreamBench(dut, deadline=4_000, stalls=stalls, seed=seed)
    words, expected, answers = [], [], []
    for _ in range(12):
        for _ in range(generator.randrange(6)):
            values = generator.randrange(2), generator.getrandbits(24), generator.getrandbits(24)
            words.append(pair(parameters, *values))
            expected.append(result_pair(parameters, *values))
        fences, faults = generator.choice([1, 1, 2]), random_faults(parameters, generator)
        words += [mark(parameters)] * fences
        answers.append((fences, faults))
        expected.append(result_mark(parameters, faults))
    sent = bench.sink(dut.o, len(expected))
    settled = []

    async def count_settled(ctx):
        while True:
            *_, value = await ctx.tick().sample(dut.settled)
            if value:
                settled.append(bench.cycle)

    async def coordinate(ctx):
        """Send pairs and fences; answer with a mark when all fences before it have settled."""
        rest, fences_so_far = iter(words), 0
        for fences, faults in answers:
            fences_so_far += fences
            while fences:
                word = next(rest)
                fences -= chain_result(parameters).from_bits(word).mark
                while bench.pauses():
                    await ctx.tick()
                ctx.set(dut.i.payload.as_value(), word)
                ctx.set(dut.i.valid, 1)
                await ctx.tick().until(dut.i.ready)
                ctx.set(dut.i.valid, 0)
            while len(settled) < fences_so_far:
                await ctx.tick()
            ctx.set(dut.marks.payload, faults)
            ctx.set(dut.marks.valid, 1)
            await ctx.tick().until(dut.marks.ready)
            ctx.set(dut.marks.valid, 0)
        bench.done()

    bench.simulator.add_testbench(count_settled, background=True)
    bench.spawn(coordinate)
    bench.run(extra_cycles=20)
    assert sent == expected
    assert len(settled) == sum(fences for fences, _ in answers)


def test_a_word_takes_the_stated_cycles_and_one_leaves_per_cycle():
    parameters = parameters_of()
    dut = ResultsExit(parameters)
    bench = StreamBench(dut, deadline=100)
    words, entered, left = [(n % 2, n, 2 * n) for n in range(20)], [], []
    bench.source(dut.i, [pair(parameters, *word) for word in words], stamps=entered)
    received = bench.sink(dut.o, len(words), stamps=left)
    bench.run()
    assert received == [result_pair(parameters, *word) for word in words]
    assert [out - into for into, out in zip(entered, left, strict=True)] == [dut.latency] * 20
    assert left == list(range(left[0], left[0] + 20))


def test_a_pair_goes_before_a_mark_that_is_offered_with_it():
    """A mark of the coordinator is not taken in a cycle in which a pair is."""
    parameters = parameters_of()
    dut = ResultsExit(parameters)
    bench = StreamBench(dut, deadline=100)
    faults = {"overflow": 2, "disorder": 1, "illegal": 1}
    bench.source(dut.i, [pair(parameters, 1, n, 7) for n in range(5)])

    async def answer(ctx):
        await ctx.tick().repeat(2)
        ctx.set(dut.marks.payload, faults)
        ctx.set(dut.marks.valid, 1)
        await ctx.tick().until(dut.marks.ready)
        ctx.set(dut.marks.valid, 0)
        bench.done()

    bench.spawn(answer)
    received = bench.sink(dut.o, 6)
    bench.run()
    pairs = [result_pair(parameters, 1, n, 7) for n in range(5)]
    assert received == [*pairs, result_mark(parameters, faults)]


def test_a_mark_of_a_fence_does_not_count_while_it_waits():
    """While results are stuck, pairs before the mark have not left, so nothing is settled."""
    parameters = parameters_of()
    dut = ResultsExit(parameters)
    bench = StreamBench(dut, deadline=200)
    settled = []
    bench.source(dut.i, [*(pair(parameters, 0, n, n) for n in range(3)), mark(parameters)])
    bench.sink(dut.o, 3, begin=40)

    async def watch(ctx):
        while True:
            *_, value = await ctx.tick().sample(dut.settled)
            if value:
                settled.append(bench.cycle)

    bench.simulator.add_testbench(watch, background=True)
    bench.run(extra_cycles=20)
    assert len(settled) == 1
    assert settled[0] > 40
