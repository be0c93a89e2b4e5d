# SPDX-License-Identifier: Apache-2.0
import random

from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.ingress.storage_turns import CoreLists, SideTurns
from hdl.parameters import JoinParameters
from tests.halves import half
from tests.hdl.turns_model import Turns

SHARED = ("lists", "write", "entry", "value")


def pair(parameters):
    """Return a module with the lists and the turns of both sides, connected as in the ingress."""
    m = Module()
    m.submodules.lists = lists = CoreLists(parameters)
    sides = []
    for name in "rs":
        m.submodules[f"turns_{name}"] = turns = SideTurns(parameters)
        m.d.comb += [getattr(turns, port).eq(getattr(lists, port)) for port in SHARED]
        m.d.comb += turns.segment.eq(lists.begin)
        sides.append(turns)
    m.d.comb += lists.needed.eq(sides[0].spans_three | sides[1].spans_three)
    return m, lists, sides


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("cores", "seed"),
    half([1, 2, 3, 4, 5, 8], range(3), of=4),
)
def test_turns_are_those_of_lists_in_every_cycle(cores, seed):
    generator = random.Random(seed)
    parameters = JoinParameters.of(cores=cores, sub_window=3)
    model = Turns(parameters)
    m, lists, sides = pair(parameters)
    seen = {"refused": 0, "begun": 0, "left": 0}

    async def tuples(ctx):
        for side, turns in enumerate(sides):
            ctx.set(turns.tuple, 1)
            ctx.set(turns.advance, taken := generator.random() < 0.7)
            if taken:
                model.take(side)
        await ctx.tick()
        for turns in sides:
            ctx.set(turns.tuple, 0)
            ctx.set(turns.advance, 0)

    async def control(ctx, name, value=0):
        ctx.set(getattr(lists, name), 1)
        ctx.set(lists.core, value % (1 << len(lists.core)))
        ctx.set(lists.exists, 0 <= value < cores)
        ctx.set(lists.which, 1 << max(value, 0))
        refused = model.append(value) if name == "append" else model.begin()
        for part in (lists, *sides):
            ctx.set(part.advance, name == "append" or not refused)
        told = lists.core_refused if name == "append" else lists.segment_refused
        assert ctx.get(told) == refused
        seen["refused"] += refused
        seen["begun"] += name == "begin" and not refused
        await ctx.tick()
        ctx.set(getattr(lists, name), 0)
        for part in (lists, *sides):
            ctx.set(part.advance, 0)

    async def restart(ctx, side):
        size = generator.choice([0, 1, cores, generator.randint(1, parameters.capacity)])
        model.restart(side, size)
        turns = sides[side]
        ctx.set(turns.restart, 1)
        ctx.set(turns.advance, 1)
        ctx.set(turns.begin, 1)
        ctx.set(turns.timed, size == 0)
        ctx.set(turns.size, size)
        await ctx.tick()
        ctx.set(turns.restart, 0)
        ctx.set(turns.advance, 0)

    async def bench(ctx):
        for _ in range(1_500):
            for side, turns in enumerate(sides):
                core, leaves = model.next(side)
                assert ctx.get(turns.core) == core
                assert ctx.get(turns.expires) == (leaves is not None)
                if leaves is not None:
                    seen["left"] += 1
                    assert ctx.get(turns.oldest) == leaves
            choice = generator.random()
            if choice < 0.12:
                await control(ctx, "append", generator.randint(-1, cores))
            elif choice < 0.2:
                await control(ctx, "begin")
            elif choice < 0.21:
                await restart(ctx, generator.randrange(2))
            else:
                await tuples(ctx)
            assert ctx.get(lists.limit) == len(model.live) * parameters.slack

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(seen.values())
