# SPDX-License-Identifier: Apache-2.0
"""Reachable states of stream registers and queues, in which inductions start."""

from amaranth import *

__all__ = ["early_states", "entries_states", "held_in", "register_states"]


def register_states(bench, register):
    """Claim the states of a stream register as invariants; return the number of payloads in it."""
    write, read = (bench.inside(register, name) for name in ("write", "read"))
    full = ~register.i.ready
    bench.invariant(register.o.valid | ~full)
    bench.invariant((write ^ read) == (register.o.valid ^ full))
    return register.o.valid + full


def held_in(bench, register):
    """Return the contents of a stream register as (valid, payload), the next to leave first."""
    payloads, read = (bench.inside(register, name) for name in ("payloads", "read"))
    flat = [Value.cast(payload) for payload in payloads]
    return [
        (register.o.valid, bench.view(register.o.payload, Mux(read, *flat[::-1]))),
        (~register.i.ready, bench.view(register.o.payload, Mux(read, *flat))),
    ]


def early_states(bench, register, *, flags=None):
    """Claim the states of a register's early fields, as invariants.

    Parameters
    ----------
    flags : function or None
        Function of a payload that returns its early fields, which are zero while the register is
        empty. By default, the early fields are those of the payload, and arbitrary while it is
        empty.
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


def entries_states(bench, watch, entries):
    """Claim that the elements inside are in these places, the next to leave first.

    Parameters
    ----------
    watch : Watch
    entries : list of (Value, Value)
        Places, as (valid, element).
    """
    before = C(0, 1)
    for held, value in entries:
        here = watch.watching & held & (watch.before == before)
        bench.invariant(~here | (Value.cast(value) == watch.watched))
        before = bench.wire(before + held, "place")
    bench.invariant(watch.level == before)
