# SPDX-License-Identifier: Apache-2.0
"""Proofs about what streams are built of."""

from amaranth import *
from amaranth.lib import data, stream

from hdl.streams import delay as delays
from hdl.streams import registers
from hdl.streams.fork import StreamFork
from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.streams.steady import SteadyQueue, SteadyRegister

from .bench import Bench
from .proof import Proof
from .stream_rules import keeps_order, offer, take

__all__ = ["PROOFS"]


def stream_register():
    """Two payloads at the most, from register to register."""
    bench = Bench()
    dut = bench.add(StreamRegister(3))
    put, got = offer(bench, dut.i), take(bench, dut.o, "output")
    queue = keeps_order(bench, "register", put, dut.i.payload, got, dut.o.payload, most=2)
    register_states(bench, dut, queue)
    bench.claim("register offers a payload whenever it holds any", dut.o.valid == (queue.level > 0))
    bench.claim("register takes a payload while it has room", dut.i.ready == (queue.level < 2))
    bench.cover("register is full", queue.level == 2)
    return bench


def register_states(bench, dut, queue):
    """Say in which states a stream register is that holds what a queue says."""
    payloads = bench.inside(dut, "payloads")
    write, read = (bench.inside(dut, name) for name in ("write", "read"))
    place = read ^ queue.before[0]
    bench.invariant((write ^ read) == queue.level[0])
    bench.invariant(~queue.watching | (Mux(place, payloads[1], payloads[0]) == queue.watched))


def early_register():
    """Early fields show what the payload at the output has; zero flags need no valid."""
    bench = Bench()
    shape = data.StructLayout({"flag": 1, "rest": 2})
    dut = bench.add(StreamRegister(shape, early=["flag"]))
    put, got = offer(bench, dut.i), take(bench, dut.o, "output")
    bench.assume(dut.i.valid | ~dut.i.payload.flag)
    queue = keeps_order(bench, "register", put, dut.i.payload, got, dut.o.payload, most=2)
    register_states(bench, dut, queue)
    bench.invariant(dut.o.valid == (queue.level > 0))
    bench.invariant(dut.i.ready == (queue.level < 2))
    early, spare = (bench.inside(dut, name) for name in ("output", "spare"))
    bench.claim("early flag is zero while there is no payload", dut.o.valid | ~dut.o.payload.flag)
    watched = queue.watched[0]
    bench.invariant(~queue.watching | (queue.before != 0) | (early == watched))
    bench.invariant(~queue.watching | (queue.before == 0) | (spare == watched))
    bench.cover("early flag is shown", dut.o.payload.flag & (queue.level == 2))
    return bench


def fork():
    """Three consumers that take when they like."""
    bench = Bench()
    dut = bench.add(StreamFork(2, outputs=3))
    put = offer(bench, dut.i)
    taken = bench.inside(dut, "taken")
    for n, o in enumerate(dut.o):
        got = take(bench, o, f"output {n}")
        # What is at hand counts as inside, unless this output has taken it.
        given = bench.register(1, "given")  # this output has taken what is at hand
        bench.next(given.eq((given | got) & dut.i.valid & ~dut.i.ready))
        bench.claim(f"output {n} never gets a payload twice", ~(given & got))
        bench.claim(f"output {n} has got what the input is done with", ~put | given | got)
        bench.claim(f"output {n} shows the payload at hand", ~got | (o.payload == dut.i.payload))
        bench.claim(
            f"output {n} is offered what it has not taken", o.valid == (dut.i.valid & ~given)
        )
        bench.invariant(taken[n] == given)
    idle = bench.wire(dut.i.valid & ~dut.i.ready & Cat(o.ready for o in dut.o).all())
    bench.claim("input is done with as soon as all outputs take", ~idle)
    bench.cover("outputs take at different times", put & taken.any())
    return bench


def pointer_queue():
    """A queue of four with one place in reserve, used as its contract says."""
    bench = Bench()
    dut = bench.add(PointerQueue(2, depth=4, reserve=1))
    add, take_it = bench.any(1, "add"), bench.any(1, "take")
    bench.assume(~take_it | dut.filled)
    bench.assume(~add | (dut.level < 4))
    value = bench.any(2, "value")
    bench.set(dut.add, add)
    bench.set(dut.take, take_it)
    bench.set(dut.last, value)
    queue = keeps_order(bench, "queue", add, value, take_it, dut.first, most=4)
    level = queue.level
    bench.claim("filled says that there are any", dut.filled == (level != 0))
    bench.claim("level says how many there are", dut.level == level)
    bench.claim(
        "room says that there was room for more than the reserve",
        dut.room == (bench.past(level) < 3),
    )
    # The pointers: level apart, with the others behind and ahead of them.
    head, tail, second, reserved = (
        bench.inside(dut, name) for name in ("head", "tail", "second", "reserved")
    )
    bench.invariant((head - tail)[:3] == level)
    bench.invariant(second == (tail + 1)[:3])
    bench.invariant(reserved == (head + 1)[:3])
    row = bench.row(bench.inside(dut, "rows"), (tail + queue.before)[:2])
    bench.invariant(~queue.watching | (row == queue.watched))
    bench.cover("queue is full", level == 4)
    return bench


