# SPDX-License-Identifier: Apache-2.0
"""Proofs about stream registers, forks and queues."""

from types import SimpleNamespace

from amaranth import *
from amaranth.lib import data, stream

from hdl.streams import queues, registers
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import StreamFork, StreamRegister

from .proof import proof
from .stream_rules import keeps_order, offer, take

__all__ = []


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
    register_states(bench, dut, queue)
    bench.claim("register offers a payload whenever it holds any", dut.o.valid == (queue.level > 0))
    bench.claim("register takes a payload while it has room", dut.i.ready == (queue.level < 2))
    bench.cover("register is full", queue.level == 2)


def register_states(bench, dut, queue):
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
    register_states(bench, dut, queue)
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
