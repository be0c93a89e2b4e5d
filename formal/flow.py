# SPDX-License-Identifier: Apache-2.0
"""Proof of what a core of the handshake join counts of a side's tuples."""

from amaranth import *

from bench.handshake.windows import FlowWindow

from .proof import proof
from .small import chain_parameters

__all__ = []


@proof(
    "flow-window",
    says="the tuples under way in a core are counted, and each is told by its number",
    component="FlowWindow, 32 rows, numbers of 8 bits",
    depth=8,
    induction=2,
    mutate=(FlowWindow,),
)
def flow_window(bench):
    """Tuples arrive while there are rows; each leaves before or when it is released."""
    parameters = chain_parameters("handshake")
    dut = bench.add(FlowWindow(parameters))
    events = [bench.any(1, name) for name in ("arrives", "leaves", "releases")]
    arrives, leaves, releases = events
    restart, bits = bench.any(1, "restart"), len(dut.head)
    for name, event in zip(("arrives", "leaves", "releases"), events, strict=True):
        bench.set(getattr(dut, name), event)
    bench.set(dut.restart, restart)
    most = range(parameters.ring_rows + 1)
    held, rows = bench.register(most, "held"), bench.register(most, "rows")
    bench.assume(~restart | ~Cat(events).any())
    bench.assume(~leaves | (held != 0))
    bench.assume(~releases | (rows > held) | leaves)
    bench.assume(~arrives | (rows != parameters.ring_rows))
    bench.next(
        held.eq(Mux(restart, 0, held + arrives - leaves)),
        rows.eq(Mux(restart, 0, rows + arrives - releases)),
    )
    bench.invariant(held <= rows)
    bench.invariant(rows <= parameters.ring_rows)
    bench.claim("as many are held as have come and have not left", dut.held == held)
    bench.claim("as many rows are in use as have come and were not released", dut.rows == rows)
    bench.claim(
        "one can be read that was held a cycle ago and has not left",
        dut.readable == bench.past((held != 0) & ~((held == 1) & leaves)),
    )
    bench.claim("numbers begin at zero behind a restart", ~bench.past(restart) | (dut.head == 0))
    keeps_numbers(bench, dut, events, (held, rows), bits)
    bench.cover("a tuple has left that is not released yet", rows == held + 2)
    bench.cover("one comes, one leaves and one is released at once", Cat(events).all())


def keeps_numbers(bench, dut, events, inside, bits):
    """Claim that a tuple chosen when it comes is told by its number when it leaves, and at last.

    Parameters
    ----------
    events : list of Signal
        A tuple arrives, one leaves, one is released.
    inside : list of Signal
        Tuples that are held, and rows in use.
    bits : int
        Bits of a number.
    """
    arrives, *goes = events
    number = bench.register(bits, "number")
    choose = bench.wire(arrives & bench.any(1, "choose"))
    bench.next(number.eq(Mux(choose, dut.head, number)))
    for told, gone, count, words in zip(
        (dut.following, dut.tail), goes, inside, ("leaves", "is released"), strict=True
    ):
        watching = bench.register(1, "watching")
        before = bench.register(count.shape(), "before")
        now = bench.wire(watching & gone & (before == 0))
        bench.next(
            watching.eq((choose | (watching & ~now)) & ~dut.restart),
            before.eq(Mux(choose, count - gone, before - gone)),
        )
        bench.claim(f"the tuple that {words} has the number told", ~now | (told == number))
        bench.invariant((dut.head - told)[:bits] == count)
        bench.invariant(~watching | ((told + before)[:bits] == number))
        bench.invariant(~watching | (before < count))
