# SPDX-License-Identifier: Apache-2.0
import random

from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.streams.queues import StreamCrossing

COUNT = 60


def crossed(periods, *, stalls=0.0, depth=16):
    """Send numbers through; return what comes out, and the cycles of transfers on both sides."""
    dut = StreamCrossing(8, i_domain="a", o_domain="b", depth=depth)
    m = Module()
    m.domains += [ClockDomain("a"), ClockDomain("b")]
    m.submodules.dut = dut
    simulator = Simulator(m)
    for name, period in zip("ab", periods, strict=True):
        simulator.add_clock(period * 1e-9, domain=name)
    got, times = [], ([], [])

    async def send(ctx):
        rng = random.Random(1)
        now = 0
        for number in range(COUNT):
            while rng.random() < stalls:
                await ctx.tick("a")
                now += periods[0]
            ctx.set(dut.i.payload, number)
            ctx.set(dut.i.valid, 1)
            while True:
                *_, ready = await ctx.tick("a").sample(dut.i.ready)
                now += periods[0]
                if ready:
                    break
            times[0].append(now - periods[0] / 2)  # where the edge is
            ctx.set(dut.i.valid, 0)

    async def take(ctx):
        rng = random.Random(2)
        held = None
        for cycle in range(20 * COUNT):
            ready = rng.random() >= stalls
            ctx.set(dut.o.ready, ready)
            *_, valid, payload = await ctx.tick("b").sample(dut.o.valid, dut.o.payload)
            assert held is None or (valid and payload == held)
            held = payload if valid and not ready else None
            if valid and ready:
                got.append(payload)
                times[1].append((cycle + 0.5) * periods[1])
            if len(got) == COUNT:
                return

    simulator.add_testbench(send)
    simulator.add_testbench(take)
    simulator.run()
    return got, times


@pytest.mark.few(2)
@pytest.mark.parametrize("periods", [(8, 20), (20, 8), (10, 10), (7, 9)])
def test_payloads_keep_their_order_and_pass_at_the_rate_of_the_slower_clock(periods):
    got, (_, taken) = crossed(periods)
    assert got == list(range(COUNT))
    slower = max(periods)
    assert taken[-1] - taken[10] <= (COUNT - 11 + 2) * slower


@pytest.mark.few(2)
@pytest.mark.parametrize("depth", [4, 16])
@pytest.mark.parametrize("periods", [(8, 20), (20, 7)])
def test_payloads_keep_their_order_with_stalls(periods, depth):
    assert crossed(periods, stalls=0.4, depth=depth)[0] == list(range(COUNT))


@pytest.mark.few(3)
@pytest.mark.parametrize("periods", [(8, 20), (20, 8), (10, 10), (10, 11), (11, 10)])
def test_a_payload_is_as_late_as_stated(periods):
    _, (sent, taken) = crossed(periods)
    late = taken[0] - sent[0]
    assert 2 * periods[1] < late <= 3 * periods[1]


def test_a_depth_that_is_no_power_of_two_is_refused():
    with pytest.raises(ValueError, match="power of two from 4 on, not 6"):
        StreamCrossing(8, i_domain="a", o_domain="b", depth=6)
