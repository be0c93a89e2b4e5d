# SPDX-License-Identifier: Apache-2.0
"""The verifier with its table of passes, against plain lists."""

from itertools import pairwise
from operator import eq
import random

from amaranth import *
import pytest

from hdl.memory import columns as block_ram
from hdl.parameters import JoinParameters, KeyField
from hdl.scan.layouts import lane_matches_layout
from hdl.scan.verifier import Verifier
from tests.halves import half
from tests.hdl.ecp5 import ECP5
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench
from tests.hdl.verifier_pair import VerifierPair


def digest_parameters(*, lanes, probes=3, comparator="equality"):
    """Parameters whose keys have a digest of two bits; in an equality, the rest has six."""
    return JoinParameters.of(
        lanes=lanes, probes=probes, sub_window=9 * lanes, comparator=comparator,
        keys=(KeyField(name="x", bits=8),), digest_bits=2,
    )  # fmt: skip


def few_keys(parameters, generator):
    """Some stored keys, some criteria, and a function that tells whether the two match."""
    if parameters.predicate.kind == "equality":
        few = [{"digest": n, "rest": generator.randrange(64)} for n in range(4)]
        return few, few, eq
    keys = [{"x": generator.randrange(256)} for _ in range(4)]
    ranges = [(max(key["x"] - 30, 0), min(key["x"] + wide, 255))
              for key, wide in zip(keys, (0, 1, 60, 200), strict=True)]  # fmt: skip
    criteria = [{"low_0": low, "high_0": high | 1 << 8} for low, high in ranges]
    return keys, criteria, lambda key, of: of["low_0"] <= key["x"] <= of["high_0"] & 255


class Passes:
    """Stored keys, probes and candidates, and which probes have the key of each in their span."""

    def __init__(self, parameters, generator, number, *, empty=0.2):
        self.parameters = parameters
        rows, lanes, probes = (
            parameters.ring_rows,
            parameters.engine.lanes,
            parameters.engine.probes,
        )
        few, criteria, self.match = few_keys(parameters, generator)
        self.stored = [[generator.choice(few) for _ in range(lanes)] for _ in range(rows)]
        self.probes, self.firsts, self.candidates, self.left = [], [], [], []
        first = generator.randrange(2 * rows)
        for _ in range(number):
            first += generator.randrange(rows)
            group = []
            if generator.random() >= empty:
                group = [
                    (generator.choice(criteria), self.span(generator, first))
                    for _ in range(generator.randrange(1, probes + 1))
                ]
            self.probes.append(group)
            self.firsts.append(first % (2 * rows))
            for n in reversed(range(generator.randrange(1, 6))):
                self.candidate(generator, first, group, last=n == 0)

    def span(self, generator, first):
        """From some lane on, and up to another one, in the rows from ``first`` on."""
        lanes = self.parameters.engine.lanes
        most = (self.parameters.ring_rows - 1) * lanes
        tail, head = sorted(generator.randrange(most + 1) for _ in range(2))
        return first * lanes + tail, first * lanes + head

    def candidate(self, generator, first, group, *, last):
        """A lane somewhere in the rows of a pass."""
        rows, lanes = self.parameters.ring_rows, self.parameters.engine.lanes
        place = first * lanes + generator.randrange((rows - 1) * lanes)
        row, lane = place // lanes % rows, place % lanes
        word = {
            "matches": not last or generator.randrange(2),
            "lane": lane,
            "row": row,
            "last": last,
            "ending": {"count": len(group), "star": generator.randrange(2)},
        }
        matches = sum(
            (self.match(self.stored[row][lane], of) and tail <= place < head) << n
            for n, (of, (tail, head)) in enumerate(group)
        )
        self.candidates.append(word)
        if last or matches:
            self.left.append({**word, "matches": matches if word["matches"] else 0})

    def probe(self, key, span):
        """A probe as the table keeps it."""
        lanes, rows = self.parameters.engine.lanes, 2 * self.parameters.ring_rows
        tail, head = ({"lane": n % lanes, "row": n // lanes % rows} for n in span)
        return {"key": key, "span": {"tail": tail, "head": head}}


def verify(passes, *, columns=None, stalls=0.0, stamps=None):
    """Store the keys, begin passes when there is room, and verify their candidates."""
    parameters = passes.parameters
    dut = VerifierPair(parameters, columns=columns)
    bench = StreamBench(dut, deadline=40_000, stalls=stalls, seed=7)
    table, verifier = dut.passes, dut.verifier
    began = []

    async def fill(ctx):
        for row, keys in enumerate(passes.stored):
            for lane, key in enumerate(keys):
                ctx.set(verifier.store, 1)
                ctx.set(verifier.place, {"row": row, "lane": lane})
                ctx.set(verifier.key, key)
                await ctx.tick()
        ctx.set(verifier.store, 0)
        for group, first in zip(passes.probes, passes.firsts, strict=True):
            for n, probe in enumerate(group):
                ctx.set(table.add, 1)
                ctx.set(table.number, n)
                ctx.set(table.probe, passes.probe(*probe))
                await ctx.tick()
            ctx.set(table.add, 0)
            while not ctx.get(table.room):
                await ctx.tick()
            ctx.set(table.first, first)
            ctx.set(table.count, len(group))
            ctx.set(table.began, 1)
            await ctx.tick()
            ctx.set(table.began, 0)
            began.append(first)
        bench.done()

    async def send(ctx):
        ended = 0
        for word in passes.candidates:
            while len(began) <= ended or bench.pauses():
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            assert ctx.get(table.pending)
            ctx.set(dut.i.payload, word)
            ctx.set(dut.i.valid, 1)
            ready = False
            while not ready:
                _, _, ready = await ctx.tick().sample(dut.i.ready)
            if stamps:
                stamps[0].append(bench.cycle - 1)
            ended += word["last"]
        ctx.set(dut.i.valid, 0)
        bench.done()

    bench.spawn(fill)
    bench.spawn(send)
    received = bench.sink(dut.o, len(passes.left), stamps=stamps and stamps[1])
    bench.run(extra_cycles=20)
    layout = lane_matches_layout(parameters, parameters.engine.probes)
    return [integer(layout, word) for word in passes.left], received


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("lanes", "probes", "stalls", "comparator"),
    half([(1, 1), (2, 3), (5, 2), (9, 4)], [0.0, 0.5, 0.95], ["equality", "band"], of=4),
)
def test_what_is_left_of_a_lane_are_the_probes_that_match_its_key_and_see_it(
    lanes, probes, stalls, comparator
):
    parameters = digest_parameters(lanes=lanes, probes=probes, comparator=comparator)
    expected, received = verify(Passes(parameters, random.Random(lanes), 60), stalls=stalls)
    assert received == expected


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("lanes", "columns"),
    [
        (1, 1),
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
        (3, 3),
        (5, 2),
        (5, 4),
        (5, 5),
        (9, 1),
        (9, 8),
        (9, 9),
    ],
)
def test_lanes_folded_into_any_columns_leave_the_same(lanes, columns):
    parameters = digest_parameters(lanes=lanes)
    passes = Passes(parameters, random.Random(columns), 40)
    expected, received = verify(passes, columns=columns, stalls=0.2)
    assert received == expected


