# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
import random

import pytest

from hdl.shells.axi_streams import AxiLiteSlave
from tests.hdl.shells.axi_bench import AxiBench
from tests.hdl.shells.lite_master import OKAY, SLVERR, LiteMaster

#: Addresses from here on do not exist in the memory that stands for registers.
END = 0x40


class Memory:
    """Registers behind the bus, which take their time, and check what is asked of them."""

    def __init__(self, bench, bus, slowest):
        self.bench, self.bus, self.slowest = bench, bus, slowest
        self.values = [0] * (END // 4)

    async def serve(self, ctx):
        bus = self.bus
        while True:
            *_, read, write = await ctx.tick().sample(bus.read, bus.write)
            assert not (read and write)
            if not (read or write):
                continue
            request = [ctx.get(x) for x in (bus.read, bus.write, bus.address, bus.data, bus.strobe)]
            for _ in range(self.bench.random.randint(0, self.slowest)):
                await ctx.tick()
                again = [
                    ctx.get(x) for x in (bus.read, bus.write, bus.address, bus.data, bus.strobe)
                ]
                assert again == request, "a request changed"
            _, _, address, data, strobe = request
            assert address % 4 == 0
            exists = address < END
            if write and exists:
                mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
                old = self.values[address // 4]
                self.values[address // 4] = old & ~mask | data & mask
            ctx.set(bus.done, 1)
            ctx.set(bus.refused, not exists)
            ctx.set(bus.answer, self.values[address // 4] if read and exists else 0)
            await ctx.tick()
            ctx.set(bus.done, 0)
            ctx.set(bus.refused, 0)


@pytest.mark.few(2)
@pytest.mark.parametrize(("pauses", "slowest"), [(0.0, 0), (0.5, 3), (0.8, 0)])
def test_every_request_is_answered_once_with_what_the_registers_say(pauses, slowest):
    dut = AxiLiteSlave()
    bench = AxiBench(dut, pauses=pauses, seed=slowest, deadline=8000)
    memory = Memory(bench, dut.bus, slowest)
    master = LiteMaster(bench, dut.axi)
    rng = random.Random(7)
    # Writes go to the lower half and reads come from the upper half, which stays zero: their order
    # is not fixed. The rest of the addresses does not exist.
    writes = [
        (rng.choice([*range(END // 2), 0x100]), rng.getrandbits(32), rng.randrange(16))
        for _ in range(60)
    ]
    reads = [rng.choice([*range(END // 2, END), 0x200]) for _ in range(60)]
    found = {}

    async def responses(ctx):
        found["b"] = await master.responses(ctx, len(writes))
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.axi.bvalid)

    async def answers(ctx):
        found["r"] = await master.answers(ctx, len(reads))
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.axi.rvalid)

    bench.run(
        lambda ctx: master.addresses(ctx, [address for address, _, _ in writes]),
        lambda ctx: master.words(ctx, [rest for _, *rest in writes]),
        lambda ctx: master.requests(ctx, reads),
        responses,
        answers,
        background=[memory.serve],
    )
    expected = [0] * (END // 4)
    for address, data, strobe in writes:
        if address < END:
            mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
            expected[address // 4] = expected[address // 4] & ~mask | data & mask
    assert memory.values == expected
    assert found["b"] == [OKAY if address < END else SLVERR for address, _, _ in writes]
    assert found["r"] == [[0, OKAY if address < END else SLVERR] for address in reads]


@pytest.mark.parametrize("data_first", [False, True])
def test_address_and_data_come_in_any_order(data_first):
    dut = AxiLiteSlave()
    bench = AxiBench(dut)
    memory = Memory(bench, dut.bus, 0)
    master = LiteMaster(bench, dut.axi)

    async def program(ctx):
        for n in range(4):
            if data_first:
                await master.words(ctx, [(n + 5, 15)])
                await ctx.tick().repeat(n + 1)
                await master.addresses(ctx, [4 * n])
            else:
                await master.addresses(ctx, [4 * n])
                await ctx.tick().repeat(n + 1)
                await master.words(ctx, [(n + 5, 15)])
            assert await master.responses(ctx, 1) == [OKAY]
        assert memory.values[:4] == [5, 6, 7, 8]
        assert await master.read(ctx, 8) == (7, False)
        assert await master.read(ctx, END) == (0, True)
        assert await master.write(ctx, END, 1) is True

    bench.run(program, background=[memory.serve])


def test_a_read_and_a_write_take_turns():
    dut = AxiLiteSlave()
    bench = AxiBench(dut)
    order = []

    async def serve(ctx):
        async for *_, read, write in ctx.tick().sample(dut.bus.read, dut.bus.write):
            if ctx.get(dut.bus.done):
                ctx.set(dut.bus.done, 0)
            elif read or write:
                order.append("read" if read else "write")
                ctx.set(dut.bus.done, 1)

    async def program(ctx):
        axi = dut.axi
        for signal in (axi.awvalid, axi.wvalid, axi.arvalid, axi.bready, axi.rready):
            ctx.set(signal, 1)
        await ctx.tick().repeat(60)

    bench.run(program, background=[serve])
    # An access is seen twice: in the cycle before its `done`, and in that of `done`, which is taken
    # out above. So every entry is an access.
    assert len(order) > 10
    assert all(before != after for before, after in pairwise(order)), order


@pytest.mark.parametrize("is_write", [False, True])
def test_latency_is_as_stated(is_write):
    dut = AxiLiteSlave()
    bench = AxiBench(dut)

    async def serve(ctx):
        """Answer in the cycle after the request, as a register file does."""
        async for *_, read, write, done in ctx.tick().sample(
            dut.bus.read, dut.bus.write, dut.bus.done
        ):
            ctx.set(dut.bus.done, (read | write) & ~done)

    async def program(ctx):
        axi = dut.axi
        valid = axi.bvalid if is_write else axi.rvalid
        for signal in (axi.awvalid, axi.wvalid) if is_write else (axi.arvalid,):
            ctx.set(signal, 1)
        await ctx.tick().repeat(dut.latency - 1)
        assert not ctx.get(valid)
        await ctx.tick()
        assert ctx.get(valid)

    bench.run(program, background=[serve])
