# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.hdl import Value
import pytest

from hdl.parameters import JoinParameters
from hdl.scan.layouts import lane_matches_layout, match_layout
from hdl.scan.match_queue import LaneSerializer, MatchQueue, PairSerializer
from hdl.words.results import ResultKind, node_result
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench


def queue_parameters(lanes, probes):
    """Parameters with a short probe index."""
    return JoinParameters(lanes=lanes, probes=probes, probe_bits=4, sub_window=50)


def match_bits(parameters, bits):
    """The matches of a row, lane by lane, from a number."""
    probes = parameters.probes
    return [bits >> lane * probes & (1 << probes) - 1 for lane in range(parameters.lanes)]


def by_probe(parameters, row):
    """A row with its matches probe by probe, as the scanner has them."""
    bits = range(parameters.lanes)
    turned = [
        sum((row["matches"][lane] >> probe & 1) << lane for lane in bits)
        for probe in range(parameters.probes)
    ]
    return {**row, "matches": turned}


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
                    "matches": match_bits(parameters, bits),
                    "row": n,
                    "last": last,
                    "ending": {
                        "count": count,
                        "star": star,
                        "mark": mark,
                        "punctuation": punctuation,
                    },
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
    dut = MatchQueue(parameters, in_flight=4, bits=parameters.probes)
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
            ctx.set(dut.matches, by_probe(parameters, row))
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


@pytest.mark.parametrize("lanes", [1, 2])
def test_latency_and_one_word_per_cycle(lanes):
    parameters = queue_parameters(lanes, 4)
    dut = MatchQueue(parameters, in_flight=4, bits=parameters.probes)
    assert dut.latency == 3 + (3 if lanes > 1 else 0)
    bench = StreamBench(dut, deadline=200)
    start = []

    async def scanner(ctx):
        row = {"matches": [0xF] * lanes, "row": 1, "last": 0, "ending": {"count": 4}}
        ctx.set(
            Value.cast(dut.matches),
            integer(match_layout(parameters, parameters.probes), by_probe(parameters, row)),
        )
        ctx.set(dut.matches_valid, 1)
        await ctx.tick()
        start.append(bench.cycle - 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.matches_valid, 0)
        bench.done()

    stamps = []
    bench.spawn(scanner)
    bench.sink(dut.results, 12 * lanes, stamps=stamps)
    bench.run()
    first = start[0] + dut.latency
    assert stamps == list(range(first, first + 12 * lanes))


def test_without_room_there_is_place_for_the_rows_in_flight():
    parameters = queue_parameters(2, 1)
    dut = MatchQueue(parameters, in_flight=5, bits=1, depth=8)
    bench = StreamBench(dut, deadline=200)
    row = {"matches": [1], "row": 1, "last": 0, "ending": {"count": 1}}
    sent = []

    async def scanner(ctx):
        ctx.set(dut.matches, row)
        ctx.set(dut.matches_valid, 1)
        while ctx.get(dut.room):
            await ctx.tick()
            sent.append(1)
        for _ in range(dut.in_flight - 1):  # one more was sent while `room` was on its way
            await ctx.tick()
            sent.append(1)
        ctx.set(dut.matches_valid, 0)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.room)
        ctx.set(dut.results.ready, 1)
        bench.done()

    bench.spawn(scanner)
    taken = []

    async def count(ctx):
        async for *_, valid, ready in ctx.tick().sample(dut.results.valid, dut.results.ready):
            taken.extend([1] * (valid & ready))

    bench.simulator.add_testbench(count, background=True)
    bench.run(extra_cycles=40)
    assert len(taken) == len(sent)


def serialize(dut, layout_in, words, count, *, stalls=0.0, stamps=None):
    """Send words through a serializer; return what comes out."""
    bench = StreamBench(dut, deadline=10_000, stalls=stalls, seed=3)
    payloads = [integer(layout_in, word) for word in words]
    bench.source(dut.i, payloads, stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    bench.run(extra_cycles=20)
    return [dut.o.payload.shape().from_bits(word) for word in received]


@pytest.mark.parametrize(("lanes", "probes"), [(2, 1), (3, 2), (4, 3), (26, 2)])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_a_row_becomes_its_lanes_with_matches_and_the_last_one_if_the_pass_ends(
    lanes, probes, stalls
):
    parameters = queue_parameters(lanes, probes)
    rows, _ = random_rows(parameters, random.Random(lanes), 40)
    expected = [
        (matches, lane, row["row"], ends, row["ending"]["count"])
        for row in rows
        for lane, matches in enumerate(row["matches"])
        for ends in [bool(row["last"]) and lane == lanes - 1]
        if matches or ends
    ]
    lanes_sent = serialize(
        LaneSerializer(parameters, bits=parameters.probes),
        match_layout(parameters, parameters.probes),
        [by_probe(parameters, row) for row in rows],
        len(expected),
        stalls=stalls,
    )
    assert [
        (word.matches, word.lane, word.row, bool(word.last), word.ending.count)
        for word in lanes_sent
    ] == expected


@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("full", [False, True])
def test_latency_of_lanes_and_one_lane_per_cycle(lanes, full):
    parameters = queue_parameters(lanes, 2)
    dut = LaneSerializer(parameters, bits=parameters.probes)
    assert dut.latency == 3
    row = by_probe(parameters, {"matches": [3 if full or n == 1 else 0 for n in range(lanes)]})
    each = lanes if full else 1
    sent, taken = [], []
    serialize(
        dut,
        match_layout(parameters, parameters.probes),
        [row] * 20,
        20 * each,
        stamps=(sent, taken),
    )
    assert taken == list(range(sent[0] + dut.latency, sent[0] + dut.latency + 20 * each))
    if not full:
        assert taken == [s + dut.latency for s in sent]


@pytest.mark.parametrize("probes", [1, 3, 4])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_a_lane_becomes_its_pairs_then_star_and_mark(probes, stalls):
    parameters = queue_parameters(1, probes)
    rows, expected = random_rows(parameters, random.Random(probes), 60)
    lanes = [{**row, "matches": row["matches"][0], "lane": 0} for row in rows]
    words = serialize(
        PairSerializer(parameters),
        lane_matches_layout(parameters, parameters.probes),
        lanes,
        len(expected),
        stalls=stalls,
    )
    assert [as_tuple(word) for word in words] == expected


@pytest.mark.parametrize("full", [False, True])
def test_latency_of_pairs_and_one_word_per_cycle(full):
    parameters = queue_parameters(1, 4)
    dut = PairSerializer(parameters)
    assert dut.latency == 2
    ending = {"count": 4, "star": 1, "mark": full}
    lane = {"matches": 0xF if full else 0, "last": 1, "ending": ending}
    each = 6 if full else 1
    sent, taken = [], []
    serialize(
        dut,
        lane_matches_layout(parameters, parameters.probes),
        [lane] * 20,
        20 * each,
        stamps=(sent, taken),
    )
    assert taken == list(range(sent[0] + dut.latency, sent[0] + dut.latency + 20 * each))
    if not full:
        assert taken == [s + dut.latency for s in sent]


def test_a_queue_smaller_than_the_rows_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 4 rows cannot hold 4 rows in flight"):
        MatchQueue(queue_parameters(1, 1), in_flight=4, bits=1, depth=4)
