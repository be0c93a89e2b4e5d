# SPDX-License-Identifier: Apache-2.0
from amaranth.lib import data
import pytest

from hdl.streams.registers import StreamRegister
from tests.hdl.stream_bench import DeadlineError, StreamBench

PAYLOADS = [(7 * n + 3) % 256 for n in range(200)]


@pytest.mark.parametrize("stalls", [0.0, 0.3, 0.8])
def test_register_passes_every_payload_in_order(stalls):
    dut = StreamRegister(8)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=1)
    bench.source(dut.i, PAYLOADS)
    received = bench.sink(dut.o, len(PAYLOADS))
    bench.run()
    assert received == PAYLOADS


def test_register_has_its_latency_and_one_payload_per_cycle():
    dut = StreamRegister(8)
    bench = StreamBench(dut, deadline=1_000)
    sent, taken = [], []
    bench.source(dut.i, PAYLOADS, stamps=sent)
    bench.sink(dut.o, len(PAYLOADS), stamps=taken)
    bench.run()
    assert {t - s for s, t in zip(sent, taken, strict=True)} == {dut.latency}
    assert sent[-1] - sent[0] == len(PAYLOADS) - 1


@pytest.mark.parametrize("stalls", [0.0, 0.3, 0.8])
def test_early_fields_come_with_their_payload(stalls):
    layout = data.StructLayout({"kind": 2, "rest": 4, "flag": 2})
    dut = StreamRegister(layout, early=["kind", "flag"])
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=2)
    sent, taken = [], []
    bench.source(dut.i, PAYLOADS, stamps=sent)
    received = bench.sink(dut.o, len(PAYLOADS), stamps=taken)
    bench.run()
    assert received == PAYLOADS
    if not stalls:
        assert {t - s for s, t in zip(sent, taken, strict=True)} == {dut.latency}


def test_a_register_holds_two_payloads():
    dut = StreamRegister(8)
    bench = StreamBench(dut, deadline=1_000)
    sent = []
    bench.source(dut.i, PAYLOADS[:3], stamps=sent)

    async def late(ctx):
        await ctx.tick().repeat(20)
        ctx.set(dut.o.ready, 1)

    bench.simulator.add_testbench(late, background=True)
    bench.run()
    assert sent[1] - sent[0] == 1
    assert sent[2] - sent[0] >= 20


def test_the_bench_ends_a_simulation_that_hangs():
    dut = StreamRegister(8)
    bench = StreamBench(dut, deadline=50)
    bench.sink(dut.o, 1)
    with pytest.raises(DeadlineError, match="1 sources or sinks still wait after 50 cycles"):
        bench.run()
