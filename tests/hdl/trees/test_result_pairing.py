# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.trees.result_pairing import ResultPairing, row_layout
from hdl.words.results import ResultKind
from tests.halves import half
from tests.hdl.gathering import gathering_parameters, punctuation, region_pair, region_words
from tests.hdl.stream_bench import StreamBench

PAIR, STAR, MARK = ResultKind.PAIR, ResultKind.STAR, ResultKind.MARK


def rows_of(words, count, *, side=0, stalls=0.0, seed=0, begin=0, stamps=None):
    """Send words; return the rows with ``count`` results, as layout constants."""
    parameters = gathering_parameters(1, 2).with_(engine="index", tuples_per_word=2)
    dut = ResultPairing(parameters, side=side)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=seed)
    sent, taken = stamps if stamps else (None, None)
    bench.source(dut.i, region_words(parameters, words), stamps=sent)
    rows = []

    async def nothing_is_flagged_without_a_row(ctx):
        flags = dut.o.payload.result | dut.o.payload.lone | dut.o.payload.ends | dut.o.payload.mark
        async for *_, valid, flagged in ctx.tick().sample(dut.o.valid, flags):
            assert valid or not flagged

    async def take(ctx):
        found = 0
        while found < count:
            ready = bench.cycle >= begin and not bench.pauses()
            ctx.set(dut.o.ready, ready)
            *_, valid, row = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid and ready:
                rows.append(row)
                found += 2 - (row.two.kind == ResultKind.NONE)
                if taken is not None:
                    taken.append(bench.cycle - 1)
        bench.done()

    bench.simulator.add_testbench(nothing_is_flagged_without_a_row, background=True)
    bench.spawn(take)
    bench.run()
    assert all(isinstance(row, type(row_layout(parameters).const(None))) for row in rows)
    return rows


def told(results):
    """Kind and row of each result."""
    return [(r.kind, r.body.pair.row if r.kind == PAIR else 0) for r in results]


def random_words(seed, count):
    """Pairs, stars and marks."""
    generator = random.Random(seed)
    kinds = generator.choices([PAIR, STAR, MARK], [6, 2, 1], k=count)
    words = [
        region_pair(generator.randrange(100)) if kind == PAIR else punctuation(kind)
        for kind in kinds
    ]
    return words, [
        (word["kind"], word["body"]["pair"]["row"] if word["kind"] == PAIR else 0) for word in words
    ]


@pytest.mark.parametrize(("stalls", "begin"), half([0.0, 0.3, 0.8], [0, 80]))
def test_results_keep_their_order_and_rows_end_with_stars(stalls, begin):
    words, expected = random_words(7, 200)
    rows = rows_of(words, len(words), side=1, stalls=stalls, seed=3, begin=begin)
    found = []
    for row in rows:
        results = [row.one] + [row.two] * (row.two.kind != ResultKind.NONE)
        kinds = [result.kind for result in results]
        assert row.mark == (MARK in kinds)
        assert row.result == (MARK not in kinds)
        assert row.lone == (len(kinds) == 1 and MARK not in kinds)
        assert row.ends == (kinds[-1] == STAR)
        assert row.star == (kinds == [STAR])
        assert kinds[0] == PAIR or len(kinds) == 1
        assert kinds[-1] != MARK or len(kinds) == 1
        assert all(result.side == (result.kind != MARK) for result in results)
        found += results
    assert told(found) == expected
    assert (len(rows) < len(words)) or not (stalls or begin)


@pytest.mark.parametrize("side", [0, 1])
def test_faults_are_of_the_side_that_is_probed(side):
    words = [
        punctuation(STAR, overflow=1),
        punctuation(STAR, disorder=1),
        punctuation(MARK, illegal=1, free=1),
    ]
    first, second, mark = rows_of(words, 3, side=side)
    overflow, faults = first.one.body.punctuation, second.one.body.punctuation
    assert (overflow.overflow, overflow.disorder, overflow.illegal) == (1 << 1 - side, 0, 0)
    assert (faults.overflow, faults.disorder, faults.illegal) == (0, 1, 0)
    assert mark.one.body.punctuation.illegal == mark.free == 1


def test_latency_and_a_result_per_cycle():
    sent, taken = [], []
    words = [region_pair(n) for n in range(30)]
    rows = rows_of(words, 30, stamps=(sent, taken))
    latency = ResultPairing(gathering_parameters(1, 2), side=0).latency
    assert taken == [cycle + latency for cycle in sent]
    assert len(rows) == taken[-1] - taken[0] + 1 == 30


@pytest.mark.parametrize(("probes", "depth"), [(1, 16), (16, 16), (32, 16), (33, 32), (64, 32)])
def test_a_group_can_wait_whatever_its_size(probes, depth):
    parameters = gathering_parameters(1, 2).with_(probes=probes, probe_bits=6)
    assert ResultPairing(parameters, side=0).depth == depth


def test_what_waits_leaves_at_two_results_per_cycle():
    depth = ResultPairing(gathering_parameters(1, 2), side=0).depth
    count = 2 * (depth - ResultPairing.RESERVE)
    taken = []
    rows = rows_of(
        [region_pair(n) for n in range(count)], count, begin=count + 10, stamps=([], taken)
    )
    assert [row.one.body.pair.row for row in rows] == [*range(3), *range(4, count, 2)][: len(rows)]
    # The register behind the queue has taken the first two one by one.
    assert len(rows) == count // 2 + 1
    assert taken == list(range(taken[0], taken[0] + len(rows)))
