# SPDX-License-Identifier: Apache-2.0
"""Proofs about stream registers, forks, queues, steady pipelines and distribution trees."""

from types import SimpleNamespace

from amaranth import *
from amaranth.lib import data, stream

from hdl.streams import queues, registers
from hdl.streams import registers as delays
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import SteadyQueue, SteadyRegister, StreamFork, StreamRegister
from hdl.trees.distribution import DistributionNode, DistributionTree

from .proof import proof
from .stream_rules import (
    answers_within,
    early_states,
    entries_states,
    held_in,
    keeps_order,
    offer,
    register_states,
    take,
)

__all__ = []

# Proofs about stream registers, forks and queues.


@proof(
    "stream-register",
    says="a register loses, repeats and reorders nothing, and stops only when it is full",
    component="StreamRegister, 3 bits",
    depth=10,
    induction=2,
    mutate=(StreamRegister,),
)
def stream_register(bench):
    """A register holds at most two payloads."""
    dut = bench.add(StreamRegister(3))
    put, got = offer(bench, dut.i), take(bench, dut.o, "output")
    queue = keeps_order(bench, "register", put, dut.i.payload, got, dut.o.payload, most=2)
    queued_states(bench, dut, queue)
    bench.claim("register offers a payload whenever it holds any", dut.o.valid == (queue.level > 0))
    bench.claim("register takes a payload while it has room", dut.i.ready == (queue.level < 2))
    bench.cover("register is full", queue.level == 2)


def queued_states(bench, dut, queue):
    """Claim the states of a stream register with the contents of ``queue``, as invariants."""
    payloads = bench.inside(dut, "payloads")
    write, read = (bench.inside(dut, name) for name in ("write", "read"))
    place = read ^ queue.before[0]
    bench.invariant((write ^ read) == queue.level[0])
    bench.invariant(~queue.watching | (Mux(place, payloads[1], payloads[0]) == queue.watched))


@proof(
    "stream-register-early",
    says="early fields are those of the payload shown, and zero where flags are while empty",
    component="StreamRegister, an early flag",
    depth=10,
    induction=2,
    mutate=(StreamRegister,),
    spared={
        "without Cat((Value.cast(self.o.payload": "the payload itself has them too, but later",
        "init=1 -> init=0": "stream-register",
    },
)
def early_register(bench):
    """Early fields are those of the payload at the output; a zero flag needs no ``valid``."""
    shape = data.StructLayout({"flag": 1, "rest": 2})
    dut = bench.add(StreamRegister(shape, early=["flag"]))
    put, got = offer(bench, dut.i), take(bench, dut.o, "output")
    bench.assume(dut.i.valid | ~dut.i.payload.flag)
    queue = keeps_order(bench, "register", put, dut.i.payload, got, dut.o.payload, most=2)
    queued_states(bench, dut, queue)
    bench.invariant(dut.o.valid == (queue.level > 0))
    bench.invariant(dut.i.ready == (queue.level < 2))
    early, spare = (bench.inside(dut, name) for name in ("output", "spare"))
    bench.claim("early flag is zero while there is no payload", dut.o.valid | ~dut.o.payload.flag)
    watched = queue.watched[0]
    bench.invariant(~queue.watching | (queue.before != 0) | (early == watched))
    bench.invariant(~queue.watching | (queue.before == 0) | (spare == watched))
    bench.cover("early flag is shown", dut.o.payload.flag & (queue.level == 2))


@proof(
    "stream-fork",
    says="every output gets every payload once, whatever the others do",
    component="StreamFork, 3 outputs",
    depth=8,
    induction=2,
    mutate=(StreamFork,),
)
def fork(bench):
    """Three consumers that are ready at any time."""
    dut = bench.add(StreamFork(2, outputs=3))
    put = offer(bench, dut.i)
    taken = bench.inside(dut, "taken")
    for n, o in enumerate(dut.o):
        got = take(bench, o, f"output {n}")
        # The current payload counts as inside unless this output has taken it.
        given = bench.register(1, "given")  # this output has taken the current payload
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


