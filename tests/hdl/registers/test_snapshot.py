# SPDX-License-Identifier: Apache-2.0
from amaranth.sim import Simulator
import pytest

from hdl.counters import counters_of
from hdl.parameters import JoinParameters
from hdl.registers.file import CounterSnapshot
from hdl.registers.table import shell_table

PLAIN = JoinParameters.of(cores=1, sub_window=8)
PARITY = PLAIN.with_(failure_cycles=10_000, parity=True)


def simulate(parameters, process):
    dut = CounterSnapshot(parameters)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    state = {"base": 1 << 40}

    async def counters(ctx):
        """Counters that rise by their own addresses plus one in every cycle."""
        asked = [0, 0]
        async for *_, address in ctx.tick().sample(dut.counter_addr):
            asked = [address, asked[0]]
            state["base"] += 1
            ctx.set(dut.counter_data, (asked[1] + 1) * state["base"])

    async def bench(ctx):
        await process(ctx, dut)

    simulator.add_testbench(counters, background=True)
    simulator.add_testbench(bench)
    simulator.run()


async def read(ctx, dut, name):
    registers = shell_table(dut.parameters)
    value = 0
    for n, half in enumerate(("LO", "HI")):
        ctx.set(dut.address, registers[f"{name.upper()}_{half}"].address)
        await ctx.tick()
        value |= ctx.get(dut.data) << 32 * n
    return value


async def wait(ctx, dut):
    for cycle in range(100):
        if ctx.get(dut.ready):
            return cycle
        await ctx.tick()
    raise TimeoutError


@pytest.mark.parametrize("parameters", [PLAIN, PARITY], ids=["plain", "parity"])
def test_both_halves_are_of_one_moment(parameters):
    async def process(ctx, dut):
        await wait(ctx, dut)
        for _ in range(2):
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            assert await wait(ctx, dut) + 1 == dut.latency
            found = {}
            for counter in counters_of(parameters):
                value = await read(ctx, dut, counter.name)
                base, rest = divmod(value, counter.address + 1)
                assert rest == 0
                found[counter.address] = base
            first = min(found.values())
            assert found == {address: first + address for address in found}
            assert found[0] > 1 << 40

    simulate(parameters, process)


def test_copies_are_made_when_reset_ends():
    async def process(ctx, dut):
        ctx.set(dut.resetting, 1)
        await ctx.tick().repeat(40)
        assert not ctx.get(dut.ready)
        ctx.set(dut.resetting, 0)
        assert await wait(ctx, dut) == dut.latency - 1
        assert await read(ctx, dut, "cycles") > 1 << 40
        ctx.set(dut.resetting, 1)
        assert not ctx.get(dut.ready)
        await ctx.tick()
        ctx.set(dut.resetting, 0)
        assert not ctx.get(dut.ready)

    simulate(PLAIN, process)
