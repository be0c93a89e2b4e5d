# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.trees.order_queue import OrderQueue
from tests.halves import half

ENTRIES = [1 + n % 3 for n in range(200)]


def run(dut, entries, *, stalls=0.0, wait=0):
    """Push entries as the ingress does: they see room, wait for a decision, pass a register.

    Those that wait are in a register of two. Entries are taken from cycle ``wait`` on. Returns
    those taken, and the cycles of pushes and takes.
    """
    generator = random.Random(7)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    taken, pushed_at, taken_at = [], [], []

    async def bench(ctx):
        coming, waiting, decided = list(entries), [], []
        for cycle in range(8 * len(entries) + wait + 20):
            ctx.set(dut.push, bool(decided))
            if decided:
                pushed_at.append(cycle)
                ctx.set(dut.i, decided.pop())
            # While nothing is taken, words gather in front of the decision every now and then.
            decides = generator.random() >= (stalls if cycle >= wait else 0.3)
            sees_room = coming and ctx.get(dut.room) and len(waiting) < 2
            if waiting and decides:
                decided.append(waiting.pop(0))
            if sees_room:
                waiting.append(coming.pop(0))
            ready = cycle >= wait and generator.random() >= stalls
            ctx.set(dut.o.ready, ready)
            if ready and ctx.get(dut.o.valid):
                taken.append(ctx.get(dut.o.payload))
                taken_at.append(cycle)
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    return taken, pushed_at, taken_at


@pytest.mark.parametrize(("depth", "stalls", "wait"), half([8, 16, 64], [0.0, 0.5], [0, 15, 150]))
def test_no_entry_is_lost_though_pushes_are_not_answered(depth, stalls, wait):
    dut = OrderQueue(2, depth=depth)
    taken, pushed_at, _ = run(dut, ENTRIES, stalls=stalls, wait=wait)
    assert taken == ENTRIES
    early = [cycle for cycle in pushed_at if cycle < wait]
    assert len(early) <= depth + 4  # and what its registers hold


def test_latency_and_one_entry_per_cycle():
    dut = OrderQueue(2, depth=16)
    assert dut.latency == 4
    taken, pushed_at, taken_at = run(dut, ENTRIES)
    assert taken == ENTRIES
    assert taken_at == [cycle + dut.latency for cycle in pushed_at]
    assert pushed_at[-1] - pushed_at[0] == len(ENTRIES) - 1


def test_a_queue_smaller_than_the_entries_in_flight_is_refused():
    with pytest.raises(ValueError, match="A queue of 6 entries cannot hold 6 in flight"):
        OrderQueue(2, depth=6)


@pytest.mark.parametrize("per_word", [1, 2])
def test_words_that_were_accepted_may_bring_several_entries_each(per_word):
    """Room ends early enough for both words that wait, and for what is on its way."""
    dut = OrderQueue(3, depth=16, per_word=per_word)
    assert dut.in_flight == 6 + 2 * (per_word - 1)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    entries = [1 + n % 7 for n in range(60)]
    taken = []

    async def bench(ctx):
        coming, waiting, accepted = list(entries), [], []
        for cycle in range(400):
            ctx.set(dut.push, bool(waiting))
            if waiting:
                ctx.set(dut.i, waiting.pop(0))
            if not waiting and accepted and (cycle > 60 or len(taken) + 60 > cycle):
                waiting = accepted.pop(0)
            if coming and len(accepted) < OrderQueue.WORDS and ctx.get(dut.room):
                accepted.append([coming.pop(0) for _ in range(per_word)])
            ctx.set(dut.o.ready, cycle > 60)
            if cycle > 60 and ctx.get(dut.o.valid):
                taken.append(ctx.get(dut.o.payload))
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    assert taken == entries
