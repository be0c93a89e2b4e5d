# SPDX-License-Identifier: Apache-2.0
from random import Random

from amaranth import *
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
import pytest

from bench.figures.crossing import (
    ADDRESSES,
    MISSING,
    PERIODS,
    Access,
    CrossingRun,
    Reset,
    random_resets,
)
from hdl.registers.file import RegisterFile
from hdl.registers.table import Field, Register, RegisterTable
from hdl.shells.bus_crossing import BusCrossing

KEPT = Field(name="KEPT", offset=0, bits=32, access="rw", description=".")
TABLE = RegisterTable(
    "t", tuple(Register(name=f"R{n}", address=4 * n, description=".", fields=(KEPT,))
               for n in range(4)),
)  # fmt: skip


class Bench:
    """A crossing in front of a register file; two clocks."""

    def __init__(self, bus_period, sync_period, *, patience=200):
        self.dut = BusCrossing(patience=patience)
        self.file = RegisterFile(TABLE)
        m = Module()
        self.domains = {name: ClockDomain(name) for name in ("bus", "sync")}
        m.domains += self.domains.values()
        m.submodules.dut, m.submodules.file = self.dut, self.file
        connect(m, self.dut.o, self.file.bus)
        self.simulator = Simulator(m)
        self.simulator.add_clock(bus_period, domain="bus")
        if sync_period:
            self.simulator.add_clock(sync_period, domain="sync")

    def run(self, process):
        self.simulator.add_testbench(process)
        self.simulator.run()

    async def access(self, ctx, *, address, data=None, strobe=15):
        """Return answer, refusal and cycles of ``bus`` of an access."""
        bus = self.dut.i
        ctx.set(bus.address, address)
        ctx.set(bus.strobe, strobe)
        ctx.set(bus.data, 0 if data is None else data)
        ctx.set(bus.write if data is not None else bus.read, 1)
        cycles = 0
        while True:
            *_, done, answer, refused = await ctx.tick("bus").sample(
                bus.done, bus.answer, bus.refused
            )
            cycles += 1
            assert cycles < 1000
            if done:
                break
        ctx.set(bus.read, 0)
        ctx.set(bus.write, 0)
        return answer, refused, cycles


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("bus", "sync"),
    [
        (10, 3),
        (3, 10),
        *(pytest.param(*s, marks=pytest.mark.long) for s in [(10, 10), (10, 37), (7, 6)]),
    ],
)
def test_accesses_pass_between_any_clocks(bus, sync):
    bench = Bench(bus * 1e-9, sync * 1e-9)
    random = Random(bus)

    async def process(ctx):
        kept = [0] * 4
        for _ in range(60):
            place = random.randrange(6)
            value = random.getrandbits(32)
            if random.random() < 0.5:
                strobe = random.randrange(16)
                _, refused, _ = await bench.access(
                    ctx, address=4 * place, data=value, strobe=strobe
                )
                assert refused == (place > 3)
                if place < 4:
                    mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
                    kept[place] = kept[place] & ~mask | value & mask
            else:
                answer, refused, _ = await bench.access(ctx, address=4 * place)
                assert refused == (place > 3)
                assert refused or answer == kept[place]
            await ctx.tick("bus").repeat(random.randrange(1, 4))

    bench.run(process)


def test_an_access_takes_as_long_as_stated():
    bench = Bench(1e-8, 1e-8)

    async def process(ctx):
        await ctx.tick("bus").repeat(5)
        *_, cycles = await bench.access(ctx, address=0)
        stated = bench.dut.latency + bench.dut.bus_latency
        # `done` is high in the last of these cycles.
        assert stated <= cycles - 1 <= stated + 2

    bench.run(process)


def test_an_access_is_refused_when_the_other_clock_stands_still():
    bench = Bench(1e-8, None, patience=50)

    async def process(ctx):
        for _ in range(3):
            _, refused, cycles = await bench.access(ctx, address=0)
            assert refused
            assert 50 < cycles < 56
            await ctx.tick("bus")

    bench.run(process)


def test_an_access_waits_for_the_end_of_a_reset_of_the_registers():
    bench = Bench(1e-8, 3e-9)

    async def process(ctx):
        ctx.set(bench.domains["sync"].rst, 1)
        bus = bench.dut.i
        ctx.set(bus.address, 4)
        ctx.set(bus.data, 7)
        ctx.set(bus.strobe, 15)
        ctx.set(bus.write, 1)
        await ctx.tick("bus").repeat(20)
        assert not ctx.get(bus.done)
        ctx.set(bench.domains["sync"].rst, 0)
        await bench.access(ctx, address=4, data=7)
        assert ctx.get(bench.file.r1_kept) == 7

    bench.run(process)


#: Periods of both clocks in nanoseconds; all but two are left out by `make test`.
RATIOS = [
    pytest.param(*periods, marks=pytest.mark.long if n > 1 else ())
    for n, periods in enumerate(PERIODS)
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("bus", "sync"), RATIOS)
def test_a_reset_of_either_side_at_any_cycle_of_any_access_falsifies_nothing(bus, sync):
    random = Random(bus)
    spans = {"bus": 8 + int(8 * sync / bus), "sync": 8 + int(6 * bus / sync)}
    resets = [
        Reset(
            Access(address, write, random.getrandbits(32), strobe=random.choice((15, 6))),
            (domain,),
            wait,
            1 if (wait + write) % 2 else 7,
        )
        for address in (ADDRESSES[1], ADDRESSES[-1], MISSING)
        for write in (False, True)
        for domain, span in spans.items()
        for wait in range(span)
    ]
    run = CrossingRun(resets, bus=bus, sync=sync)
    assert run.run() == []
    assert run.counts["resets"] == len(resets)


@pytest.mark.few(1)
@pytest.mark.parametrize(("bus", "sync"), RATIOS)
def test_random_resets_tear_lose_and_falsify_nothing(bus, sync):
    run = CrossingRun(random_resets(Random(sync), 60), bus=bus, sync=sync, seed=1)
    assert run.run() == []
    assert run.counts["dropped"] < run.counts["served"]


def test_a_reset_of_the_bus_forgets_an_access_that_is_under_way():
    for begun in range(1, 16):
        bench = Bench(4e-9, 5e-9)

        async def process(ctx, bench=bench, begun=begun):
            bus = bench.dut.i
            ctx.set(bus.address, 4)
            ctx.set(bus.read, 1)
            await ctx.tick("bus").repeat(begun)
            ctx.set(bus.read, 0)
            ctx.set(bench.domains["bus"].rst, 1)
            await ctx.tick("bus")
            ctx.set(bench.domains["bus"].rst, 0)
            await bench.access(ctx, address=8, data=0xABC)
            answer, refused, _ = await bench.access(ctx, address=8)
            assert (answer, refused) == (0xABC, 0)

        bench.run(process)
