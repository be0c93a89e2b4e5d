# SPDX-License-Identifier: Apache-2.0
"""In which states stream registers and queues are: what inductions begin with."""

from amaranth import *

__all__ = ["early_states", "entries_states", "held_in", "queue_entries", "register_states"]


def register_states(bench, register):
    """Say which states a stream register has; return how many payloads it holds."""
    write, read = (bench.inside(register, name) for name in ("write", "read"))
    full = ~register.i.ready
    bench.invariant(register.o.valid | ~full)
    bench.invariant((write ^ read) == (register.o.valid ^ full))
    return register.o.valid + full


def held_in(bench, register):
    """Return what a stream register holds, the next one first: whether it is there, and which."""
    payloads, read = (bench.inside(register, name) for name in ("payloads", "read"))
    flat = [Value.cast(payload) for payload in payloads]
    return [
        (register.o.valid, bench.view(register.o.payload, Mux(read, *flat[::-1]))),
        (~register.i.ready, bench.view(register.o.payload, Mux(read, *flat))),
    ]


def early_states(bench, register, *, flags=None):
    """Say what the early fields of a register are.

    Parameters
    ----------
    flags : function or None
        From a payload to what its early fields have to be, all zero while there is none; by
        default they are what the payload says, and anything while there is none.
    """
    output, spare = (bench.inside(register, name) for name in ("output", "spare"))
    (valid, first), (full, second) = held_in(bench, register)

    def fields(payload):
        if flags is not None:
            return flags(payload)
        return Cat(Value.cast(payload[name]) for name in register.early)

    bench.invariant(~valid | (output == fields(first)))
    bench.invariant(~full | (spare == fields(second)))
    if flags is not None:
        bench.invariant(valid | (output == 0))


def queue_entries(bench, queue):
    """Say which states a :class:`hdl.streams.pointer_queue.PointerQueue` has.

    Returns
    -------
    list of (Value, Value)
        What it holds, the next one first: whether it is there, and which.
    """
    head, tail, second, reserved = (
        bench.inside(queue, name) for name in ("head", "tail", "second", "reserved")
    )
    bits = len(head)
    bench.invariant(queue.level <= queue.depth)
    bench.invariant(second == (tail + 1)[:bits])
    bench.invariant(reserved == (head + queue.reserve)[:bits])
    bench.invariant(queue.filled == (queue.level != 0))
    rows = bench.inside(queue, "rows")
    return [(queue.level > n, bench.row(rows, (tail + n)[: bits - 1])) for n in range(queue.depth)]


def entries_states(bench, watch, entries):
    """Say that what is inside stands in these places, the next one to leave first.

    Parameters
    ----------
    watch : Watch
    entries : list of (Value, Value)
        Whether there is an element, and which.
    """
    before = C(0, 1)
    for held, value in entries:
        here = watch.watching & held & (watch.before == before)
        bench.invariant(~here | (Value.cast(value) == watch.watched))
        before = bench.wire(before + held, "place")
    bench.invariant(watch.level == before)
