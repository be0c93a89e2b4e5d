# SPDX-License-Identifier: Apache-2.0
"""The scanner alone, with a ring that never changes."""

from itertools import pairwise
import random

from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.scan.scanner import Scanner
from hdl.words.prepared import pointer_layout
from tests.halves import half
from tests.hdl.input_words import criterion_of, stored_key

BOUNDS = {"x": (-1, 2)}
#: Square of the largest distance of a predicate with a multiplier, which takes three cycles.
FAR = 10


class Passes:
    """Groups of probes, and what their passes give."""

    def __init__(self, parameters, *, seed):
        self.parameters = parameters
        self.bounds = None if parameters.predicate.kind == "custom" else BOUNDS
        self.generator = random.Random(seed)
        self.ring = [
            [self.generator.randrange(-8, 8) for _ in range(parameters.engine.lanes)]
            for _ in range(parameters.ring_rows)
        ]
        self.rows = 1 << pointer_layout(parameters)["row"].width
        self.groups = []  # (probes with their spans, group)
        self.reads = []  # for every row that is read: its address, matches or None, count
        self.comparisons = 0

    def holds(self, key, stored):
        """Whether a probe matches a stored key: by its bounds, or by their distance."""
        if self.bounds is None:
            return (key - stored) ** 2 <= FAR
        low, high = self.bounds["x"]
        return low <= key - stored <= high

    def pointer(self, number):
        """A ring position by its running number."""
        lanes = self.parameters.engine.lanes
        return {"lane": number % lanes, "row": number // lanes % self.rows}

    def add(self, probes, *, star=1):
        """A group of (key, tail, head); tails and heads never move back."""
        lanes, count = self.parameters.engine.lanes, len(probes)
        first = probes[0][1] // lanes if probes else 0
        stop = -(-probes[-1][2] // lanes) if probes else 0
        group = {
            "first": first % self.rows,
            "second": (first + 1) % self.rows,
            "stop": stop % self.rows,
            "newest_tail": self.pointer(probes[-1][1])["row"] if probes else 0,
            "oldest_head": self.pointer(probes[0][2])["row"] if probes else 0,
            "ending": {"count": count, "star": star},
        }
        spans = [
            (key, {"tail": self.pointer(tail), "head": self.pointer(head)})
            for key, tail, head in probes
        ]
        self.groups.append((spans, group))
        for row in range(first, max(stop, first + 1)):
            address = row % self.parameters.ring_rows
            matches = []
            for lane, stored in enumerate(self.ring[address]):
                bits = 0
                for n, (key, tail, head) in enumerate(probes):
                    if tail <= row * lanes + lane < head:
                        self.comparisons += 1
                        bits |= self.holds(key, stored) << n
                matches.append(bits)
            last = row >= stop - 1
            self.reads.append((address, matches if last or any(matches) else None, last, count))

    def add_random(self, count):
        """Groups as a region would make them."""
        tail, head = 0, 0
        for _ in range(count):
            probes = []
            for _ in range(self.generator.randrange(self.parameters.engine.probes + 1)):
                head = min(
                    head + self.generator.choice([0, 1, 2]),
                    tail + self.parameters.window.sub_window,
                )
                tail = min(tail + self.generator.choice([0, 1, 2]), head)
                probes.append((self.generator.randrange(-8, 8), tail, head))
            self.add(probes, star=self.generator.randrange(2))

    def run(self, *, stalls=0.0, hold=2):
        """Simulate; return the cycles of reads and outcomes by row, having checked them."""
        dut = Scanner(self.parameters, probe_side=0)
        simulator = Simulator(dut)
        simulator.add_clock(1e-6)
        reads, outcomes, taken = [], [], []
        counted = [0]

        async def collector(ctx):
            """Fill the slots and offer the group."""
            for spans, group in self.groups:
                for n, (key, span) in enumerate(spans):
                    ctx.set(dut.add_to, 1 << n)
                    ctx.set(dut.span, span)
                    criterion = criterion_of(self.parameters, 0, {"x": key}, self.bounds)
                    ctx.set(dut.criterion, criterion)
                    await ctx.tick()
                    ctx.set(dut.add_to, 0)
                if not spans:
                    await ctx.tick()
                ctx.set(dut.group.payload, group)
                ctx.set(dut.group.valid, 1)
                await ctx.tick().until(dut.group.ready)
                taken.append(1)
                ctx.set(dut.group.valid, 0)
                for _ in range(hold - 1):
                    await ctx.tick()

        async def ring(ctx):
            """Answer an address two cycles later; watch the rest."""
            addresses = [0, 0]
            cycle = idle = 0
            while len(taken) < len(self.groups) or len(reads) < len(self.reads) or idle < 30:
                keys = self.ring[addresses.pop(0)]
                ctx.set(dut.keys, [stored_key(self.parameters, {"x": key}) for key in keys])
                ctx.set(dut.room, self.generator.random() >= stalls)
                *_, address, reading, valid, matches, comparisons = await ctx.tick().sample(
                    dut.address, dut.reading, dut.matches_valid, dut.matches, dut.comparisons
                )
                addresses.append(address)
                counted[0] += comparisons
                if reading:
                    reads.append((cycle, address))
                if valid:
                    outcomes.append((cycle, matches))
                cycle += 1
                idle = 0 if reading or cycle < 10 else idle + 1
                assert cycle < 20_000

        simulator.add_testbench(collector, background=True)
        simulator.add_testbench(ring)
        simulator.run()

        assert [address for _, address in reads] == [address for address, *_ in self.reads]
        expected = [
            (cycle + dut.latency, row)
            for (cycle, _), row in zip(reads, self.reads, strict=True)
            if row[1] is not None
        ]
        assert [cycle for cycle, _ in outcomes] == [cycle for cycle, _ in expected]
        for (_, found), (_, (address, matches, last, count)) in zip(
            outcomes, expected, strict=True
        ):
            turned = [
                sum(
                    (found.matches[n] >> lane & 1) << n
                    for n in range(self.parameters.engine.probes)
                )
                for lane in range(len(matches))
            ]
            assert turned == matches
            assert (found.row, bool(found.last)) == (address, last)
            if last:
                assert found.ending.count == count
        assert counted[0] == self.comparisons
        return [cycle for cycle, _ in reads]


def scanner_parameters(lanes, probes):
    """Parameters of a small ring."""
    return JoinParameters.of(
        sub_window=7 * lanes, lanes=lanes, probes=probes, keys=(KeyField(name="x", bits=5),)
    )


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("lanes", "probes", "stalls"), half([1, 2, 3], [1, 2, 4], [0.0, 0.4], of=3)
)
def test_every_row_of_a_span_is_compared_with_every_probe(lanes, probes, stalls):
    passes = Passes(scanner_parameters(lanes, probes), seed=10 * lanes + probes)
    passes.add_random(80)
    passes.run(stalls=stalls)


@pytest.mark.parametrize(("lanes", "probes", "stalls"), [(1, 1, 0.0), (2, 3, 0.4), (3, 2, 0.0)])
def test_a_predicate_of_several_cycles_is_waited_for(lanes, probes, stalls):
    plain = scanner_parameters(lanes, probes)
    where = f"(l.x - r.x) * (l.x - r.x) <= {FAR}"
    parameters = plain.with_(comparator="custom", where=where)
    passes = Passes(parameters, seed=lanes)
    passes.add_random(40)
    passes.run(stalls=stalls)
    slow, quick = (Scanner(each, probe_side=0) for each in (parameters, plain))
    assert slow.latency == quick.latency + 2
    assert slow.in_flight >= quick.in_flight + 2


@pytest.mark.few(2)
@pytest.mark.parametrize("rows", [4, 7])
@pytest.mark.parametrize("lanes", [1, 3])
def test_a_row_per_cycle_and_no_idle_cycle_between_passes(rows, lanes):
    passes = Passes(scanner_parameters(lanes, 1), seed=1)
    for n in range(10):
        passes.add([(0, n, n + rows * lanes)] if lanes == 1 else [(0, 0, rows * lanes)])
    cycles = passes.run()
    assert {b - a for a, b in pairwise(cycles)} == {1}
    assert len(cycles) == 10 * rows


def test_latency_is_that_of_a_slot_and_one_cycle():
    dut = Scanner(scanner_parameters(1, 1), probe_side=0)
    assert dut.latency == 5
    assert dut.in_flight > dut.latency
