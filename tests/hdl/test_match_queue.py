# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.hdl import Value
import pytest

from hdl.layouts import ResultKind, match_layout, node_result
from hdl.match_queue import MatchQueue
from hdl.parameters import JoinParameters
from tests.hdl.stream_bench import StreamBench


def queue_parameters(lanes, probes):
    """Parameters with a short probe index."""
    return JoinParameters(lanes=lanes, probes=probes, probe_bits=4, sub_window=50)


def random_rows(parameters, generator, groups):
    """Rows of match bits, and the words that they become."""
    rows, words = [], []
    lanes, probes = parameters.lanes, parameters.probes
    base = 0
    for group in range(groups):
        count = generator.randrange(1, probes + 1)
        star = generator.random() < 0.7 or base + probes > 16 - probes
        mark = generator.random() < 0.2
        for n in range(length := generator.randrange(1, 6)):
            last = n == length - 1
            bits = generator.choice([0, 0, 1, 2, 5, (1 << lanes * probes) - 1])
            bits &= (1 << lanes * probes) - 1
            punctuation = {"overflow": group % 2, "disorder": 0, "free": 0}
            if not bits and not last:
                continue
            rows.append(
                {
                    "matches": bits,
                    "row": n,
                    "last": last,
                    "count": count,
                    "star": star,
                    "mark": mark,
                    "punctuation": punctuation,
                }
            )
            words += [
                (ResultKind.PAIR, (base + bit % probes) % 16, bit // probes, n)
                for bit in range(lanes * probes)
                if bits >> bit & 1
            ]
            if last and star:
                words.append((ResultKind.STAR, group % 2))
            if last and mark:
                words.append((ResultKind.MARK, group % 2))
        base = 0 if star else base + count
    return rows, words


def as_tuple(word):
    """What a word says."""
    if word.kind == ResultKind.PAIR:
        pair = word.body.pair
        return ResultKind.PAIR, pair.probe, pair.lane, pair.row
    return word.kind, word.body.punctuation.overflow


@pytest.mark.parametrize(("lanes", "probes"), [(1, 1), (2, 1), (1, 3), (3, 2), (2, 4)])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_rows_become_words_in_order_and_none_is_lost_when_rows_cannot_be_refused(
    lanes, probes, stalls
):
    parameters = queue_parameters(lanes, probes)
    dut = MatchQueue(parameters, in_flight=4)
    rows, words = random_rows(parameters, random.Random(lanes * 10 + probes), 60)
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=probes)

    async def scanner(ctx):
        # Like the scanner: rows keep coming for some cycles after `room` fell.
        seen = [True] * 3
        waiting = iter(rows)
        row = next(waiting)
        while row is not None:
            seen = [bool(ctx.get(dut.room)), *seen[:-1]]
            ctx.set(dut.matches_valid, seen[-1])
            ctx.set(dut.matches, row)
            await ctx.tick()
            if seen[-1]:
                row = next(waiting, None)
        ctx.set(dut.matches_valid, 0)
        bench.done()

    bench.spawn(scanner)
    received = bench.sink(dut.results, len(words))
    bench.run(extra_cycles=30)
    layout = node_result(parameters, 0)
    assert [as_tuple(layout.from_bits(word)) for word in received] == words


def test_latency_and_one_word_per_cycle():
    parameters = queue_parameters(2, 4)
    dut = MatchQueue(parameters, in_flight=4)
    bench = StreamBench(dut, deadline=200)
    start = []

    async def scanner(ctx):
        row = {"matches": 0xFF, "row": 1, "last": 0, "count": 4}
        ctx.set(Value.cast(dut.matches), match_layout(parameters).const(row).as_value().value)
        ctx.set(dut.matches_valid, 1)
        await ctx.tick()
        start.append(bench.cycle - 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.matches_valid, 0)
        bench.done()

    stamps = []
    bench.spawn(scanner)
    bench.sink(dut.results, 24, stamps=stamps)
    bench.run()
    first = start[0] + dut.latency
    assert stamps == list(range(first, first + 24))


def test_a_queue_smaller_than_the_rows_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 4 rows cannot hold 4 rows in flight"):
        MatchQueue(queue_parameters(1, 1), in_flight=4, depth=4)
