# SPDX-License-Identifier: Apache-2.0
"""Matches of groups, with and without stars between them."""

from amaranth.sim import Simulator
import pytest

from hdl.index.group_results import GroupResults
from hdl.parameters import JoinParameters, KeyField
from hdl.words.results import ResultKind

PARAMETERS = JoinParameters(
    cores=1, sub_window=32, probes=4, probe_bits=6, engine="index",
    keys=(KeyField(name="x", bits=8),),
)  # fmt: skip
DEADLINE = 200


class Bench:
    """Drives a component of its own, and keeps what it sends, with the cycles."""

    def __init__(self):
        self.dut = GroupResults(PARAMETERS, in_flight=10)
        self.words = []
        self.released = []
        self.cycle = 0

    async def step(self, ctx, **signals):
        """Set inputs for one cycle; note results."""
        dut = self.dut
        for name, value in signals.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.results.ready, 1)
        if ctx.get(dut.results.valid):
            word = ctx.get(dut.results.payload)
            is_pair = word.kind == ResultKind.PAIR
            self.words.append((self.cycle, word.body.pair.probe if is_pair else word.kind))
        if ctx.get(dut.release):
            self.released.append(ctx.get(dut.released))
        await ctx.tick()
        self.cycle += 1
        assert self.cycle < DEADLINE
        for name in ("take", "begun", "ended", "found_valid"):
            ctx.set(getattr(dut, name), 0)

    async def take(self, ctx, number, count, *, star):
        """Begin a group whose only visit begins a walk."""
        ending = {"count": count, "star": star, "mark": 0}
        await self.step(ctx, take=1 << number, group={"ending": ending, "first": 0})
        await self.step(ctx, begun=1 << number)

    async def end(self, ctx, number, probe):
        """The walk of a group ends with a match."""
        queue = ctx.get(self.dut.queues[number])
        await self.step(
            ctx, found_valid=1, found_queue=queue, found={"number": probe, "place": 3},
            ended=1 << number,
        )  # fmt: skip

    def run(self, script):
        """Run a coroutine."""
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(script)
        simulator.run()


@pytest.mark.parametrize("star", [0, 1])
def test_a_younger_group_goes_first_unless_there_is_a_star_between(star):
    bench = Bench()

    async def script(ctx):
        await bench.take(ctx, 0, 4, star=star)
        await bench.take(ctx, 1, 3, star=1)
        ctx.set(bench.dut.started, 0b11)
        await bench.end(ctx, 1, 5)
        for _ in range(20):
            await bench.step(ctx)
        await bench.end(ctx, 0, 2)
        for _ in range(30):
            await bench.step(ctx)
        assert ctx.get(bench.dut.idle)

    bench.run(script)
    what = [word for _, word in bench.words]
    between = [ResultKind.STAR] if star else []
    assert what == ([2, *between, 5] if star else [5, 2]) + [ResultKind.STAR]
    assert bench.released == [4, 3]


def test_latency_of_a_match_and_of_a_star():
    bench = Bench()
    found = []

    async def script(ctx):
        await bench.take(ctx, 0, 1, star=1)
        ctx.set(bench.dut.started, 1)
        for _ in range(10):
            await bench.step(ctx)
        found.append(bench.cycle)
        await bench.end(ctx, 0, 0)
        for _ in range(20):
            await bench.step(ctx)

    bench.run(script)
    (match, _), (star, _) = bench.words
    assert match - found[0] == bench.dut.latency
    assert star - found[0] == 7


def test_groups_without_matches_and_stars_take_two_cycles_each():
    bench = Bench()
    seen = []

    async def script(ctx):
        for number in range(8):
            ending = {"count": 2, "star": 0, "mark": 0}
            await bench.step(ctx, take=1 << number, group={"ending": ending, "first": 0})
        ctx.set(bench.dut.started, 0xFF)
        while len(bench.released) < 8:
            before = len(bench.released)
            await bench.step(ctx)
            seen.extend([bench.cycle] * (len(bench.released) - before))

    bench.run(script)
    assert seen[-1] - seen[0] == 14
    assert not bench.words
