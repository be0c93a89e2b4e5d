# SPDX-License-Identifier: Apache-2.0
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator
import pytest

from hdl.streams.registers import SteadyQueue, SteadyRegister, steady
from tests.halves import half
from tests.hdl.stream_bench import StreamBench

PAYLOADS = [(7 * n + 3) % 256 for n in range(300)]


class SteadyPipeline(wiring.Component):
    """So many stages, and the queue behind them."""

    def __init__(self, stages, *, gated):
        self.stages = stages
        self.gated = gated
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = SteadyQueue(8, stages=self.stages)
        i = steady(8).create()
        m.d.comb += [
            i.payload.eq(self.i.payload),
            i.valid.eq(self.i.valid & self.i.ready),
            self.i.ready.eq(queue.room),
        ]
        for n in range(self.stages):
            m.submodules[f"stage_{n}"] = register = SteadyRegister(8, gated=self.gated)
            connect(m, i, register.i)
            i = register.o
        connect(m, i, queue.i)
        connect(m, queue.o, flipped(self.o))
        return m


def drive(stages, *, gated=False, begin=0, stalls=0.0, seed=0):
    """Send :data:`PAYLOADS` through; return what came out, and when all went in and came out."""
    dut = SteadyPipeline(stages, gated=gated)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=seed)
    sent, taken = [], []
    bench.source(dut.i, PAYLOADS, stamps=sent)
    received = bench.sink(dut.o, len(PAYLOADS), stamps=taken, begin=begin)
    bench.run()
    return received, sent, taken


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("stages", "stalls", "gated"),
    half([1, 2, 3, 4, 5, 6, 9], [0.2, 0.5, 0.9], [False, True], of=3),
)
def test_nothing_is_lost_wherever_it_stalls(stages, stalls, gated):
    received, _, _ = drive(stages, gated=gated, stalls=stalls, seed=stages)
    assert received == PAYLOADS


@pytest.mark.few(3)
@pytest.mark.parametrize(("stages", "gated"), half([1, 2, 3, 4, 5, 6, 9], [False, True]))
def test_latency_and_a_payload_per_cycle(stages, gated):
    assert SteadyRegister(8, gated=gated).latency == 1
    latency = stages + SteadyQueue(8, stages=stages).latency
    received, sent, taken = drive(stages, gated=gated)
    assert received == PAYLOADS
    assert sent == list(range(sent[0], sent[0] + len(PAYLOADS)))
    assert taken == [cycle + latency for cycle in sent]


@pytest.mark.few(3)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5, 6, 9])
def test_after_a_long_stop_the_output_never_waits(stages):
    received, sent, taken = drive(stages, begin=100)
    assert received == PAYLOADS
    assert sent[0] < 10, "it fills while the output stops"
    assert taken == list(range(taken[0], taken[0] + len(PAYLOADS)))


@pytest.mark.parametrize(("stages", "depth"), [(1, 8), (2, 8), (5, 16), (6, 16), (7, 32)])
def test_depth_is_what_bridges_the_pipeline(stages, depth):
    assert SteadyQueue(8, stages=stages).depth == depth


def test_a_gated_payload_stays_until_the_next_one():
    dut = SteadyRegister(8, gated=True)
    sent = [(1, 5), (0, 6), (0, 7), (1, 8), (1, 9), (0, 1)]
    shown = []

    async def bench(ctx):
        for valid, payload in sent:
            ctx.set(dut.i.valid, valid)
            ctx.set(dut.i.payload, payload)
            await ctx.tick()
            shown.append((ctx.get(dut.o.valid), ctx.get(dut.o.payload)))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run_until(1e-6 * (len(sent) + 2))
    assert shown == [(1, 5), (0, 5), (0, 5), (1, 8), (1, 9), (0, 9)]
