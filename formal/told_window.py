# SPDX-License-Identifier: Apache-2.0
"""Proof about a region that is told when to store and when to expire, whatever it is told."""

from amaranth import *

from hdl.window.tracker import Occupancy, WindowTracker

from .proof import proof
from .small import window_parameters

__all__ = ["TIMED"]

#: Mutants of a tracker that concern time.
TIMED = dict.fromkeys(
    (
        "begin_count.eq(self.begin_count)", "begin_time.eq(self.begin_time)", "timed.eq",
        "If(begin_count) -> If(1)",
    ),
    "of use with timestamps only: window-timed",
)  # fmt: skip

#: Requests that may come in any cycle.
REQUESTS = ("begin_count", "empty", "forget")


@proof(
    "window-told",
    says="a region stores and expires as it is told, reports what finds no room, and expires"
    " nothing where nothing is",
    component="WindowTracker, 1 core, 2 keys, any turns",
    depth=12,
    induction=2,
    mutate=(WindowTracker, Occupancy),
    spared=TIMED,
)
def told_window(bench):
    """One region with room for two keys. Turns come in any order, as after an overflow."""
    parameters = window_parameters(cores=1)
    known = ~bench.first()
    dut = bench.add(WindowTracker(parameters))
    inputs = {name: bench.any(1, name) for name in (*REQUESTS, "store", "mine", "displaces")}
    restart = bench.past(inputs["begin_count"] | inputs["empty"], init=1)
    forgotten = bench.past(inputs["forget"])
    store, mine, displaces = (inputs[name] for name in ("store", "mine", "displaces"))
    bench.assume(~(store & (restart | forgotten)))
    bench.drive(dut, **inputs)

    most = parameters.window.sub_window
    held, overflow = bench.register(range(most + 1), "held"), bench.register(1, "overflow")
    leaves = store & displaces & (held != 0)
    comes = store & mine & ((held != most) | leaves)
    bench.next(
        held.eq(Mux(restart, 0, held + comes - leaves)),
        overflow.eq(~forgotten & (overflow | (store & mine & ~comes))),
    )
    bench.claim("a key is stored if there is room, or the oldest key leaves", dut.stored == comes)
    bench.claim("a key that finds no room is an overflow, until it is forgotten",
                dut.overflow == overflow)  # fmt: skip
    bench.claim("without timestamps nothing has to settle", dut.settled)
    for name, moves, end in (("head", comes, dut.span.head), ("tail", leaves, dut.span.tail)):
        count = bench.register(len(Value.cast(end)), name)
        bench.next(count.eq(Mux(restart, 0, count + moves)))
        bench.claim(
            f"{name} counts the keys that {'came' if name == 'head' else 'left'}",
            ~known | (Value.cast(end) == count),
        )
    occupancy_states(bench, dut, held, known, most)
    bench.invariant(bench.inside(dut, "empty") == restart)
    bench.invariant(bench.inside(dut, "forget") == forgotten)
    bench.cover("a full region overflows", overflow & (held == most))
    bench.cover("a region without keys is told to expire one", known & store & displaces & ~leaves)


def occupancy_states(bench, dut, held, known, most):
    """Claim the states of the region's :class:`Occupancy`, as invariants."""
    occupancy = bench.inside(dut, "occupancy")
    inner, came, left = (bench.inside(occupancy, name) for name in ("held", "came", "left"))
    bench.invariant(held <= most)
    bench.invariant(~known | ((inner + came - left) == held))
    bench.invariant(~known | ~(came & left))
    bench.invariant(~known | (occupancy.full == (held == most)))
    bench.invariant(~known | (occupancy.vacant == (held == 0)))