def scan_of_digests(rows, *, lanes, bits, **others):
    """Parameters with digests and so many rows in the ring of a region."""
    return JoinParameters.of(
        lanes=lanes, probes=4, sub_window=lanes * (rows - 4), comparator="equality",
        keys=(KeyField(name="x", bits=bits),), digest_bits=4, **others,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "columns", "block_rams"),
    [
        # A block RAM has 512 rows of 32 bits, of which a lane needs all, a half, a quarter.
        (scan_of_digests(512, lanes=16, bits=32), 16, 16),
        (scan_of_digests(256, lanes=16, bits=32), 8, 8),
        (scan_of_digests(128, lanes=16, bits=32), 4, 4),
        (scan_of_digests(128, lanes=15, bits=32), 4, 4),
        (scan_of_digests(128, lanes=12, bits=32), 4, 4),
        # Two narrow keys share a row; half as many rows, of four keys, take as many block RAMs.
        (scan_of_digests(512, lanes=16, bits=18), 16, 8),
        (scan_of_digests(128, lanes=16, bits=18), 4, 2),
        # Wide keys take block RAMs side by side, and five of nine bits waste the least.
        (scan_of_digests(512, lanes=16, bits=40), 4, 20),
        # Four bits of parity, one for each eight bits, would fit beside no more lanes.
        (scan_of_digests(128, lanes=16, bits=32, parity=True, failure_cycles=1 << 17), 4, 4),
    ],
)
def test_whole_keys_take_the_fewest_block_rams(monkeypatch, parameters, columns, block_rams):
    made = []
    monkeypatch.setattr(block_ram, "Instance", lambda kind, **pins: made.append(kind) or Module())
    verifier = Verifier(parameters)
    Fragment.get(verifier, ECP5())
    assert verifier.columns == columns
    assert made == ["DP16KD"] * block_rams


@pytest.mark.parametrize("probes", [1, 3])
def test_latency_and_a_probe_per_cycle(probes):
    parameters = digest_parameters(lanes=6, probes=probes)
    passes = Passes(parameters, random.Random(2), 1, empty=1.0)
    lane = {"matches": 1, "lane": 5, "row": 3, "last": 0, "ending": {"count": probes}}
    passes.firsts = [0]
    passes.probes = [[(passes.stored[3][5], (0, 60))] * probes]
    passes.candidates = [lane] * 20 + [{**lane, "matches": 0, "last": 1}]
    every = (1 << probes) - 1
    passes.left = [{**lane, "matches": every}] * 20 + [{**lane, "matches": 0, "last": 1}]
    sent, taken = [], []
    expected, received = verify(passes, stamps=(sent, taken))
    assert received == expected
    assert [b - a for a, b in pairwise(sent)] == [probes] * 19 + [1]
    assert taken == [cycle + Verifier(parameters).latency for cycle in sent]


def test_a_queue_smaller_than_the_lanes_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 7 lanes cannot hold 7 in flight"):
        Verifier(digest_parameters(lanes=2), depth=7)
