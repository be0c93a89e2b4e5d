# SPDX-License-Identifier: Apache-2.0
"""Proofs about pipelines without back-pressure, and about the credits in front of them."""

from amaranth import *

from hdl.streams import registers as delays
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import SteadyQueue, SteadyRegister

from .proof import proof
from .stream_rules import keeps_order, take

__all__ = []


@proof(
    "steady-register",
    says="what comes in a cycle leaves in the next one",
    component="SteadyRegister, 2 bits",
    depth=6,
    induction=2,
    mutate=(SteadyRegister,),
)
def steady_register(bench):
    """A payload that enters leaves in the next cycle."""
    dut = bench.add(SteadyRegister(2))
    valid, value = bench.any(1, "valid"), bench.any(2, "value")
    bench.set(dut.i.valid, valid)
    bench.set(dut.i.payload, value)
    bench.claim("payload leaves a cycle later, and only then", dut.o.valid == bench.past(valid))
    bench.claim("payload is as it was", ~dut.o.valid | (dut.o.payload == bench.past(value)))
    bench.cover("payload leaves", dut.o.valid & (dut.o.payload == 3))


#: Stages of the pipeline in front of the queue whose credits are proved.
STAGES = 2


@proof(
    "steady-queue",
    says="credits never exceed the room, and whoever enters by them loses nothing",
    component=f"SteadyQueue behind {STAGES} SteadyRegisters",
    depth=20,
    induction=2,
    mutate=(SteadyQueue, PointerQueue),
)
def steady_queue(bench):
    """A pipeline of two stages that is entered while there is room, and the queue behind it."""
    dut = bench.add(SteadyQueue(2, stages=STAGES))
    wanted, value = bench.any(1, "wanted"), bench.any(2, "value")
    enter = bench.wire(wanted & dut.room, "enter")
    stages = [(enter, value)]
    for n in range(STAGES):
        stage = bench.add(SteadyRegister(2), f"stage_{n}")
        bench.set(stage.i.valid, stages[-1][0])
        bench.set(stage.i.payload, stages[-1][1])
        stages.append((stage.o.valid, stage.o.payload))
    bench.set(dut.i.valid, stages[-1][0])
    bench.set(dut.i.payload, stages[-1][1])
    got = take(bench, dut.o, "output")
    most = dut.depth + STAGES
    queue = keeps_order(bench, "pipeline", enter, value, got, dut.o.payload, most=most)
    level = bench.inside(dut, "queue").level
    under_way = sum(valid for valid, _ in stages[1:])
    bench.claim("queue has room for all that is under way", level + under_way <= dut.depth)
    bench.claim("queue offers a payload whenever it holds any", dut.o.valid == (level != 0))
    bench.claim(
        "room says whether one more than those under way would have fitted a cycle ago",
        dut.room == (bench.past(level) < dut.depth - STAGES - 1),
    )
    pointers(bench, dut, queue, level, stages)
    bench.cover("queue is so full that it stops the pipeline", ~dut.room)
    bench.cover("pipeline goes on after a stop", enter & bench.past(~dut.room))


def pointers(bench, dut, queue, level, stages):
    """Claim the states of the queue and the pipeline, as invariants."""
    inner = bench.inside(dut, "queue")
    head, tail, second, reserved = (
        bench.inside(inner, name) for name in ("head", "tail", "second", "reserved")
    )
    width = len(head)
    under_way = sum(valid for valid, _ in stages[1:])
    bench.invariant((head - tail)[:width] == level)
    bench.invariant(second == (tail + 1)[:width])
    bench.invariant(reserved == (head + dut.stages + 1)[:width])
    bench.invariant(inner.filled == (level != 0))
    bench.invariant(queue.level == level + under_way)
    # While `room` is high, the pipeline holds at most what entered while `room` could be seen.
    bench.invariant(~dut.room | (level + under_way + 1 <= dut.depth))
    row = bench.row(bench.inside(inner, "rows"), (tail + queue.before)[: width - 1])
    bench.invariant(~queue.watching | (queue.before >= level) | (row == queue.watched))
    ahead = level
    for valid, payload in reversed(stages[1:]):
        here = queue.watching & valid & (queue.before == ahead)
        bench.invariant(~here | (payload == queue.watched))
        ahead = ahead + valid


@proof(
    "delayed",
    says="what goes beside a memory is that of a cycle ago",
    component="delayed, a flag and a value",
    depth=5,
    induction=2,
    mutate=(delays.delayed,),
)
def delay(bench):
    """Flags and values, delayed by one cycle."""
    flag, value = bench.any(1, "flag"), bench.any(2, "value")
    m = Module()
    later = delays.delayed(m, {"flag": flag, "value": value}, "later", flags=("flag",))
    bench.add(m)
    bench.claim("flags are those of a cycle ago", later["flag"] == bench.past(flag))
    bench.claim("values are those of a cycle ago", later["value"] == bench.past(value))
    bench.cover("value arrives", later["flag"] & (later["value"] == 2))
