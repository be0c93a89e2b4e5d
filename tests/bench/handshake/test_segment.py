# SPDX-License-Identifier: Apache-2.0
"""Passes over a ring against a model, with every match and mark in its place."""

import random

from amaranth.hdl import Array, Module
from amaranth.sim import Simulator
import pytest

from bench.handshake import LOW_LATENCY
from bench.handshake.segment import Segment
from hdl.parameters import JoinParameters, KeyField

PARAMETERS = JoinParameters.of(
    cores=2, sub_window=14, keys=(KeyField(name="x", bits=4, signed=False),),
    comparator="equality", architecture=LOW_LATENCY,
)  # fmt: skip


def run(dut, script, *, met=None, ready=1.0, seed=0, deadline=3_000):
    """Run ``script(ctx)``, then until as many results as it returns have come; return them.

    ``met`` are the tuples that passes meet: key, homeless, oldest.
    """
    m = Module()
    m.submodules.dut = dut
    if met is not None:  # the core answers in the cycle in which it is asked
        key, homeless, oldest = (Array(column)[dut.met_place] for column in zip(*met, strict=True))
        m.d.comb += [
            dut.met_key.as_value().eq(key),
            dut.met_homeless.eq(homeless),
            dut.met_oldest.eq(oldest),
        ]
    simulator, generator = Simulator(m), random.Random(seed)
    simulator.add_clock(1e-6)
    received, wanted, ended = [], None, []

    async def send(ctx):
        nonlocal wanted
        wanted = await script(ctx)

    async def receive(ctx):
        for cycle in range(deadline):
            ctx.set(dut.results.ready, generator.random() < ready)
            if ctx.get(dut.results.valid) and ctx.get(dut.results.ready):
                match = ctx.get(dut.results.payload)
                received.append("mark" if match.mark else (match.stored, match.passing))
                ended.append(cycle)
            if wanted is not None and len(received) >= wanted:
                break
            await ctx.tick()
        else:
            raise AssertionError(f"{len(received)} of {wanted} results in {deadline} cycles")

    simulator.add_testbench(send)
    simulator.add_testbench(receive)
    simulator.run()
    return received, ended


@pytest.mark.parametrize(("meets", "stride", "ready"), [(0, 1, 1.0), (0, 2, 0.3), (3, 2, 0.6)])
def test_a_pass_compares_the_rows_that_it_names(meets, stride, ready):
    dut = Segment(PARAMETERS, side=0, stride=stride, limited=bool(meets), meets=meets)
    generator = random.Random(meets)
    rows, expected = PARAMETERS.ring_rows, []
    met = [(generator.randrange(3), generator.randrange(2), generator.randrange(60))
           for _ in range(1 << meets)]  # fmt: skip

    async def script(ctx):
        keys = {}
        head = 0
        for tag in range(50):
            for _ in range(generator.randrange(4)):
                keys[head] = generator.randrange(3)
                ctx.set(dut.store, 1)
                ctx.set(dut.place, head % (2 * rows))
                ctx.set(dut.key, {"x": keys[head]})
                await ctx.tick()
                ctx.set(dut.store, 0)
                head += 1
            tail = max(0, head - generator.choice([0, 1, 5, 14]))
            ctx.set(dut.tail, tail % (2 * rows))
            while not ctx.get(dut.room) or (head - ctx.get(dut.kept)) % (2 * rows) > 14:
                await ctx.tick()
            mark, x = generator.random() < 0.2, generator.randrange(3)
            count = 0 if mark else head - tail
            pass_ = {"mark": mark, "first": tail % (2 * rows), "rows": count, "tag": tag,
                     "oldest": stride * tail}  # fmt: skip
            found = [n for n in range(tail, tail + count) if keys[n] == x]
            matches = [(stride * n, tag) for n in found]
            if meets:
                limit = stride * generator.randint(tail, head)
                first = generator.randrange(8)
                pass_ |= {"limit": limit, "met_first": first, "homeless": generator.randrange(2)}
                pass_["met"] = 0 if mark else generator.randrange(8)
                matches = [match for match in matches if match[0] < limit]
                for n in range(first, first + pass_["met"]):
                    key, homeless, oldest = met[n % 8]
                    late = pass_["homeless"] and tag >= oldest
                    if key == x and (homeless if n < limit else late):
                        matches.append((n, tag))
            ctx.set(dut.pass_, pass_)
            ctx.set(dut.criterion, {"x": x})
            ctx.set(dut.push, 1)
            await ctx.tick()
            ctx.set(dut.push, 0)
            expected.extend(["mark"] if mark else matches)
        return len(expected)

    received, _ = run(dut, script, met=met if meets else None, ready=ready)
    assert received == expected


def test_passes_follow_each_other_without_a_gap_and_the_latency_is_as_stated():
    dut = Segment(PARAMETERS, side=0)

    async def script(ctx):
        for row in range(6):
            ctx.set(dut.store, 1)
            ctx.set(dut.place, row)
            ctx.set(dut.key, {"x": 1})
            await ctx.tick()
        ctx.set(dut.store, 0)
        for tag in range(3):
            ctx.set(dut.pass_, {"rows": 6, "tag": tag, "oldest": 0})
            ctx.set(dut.criterion, {"x": 1})
            ctx.set(dut.push, 1)
            await ctx.tick()
        ctx.set(dut.push, 0)
        return 18

    received, ended = run(dut, script)
    assert received == [(row, tag) for tag in range(3) for row in range(6)]
    assert ended == list(range(ended[0], ended[0] + 18))
    # Pushed in cycle 6, the first row's turn 2 later, its match, and out of the queue.
    assert ended[0] == 6 + 2 + dut.latency + 1