def pointer_queue(bench, platform=None):
    """A queue of four with one place in reserve, used according to its contract."""
    dut = bench.add(PointerQueue(2, depth=4, reserve=1), platform=platform)
    add, take_it = bench.any(1, "add"), bench.any(1, "take")
    bench.assume(~take_it | dut.filled)
    bench.assume(~add | (dut.level < 4))
    value = bench.any(2, "value")
    bench.drive(dut, add=add, take=take_it, last=value)
    queue = keeps_order(bench, "queue", add, value, take_it, dut.first, most=4)
    level = queue.level
    bench.claim("filled says that there are any", dut.filled == (level != 0))
    bench.claim("level says how many there are", dut.level == level)
    bench.claim(
        "room says that there was room for more than the reserve",
        dut.room == (bench.past(level) < 3),
    )
    # The pointers differ by `level`; the others are one ahead of the tail and of the head.
    head, tail, second, reserved = (
        bench.inside(dut, name) for name in ("head", "tail", "second", "reserved")
    )
    bench.invariant((head - tail)[:3] == level)
    bench.invariant(second == (tail + 1)[:3])
    bench.invariant(reserved == (head + 1)[:3])
    row = bench.row(bench.inside(dut, "rows"), (tail + queue.before)[:2])
    bench.invariant(~queue.watching | (row == queue.watched))
    bench.cover("queue is full", level == 4)
    if not queues.has_lut_ram(platform):
        bench.invariant(~dut.filled | (dut.first == bench.row(bench.inside(dut, "rows"), tail[:2])))


@proof(
    "flagged-register",
    says="flags that come beside a payload are its own",
    component="flagged_register, two flags",
    depth=10,
    mutate=(registers.flagged_register,),
)
def flagged(bench):
    """A register with two flags by which its consumer decides."""
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


proof(
    "pointer-queue",
    says="a queue loses, repeats and reorders nothing while it is used as it asks to be",
    component="PointerQueue, 4 places, reserve 1",
    depth=12,
    induction=2,
    mutate=(PointerQueue,),
)(pointer_queue)
proof(
    "pointer-queue-by-clock",
    says="… and its oldest entry is there as early where memories are read by the clock",
    component="PointerQueue of an iCE40, 4 places, reserve 1",
    depth=12,
    induction=2,
    mutate=(queues.next_tail,),
    given={"platform": SimpleNamespace(device="iCE40HX8K")},
)(pointer_queue)


# Proofs about pipelines without back-pressure, and about the credits in front of them.


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


# Proofs about the distribution tree.

WORD = data.StructLayout({"early": 1, "rest": 1})


@proof(
    "distribution-node",
    says="every child gets every word once, in order, however slow the others are",
    component="DistributionNode, 2 children",
    depth=12,
    induction=3,
    mutate=(DistributionNode,),
)
def distribution_node(bench):
    """A node with two children that are ready at any time."""
    dut = bench.add(DistributionNode(WORD, fan_out=2, early=["early"]))
    put = offer(bench, dut.i)
    chains = [[child, bench.inside(dut, "arriving")] for child in bench.inside(dut, "registers")]
    deliver(bench, dut, put, chains)


@proof(
    "distribution-tree",
    says="every leaf gets every word once, in order",
    component="DistributionTree, 3 leaves, arity 2",
    depth=14,
    induction=3,
    mutate=(DistributionTree, DistributionNode),
    spared={
        "node.reset": "reset-distribution-tree",
        "without words.ready": "no word leaves any more: distribution-node",
    },
)
def distribution_tree(bench):
    """A tree of two levels over three leaves."""
    dut = bench.add(DistributionTree(WORD, leaves=3, fan_out=2, early=["early"]))
    put = offer(bench, dut.i)
    nodes = bench.inside(dut, "m").submodules
    root = nodes["node_1_0"]
    below = [(child, leaf // 2) for leaf, child in enumerate(children(bench, nodes, 3))]
    chains = [
        [
            child,
            bench.inside(nodes[f"node_0_{n}"], "arriving"),
            bench.inside(root, "registers")[n],
            bench.inside(root, "arriving"),
        ]
        for child, n in below
    ]
    deliver(bench, dut, put, chains)


def children(bench, nodes, leaves):
    """Return the registers in front of the leaves of a tree of arity two."""
    return [bench.inside(nodes[f"node_0_{n // 2}"], "registers")[n % 2] for n in range(leaves)]


def deliver(bench, dut, put, chains):
    """Claim that every output gets every word once, in order, through a chain of registers."""
    known = {}
    for n, (o, chain) in enumerate(zip(dut.o, chains, strict=True)):
        got = take(bench, o, f"child {n}")
        queue = keeps_order(
            bench, f"way to child {n}", put, dut.i.payload, got, o.payload, most=2 * len(chain)
        )
        for register in chain:
            if id(register) not in known:
                known[id(register)] = register_states(bench, register)
        early_states(bench, chain[0])
        held = [entry for register in chain for entry in held_in(bench, register)]
        entries_states(bench, queue, held)
        if len(chain) == 2:
            all_take = Cat(own.ready for own in dut.o).all()
            stuck = all_take & ~o.valid & (queue.level != 0)
            answers_within(bench, f"child {n} gets what is on its way while all take", stuck, 2)
        bench.cover(
            f"child {n} is ahead of another one", got & put & ~Cat(o.ready for o in dut.o).all()
        )