def steady_register():
    """What comes in a cycle leaves in the next one."""
    bench = Bench()
    dut = bench.add(SteadyRegister(2))
    valid, value = bench.any(1, "valid"), bench.any(2, "value")
    bench.set(dut.i.valid, valid)
    bench.set(dut.i.payload, value)
    bench.claim("payload leaves a cycle later, and only then", dut.o.valid == bench.past(valid))
    bench.claim("payload is as it was", ~dut.o.valid | (dut.o.payload == bench.past(value)))
    bench.cover("payload leaves", dut.o.valid & (dut.o.payload == 3))
    return bench


#: Stages of the pipeline in front of the queue whose credits are proved.
STAGES = 2


def steady_queue():
    """A pipeline of two stages that enters while there is room, and the queue behind it."""
    bench = Bench()
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
    return bench


def pointers(bench, dut, queue, level, stages):
    """Say in which states queue and pipeline are."""
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
    # While `room` is up, as many may be under way as were let in while it could be seen.
    bench.invariant(~dut.room | (level + under_way + 1 <= dut.depth))
    row = bench.row(bench.inside(inner, "rows"), (tail + queue.before)[: width - 1])
    bench.invariant(~queue.watching | (queue.before >= level) | (row == queue.watched))
    ahead = level
    for valid, payload in reversed(stages[1:]):
        here = queue.watching & valid & (queue.before == ahead)
        bench.invariant(~here | (payload == queue.watched))
        ahead = ahead + valid


def flagged():
    """A register with two flags that its consumer decides by."""
    bench = Bench()
    shape = data.StructLayout({"a": 1, "b": 1})
    i = stream.Signature(shape).create(path=("i",))
    m = Module()
    o = registers.flagged_register(
        m,
        "held",
        i,
        flags=lambda i: {"a": i.valid & i.payload.a, "both": i.payload.as_value().all()},
    )
    bench.add(m)
    put, got = offer(bench, i), take(bench, o, "output")
    queue = keeps_order(bench, "register", put, i.payload, got, o.payload.word, most=2)
    bench.claim(
        "flags are those of the payload shown",
        ~o.valid
        | ((o.payload.a == o.payload.word.a) & (o.payload.both == o.payload.word.as_value().all())),
    )
    bench.claim("a flag is zero while there is no payload", o.valid | ~o.payload.a)
    bench.cover("both flags are shown", o.valid & o.payload.both & (queue.level == 2))
    return bench


def delay():
    """Flags and values of a cycle ago."""
    bench = Bench()
    flag, value = bench.any(1, "flag"), bench.any(2, "value")
    m = Module()
    later = delays.delayed(m, {"flag": flag, "value": value}, "later", flags=("flag",))
    bench.add(m)
    bench.claim("flags are those of a cycle ago", later["flag"] == bench.past(flag))
    bench.claim("values are those of a cycle ago", later["value"] == bench.past(value))
    bench.cover("value arrives", later["flag"] & (later["value"] == 2))
    return bench


PROOFS = [
    Proof(
        name="stream-register",
        says="a register loses, repeats and reorders nothing, and stops only when it is full",
        component="StreamRegister, 3 bits",
        build=stream_register,
        depth=10,
        induction=2,
        mutate=(StreamRegister,),
    ),
    Proof(
        name="stream-register-early",
        says="early fields are those of the payload shown, and zero where flags are while empty",
        component="StreamRegister, an early flag",
        build=early_register,
        depth=10,
        induction=2,
        mutate=(StreamRegister,),
        spared={
            "without Cat((Value.cast(self.o.payload": "the payload at the output has them too, later in "
            "the cycle: early is a matter of timing",
        },
    ),
    Proof(
        name="flagged-register",
        says="flags that come beside a payload are its own",
        component="flagged_register, two flags",
        build=flagged,
        depth=10,
        mutate=(registers.flagged_register,),
    ),
    Proof(
        name="stream-fork",
        says="every output gets every payload once, whatever the others do",
        component="StreamFork, 3 outputs",
        build=fork,
        depth=8,
        induction=2,
        mutate=(StreamFork,),
    ),
    Proof(
        name="pointer-queue",
        says="a queue loses, repeats and reorders nothing while it is used as it asks to be",
        component="PointerQueue, 4 places, reserve 1",
        build=pointer_queue,
        depth=12,
        induction=2,
        mutate=(PointerQueue,),
    ),
    Proof(
        name="steady-register",
        says="what comes in a cycle leaves in the next one",
        component="SteadyRegister, 2 bits",
        build=steady_register,
        depth=6,
        induction=2,
        mutate=(SteadyRegister,),
    ),
    Proof(
        name="steady-queue",
        says="credits never exceed the room, and whoever enters by them loses nothing",
        component=f"SteadyQueue behind {STAGES} SteadyRegisters",
        build=steady_queue,
        depth=20,
        induction=2,
        mutate=(SteadyQueue, PointerQueue),
    ),
    Proof(
        name="delayed",
        says="what goes beside a memory is that of a cycle ago",
        component="delayed, a flag and a value",
        build=delay,
        depth=5,
        induction=2,
        mutate=(delays.delayed,),
    ),
]
