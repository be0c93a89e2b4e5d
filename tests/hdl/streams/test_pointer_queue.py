# SPDX-License-Identifier: Apache-2.0
import random
from types import SimpleNamespace

from amaranth.hdl import Fragment
from amaranth.sim import Simulator
import pytest

from hdl.streams.queues import PointerQueue, has_lut_ram


@pytest.mark.parametrize("device", ["LFE5U-25F", "iCE40HX8K"])
@pytest.mark.parametrize(("depth", "reserve"), [(2, 0), (2, 1), (8, 0), (8, 3), (8, 7)])
def test_a_queue_gives_back_what_it_got(depth, reserve, device):
    dut = PointerQueue(8, depth=depth, reserve=reserve)
    generator = random.Random(depth)
    simulator = Simulator(Fragment.get(dut, SimpleNamespace(device=device)))
    simulator.add_clock(1e-6)
    held = []

    async def bench(ctx):
        before = 0
        for _ in range(400):
            assert ctx.get(dut.level) == len(held)
            assert ctx.get(dut.room) == (before < depth - reserve)
            before = len(held)
            assert ctx.get(dut.filled) == bool(held)
            if held:
                assert ctx.get(dut.first) == held[0]
            add = len(held) < depth and generator.random() < 0.6
            take = bool(held) and generator.random() < 0.5
            value = generator.randrange(256)
            ctx.set(dut.add, add)
            ctx.set(dut.last, value)
            ctx.set(dut.take, take)
            await ctx.tick()
            if take:
                held.pop(0)
            if add:
                held.append(value)

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    ("platform", "answer"),
    [
        (None, True),
        ("LFE5U-85F", True),
        ("GW1NR-9C", True),
        ("iCE40UP5K", False),
        ("CCGM1A1", False),
    ],
)
def test_a_device_without_lut_ram_is_known(platform, answer):
    assert has_lut_ram(platform and SimpleNamespace(device=platform)) == answer


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_queue_has_a_power_of_two_of_places(depth):
    with pytest.raises(ValueError, match=f"The depth must be a power of two, not {depth}"):
        PointerQueue(8, depth=depth)


@pytest.mark.parametrize("reserve", [-1, 4])
def test_a_queue_must_hold_its_reserve(reserve):
    with pytest.raises(ValueError, match=f"A queue of 4 cannot hold a reserve of {reserve}"):
        PointerQueue(8, depth=4, reserve=reserve)
