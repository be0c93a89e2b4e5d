# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.order_queue import OrderQueue

ENTRIES = [1 + n % 3 for n in range(200)]


def run(dut, entries, *, stalls=0.0, wait=0):
    """Push entries as the ingress does, two cycles after room was seen; take them from ``wait`` on.

    Returns the entries taken, and the cycles of pushes and takes.
    """
    generator = random.Random(7)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    taken, pushed_at, taken_at = [], [], []

    async def bench(ctx):
        waiting = list(entries)
        announced = False  # the register between the decision and `push`
        for cycle in range(8 * len(entries) + wait + 20):
            ctx.set(dut.push, announced)
            if announced:
                pushed_at.append(cycle)
                ctx.set(dut.i, waiting.pop(0))
            announced = bool(waiting and ctx.get(dut.room) and generator.random() >= stalls)
            ready = cycle >= wait and generator.random() >= stalls
            ctx.set(dut.o.ready, ready)
            if ready and ctx.get(dut.o.valid):
                taken.append(ctx.get(dut.o.payload))
                taken_at.append(cycle)
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    return taken, pushed_at, taken_at


@pytest.mark.parametrize(
    ("depth", "pipelined"), [(4, True), (4, False), (5, True), (16, True), (16, False)]
)
@pytest.mark.parametrize("stalls", [0.0, 0.5])
@pytest.mark.parametrize("wait", [0, 50])
def test_no_entry_is_lost_though_pushes_are_not_answered(depth, pipelined, stalls, wait):
    dut = OrderQueue(2, depth=depth, pipelined=pipelined)
    taken, pushed_at, _ = run(dut, ENTRIES, stalls=stalls, wait=wait)
    assert taken == ENTRIES
    early = [cycle for cycle in pushed_at if cycle < wait]
    assert len(early) <= depth + 3  # and what its output holds


@pytest.mark.parametrize("pipelined", [True, False])
def test_latency_and_one_entry_per_cycle(pipelined):
    dut = OrderQueue(2, depth=16, pipelined=pipelined)
    taken, pushed_at, taken_at = run(dut, ENTRIES)
    assert taken == ENTRIES
    assert taken_at == [cycle + dut.latency for cycle in pushed_at]
    assert pushed_at[-1] - pushed_at[0] == len(ENTRIES) - 1


def test_a_queue_smaller_than_the_entries_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 3 entries cannot hold 3 in flight"):
        OrderQueue(2, depth=3)
