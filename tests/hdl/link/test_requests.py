# SPDX-License-Identifier: Apache-2.0
from hdl.link.receiving import Requests
from hdl.link.settings import Kind
from sim.link.simulation import simulate


def test_a_session_that_begins_meanwhile_withdraws_nothing_and_gets_no_answer():
    dut = Requests()

    async def ask(ctx, number, address):
        ctx.set(dut.arrived, 1)
        ctx.set(dut.kind, Kind.READ.value)
        ctx.set(dut.number, number)
        ctx.set(dut.length, 2)
        ctx.set(dut.fields, address)
        await ctx.tick()
        ctx.set(dut.arrived, 0)

    async def finish(ctx, answer):
        assert ctx.get(dut.registers.read)
        ctx.set(dut.registers.done, 1)
        ctx.set(dut.registers.answer, answer)
        await ctx.tick()
        ctx.set(dut.registers.done, 0)

    async def bench(ctx):
        await ask(ctx, 0, 0x10)
        ctx.set(dut.begin, 1)
        await ctx.tick()
        ctx.set(dut.begin, 0)
        assert ctx.get(dut.registers.read)
        assert ctx.get(dut.registers.address) == 0x10
        await ask(ctx, 0, 0x20)  # dropped, as one is executed
        assert ctx.get(dut.registers.address) == 0x10
        await finish(ctx, 5)
        assert not ctx.get(dut.respond)
        assert not ctx.get(dut.registers.read)
        await ask(ctx, 0, 0x20)
        await finish(ctx, 6)
        assert ctx.get(dut.respond)
        assert (ctx.get(dut.last), ctx.get(dut.answer)) == (0, 6)

    simulate(dut, bench, deadline=50)
