# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

import pytest

from hdl.scalegate.gate import TimestampMerge
from hdl.scalegate.words import GateKind, gate_word
from tests.hdl.stream_bench import StreamBench

LAYOUT = gate_word(6, 4, sources=2)
TUPLE, WATERMARK, LEAVE, BARRIER = GateKind


def word(kind, time=0, late=0, source=0):
    return LAYOUT.const({"kind": kind, "time": time, "late": late, "source": source})


def merge(ports, count, *, stalls=0.0, stamps=None, sent=None, **options):
    """Return (kind, time, source) of the words that leave."""
    dut = TimestampMerge(LAYOUT, **options)
    bench = StreamBench(dut, deadline=500, stalls=stalls, seed=count)
    for n, (i, words) in enumerate(zip(dut.i, ports, strict=True)):
        bench.source(i, [word(*some, source=n) for some in words], stamps=sent)
    received = bench.sink(dut.o, count, stamps=stamps)
    bench.run(extra_cycles=10)
    found = [LAYOUT.from_bits(bits) for bits in received]
    return [(GateKind(one.kind), one.time, one.source) for one in found]


def tuples(found):
    return [(time, source) for kind, time, source in found if kind == TUPLE]


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_the_lesser_time_goes_first_and_port_0_on_a_tie(stalls):
    ports = [[(TUPLE, 1), (TUPLE, 4), (LEAVE,)], [(TUPLE, 1), (TUPLE, 2), (TUPLE, 4), (LEAVE,)]]
    found = merge(ports, 6, stalls=stalls)
    assert tuples(found) == [(1, 0), (1, 1), (2, 1), (4, 0), (4, 1)]
    assert found[-1][0] == LEAVE


def test_a_tuple_waits_for_the_watermark_of_the_other_port():
    # Port 0 may still send 3, which would go before the 3 of port 1.
    assert tuples(merge([[(WATERMARK, 3)], [(TUPLE, 2), (TUPLE, 3)]], 1)) == [(2, 1)]
    assert tuples(merge([[(WATERMARK, 4)], [(TUPLE, 3)]], 1)) == [(3, 1)]
    assert tuples(merge([[(TUPLE, 3)], [(WATERMARK, 3)]], 1)) == [(3, 0)]


def test_the_output_gets_the_lesser_watermark_once():
    found = merge([[(WATERMARK, 9)], [(WATERMARK, 5), (WATERMARK, 5, 1), (WATERMARK, 7)]], 2)
    assert found[-1] == (WATERMARK, 7, found[-1][2])
    times = [time for _, time, _ in found]
    assert times == sorted(set(times))


def test_an_absent_port_holds_nobody_back():
    found = merge([[(TUPLE, 3), (TUPLE, 8)], []], 2, present=(True, False))
    assert tuples(found) == [(3, 0), (8, 0)]


def test_a_barrier_waits_for_that_of_the_other_port_and_times_begin_again():
    ports = [[(TUPLE, 7), (BARRIER,), (TUPLE, 1)], [(BARRIER,), (TUPLE, 2)]]
    found = merge(ports, 3)
    assert [kind for kind, *_ in found if kind != WATERMARK] == [TUPLE, BARRIER, TUPLE]
    assert tuples(found) == [(7, 0), (1, 0)]


@pytest.mark.parametrize("bit", [None, 0, 15, 16, 39])
def test_barriers_with_different_bodies_are_told_two_cycles_after_they_have_become_one(bit):
    layout = gate_word(6, 40, sources=2)
    dut = TimestampMerge(layout)
    bench = StreamBench(dut, deadline=100)
    differences = [0, 0 if bit is None else 1 << bit, 0]
    for n, i in enumerate(dut.i):
        bodies = [body ^ (n and difference) for body, difference in enumerate(differences)]
        bench.source(i, [layout.const({"kind": BARRIER, "body": body}) for body in bodies])
    taken, told = [], []

    async def look(ctx):
        async for _, _, leaves, differ in ctx.tick().sample(dut.o.valid & dut.o.ready, dut.differ):
            taken.append(leaves)
            told.append(differ)

    bench.simulator.add_testbench(look, background=True)
    bench.sink(dut.o, 3)
    bench.run(extra_cycles=5)
    leaves = [cycle for cycle, leaves in enumerate(taken) if leaves]
    assert len(leaves) == 3
    differ = [cycle for cycle, differ in enumerate(told) if differ]
    assert differ == ([] if bit is None else [leaves[1] + 2])


def test_a_merge_has_its_latency_and_one_tuple_per_cycle():
    ports = [[(TUPLE, time) for time in range(n, 60, 2)] for n in range(2)]
    sent, taken = [], []
    found = merge(ports, 59, sent=sent, stamps=taken)
    assert tuples(found) == [(time, time % 2) for time in range(59)]
    assert taken[0] - min(sent) == TimestampMerge(LAYOUT).latency == 2
    assert {b - a for a, b in pairwise(taken)} == {1}
