# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.streams.registers import StreamFork
from tests.hdl.stream_bench import StreamBench

PAYLOADS = list(range(100))


@pytest.mark.few(4)
@pytest.mark.parametrize("outputs", [1, 2, 3, 4])
@pytest.mark.parametrize("stalls", [0.0, 0.3, 0.6])
def test_every_output_gets_every_payload_once(outputs, stalls):
    dut = StreamFork(8, outputs=outputs)
    bench = StreamBench(dut, deadline=5_000, stalls=stalls, seed=outputs)
    bench.source(dut.i, PAYLOADS)
    received = [bench.sink(o, len(PAYLOADS)) for o in dut.o]
    bench.run()
    assert received == [PAYLOADS] * outputs


def test_no_latency_and_a_payload_per_cycle():
    dut = StreamFork(8, outputs=2)
    assert dut.latency == 0
    bench = StreamBench(dut, deadline=1_000)
    sent, taken = [], [[], []]
    bench.source(dut.i, PAYLOADS, stamps=sent)
    for o, stamps in zip(dut.o, taken, strict=True):
        bench.sink(o, len(PAYLOADS), stamps=stamps)
    bench.run()
    assert sent == list(range(sent[0], sent[0] + len(PAYLOADS)))
    assert taken == [sent, sent]


def test_an_output_need_not_wait_for_another():
    dut = StreamFork(8, outputs=2)
    bench = StreamBench(dut, deadline=200)
    sent, taken = [], []
    bench.source(dut.i, PAYLOADS[:2], stamps=sent)
    bench.sink(dut.o[0], 2, stamps=taken)
    bench.sink(dut.o[1], 2, begin=20)
    bench.run()
    assert taken[0] < 5
    assert taken[1] > sent[0] > 15


def test_outputs_are_needed():
    with pytest.raises(ValueError, match="at least one output, not 0"):
        StreamFork(8, outputs=0)
