# SPDX-License-Identifier: Apache-2.0
"""Proofs about the parts of a window: turns of a core, the ends of the span, a count of keys."""

from amaranth import *

from hdl.window.tracker import MovingSpan, Occupancy, Turn

from .proof import proof
from .small import window_parameters
from .window_model import next_turn, turn_states

__all__ = []


@proof(
    "turn",
    says="cores that count for themselves have one turn after the other, one at a time",
    component="Turn, 3 cores",
    depth=10,
    induction=2,
    mutate=(Turn,),
)
def one_core_each(bench):
    """Three cores that count for themselves."""
    parameters = window_parameters()
    cores = parameters.cores
    known = ~bench.first()
    restart, advance = bench.any(1, "restart"), bench.any(1, "advance")
    bench.assume(known | restart)
    turn = bench.register(range(cores), "turn")
    bench.next(turn.eq(Mux(restart, 0, Mux(advance, next_turn(turn, cores), turn))))
    bench.invariant(turn < cores)
    duts = [bench.add(Turn(parameters), f"core_{n}") for n in range(cores)]
    for n, dut in enumerate(duts):
        bench.drive(dut, position=n, restart=restart, advance=advance)
        bench.claim(
            f"core {n} has its turn after those before it", ~known | (dut.mine == (turn == n))
        )
        after = next_turn(turn, cores) == n
        bench.claim(f"core {n} knows whether its turn is the next", ~known | (dut.then == after))
        turn_states(bench, dut, turn, C(n, 2), known, cores)
    mine = Cat(dut.mine for dut in duts)
    bench.claim(
        "one core has its turn, never two", ~known | (mine.any() & ((mine & (mine - 1)) == 0))
    )
    bench.cover("the turn comes round", bench.past(duts[-1].mine & advance) & duts[0].mine)


@proof(
    "moving-span",
    says="the ends of the span equal counts of keys that came and left",
    component="MovingSpan, 2 lanes",
    depth=12,
    induction=2,
    mutate=(MovingSpan,),
    spared={"pointer.lane + 1 -> pointer.lane - 1": "of two lanes, the next is the one before"},
)
def moving_span(bench):
    """Two lanes; keys are stored and leave at any time."""
    parameters = window_parameters(cores=2, sub_window=4, lanes=2)
    dut = bench.add(MovingSpan(parameters))
    known = ~bench.first()
    restart, comes, leaves = (bench.any(1, name) for name in ("restart", "comes", "leaves"))
    bench.assume(known | restart)
    bench.drive(dut, restart=restart, comes=comes, leaves=leaves)
    for name, moves, end in (("head", comes, dut.span.head), ("tail", leaves, dut.span.tail)):
        count = bench.register(len(Value.cast(end)), name)
        bench.next(count.eq(Mux(restart, 0, count + moves)))
        bench.claim(
            f"{name} is where as many keys lead as {'came' if name == 'head' else 'left'}",
            ~known | (Cat(end.lane, end.row) == count),
        )
    rows = len(dut.second)
    bench.claim(
        "second is the row after the first", ~known | (dut.second == (dut.span.tail.row + 1)[:rows])
    )
    after = (dut.span.head.row + (dut.span.head.lane != 0))[:rows]
    bench.claim("stop is the row after the last that holds any", ~known | (dut.stop == after))
    bench.cover("span begins inside a row", known & dut.span.tail.lane & (dut.span.head.row == 2))


@proof(
    "occupancy",
    says="full and vacant equal what a count of the keys says",
    component="Occupancy, 3 keys",
    depth=10,
    induction=2,
    mutate=(Occupancy,),
)
def occupancy(bench):
    """Up to three keys."""
    parameters = window_parameters(cores=1, sub_window=3)
    dut = bench.add(Occupancy(parameters))
    known = ~bench.first()
    restart, comes, leaves = (bench.any(1, name) for name in ("restart", "comes", "leaves"))
    held = bench.register(range(5), "held")
    bench.next(held.eq(Mux(restart, 0, held + comes - leaves)))
    bench.assume(known | restart)
    bench.assume(~leaves | (held != 0))
    bench.assume(~comes | leaves | (held != 3))
    bench.drive(dut, restart=restart, comes=comes, leaves=leaves)
    bench.claim(
        "full says that there are as many keys as there may be", ~known | (dut.full == (held == 3))
    )
    bench.claim("vacant says that there is none", ~known | (dut.vacant == (held == 0)))
    bench.invariant(held <= 3)
    inner, came, left = (bench.inside(dut, name) for name in ("held", "came", "left"))
    bench.invariant(~known | ((inner + came - left) == held))
    bench.invariant(~known | ~(came & left))
    bench.cover("full after it was vacant", dut.full & (held == 3) & bench.past(comes))
    bench.cover(
        "vacant after it was full", known & dut.vacant & bench.past(bench.past(dut.full & known))
    )
