# SPDX-License-Identifier: Apache-2.0
"""Proofs about the window: which tuples a region holds."""

from amaranth import *

from hdl.window.moving_span import MovingSpan
from hdl.window.occupancy import Occupancy
from hdl.window.tracker import WindowTracker
from hdl.window.turn import Turn

from .bench import Bench
from .proof import Proof
from .small import window_parameters
from .window_model import Window, next_turn, turn_states, turns_left

__all__ = ["PROOFS"]


def one_core_each():
    """Three cores that count for themselves."""
    parameters = window_parameters()
    cores = parameters.cores
    bench = Bench()
    known = ~bench.first()
    restart, advance = bench.any(1, "restart"), bench.any(1, "advance")
    bench.assume(known | restart)
    turn = bench.register(range(cores), "turn")
    bench.next(turn.eq(Mux(restart, 0, Mux(advance, next_turn(turn, cores), turn))))
    bench.invariant(turn < cores)
    duts = [bench.add(Turn(parameters), f"core_{n}") for n in range(cores)]
    for n, dut in enumerate(duts):
        bench.set(dut.position, n)
        bench.set(dut.restart, restart)
        bench.set(dut.advance, advance)
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
    return bench


def moving_span():
    """Two lanes; keys are stored and leave at any time."""
    parameters = window_parameters(cores=2, sub_window=4, lanes=2)
    bench = Bench()
    dut = bench.add(MovingSpan(parameters))
    known = ~bench.first()
    restart, comes, leaves = (bench.any(1, name) for name in ("restart", "comes", "leaves"))
    bench.assume(known | restart)
    for name, value in (("restart", restart), ("comes", comes), ("leaves", leaves)):
        bench.set(getattr(dut, name), value)
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
    return bench


def occupancy():
    """Up to three keys."""
    parameters = window_parameters(cores=1, sub_window=3)
    bench = Bench()
    dut = bench.add(Occupancy(parameters))
    known = ~bench.first()
    restart, comes, leaves = (bench.any(1, name) for name in ("restart", "comes", "leaves"))
    held = bench.register(range(5), "held")
    bench.next(held.eq(Mux(restart, 0, held + comes - leaves)))
    bench.assume(known | restart)
    bench.assume(~leaves | (held != 0))
    bench.assume(~comes | leaves | (held != 3))
    for name, value in (("restart", restart), ("comes", comes), ("leaves", leaves)):
        bench.set(getattr(dut, name), value)
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
    return bench


def connect_tracker(bench, dut, inputs):
    """Drive the inputs of a tracker."""
    for name, value in inputs.items():
        bench.set(getattr(dut, name), value)


def tracked_cores(cores):
    """Return a function that builds the bench of ``cores`` cores that track one side together."""

    def build():
        parameters = window_parameters(cores=cores)
        bench = Bench()
        known = ~bench.first()
        names = ("store", "begin_count", "empty")
        inputs = {name: bench.any(1, name) for name in names}
        asks = inputs["begin_count"] | inputs["empty"]
        restart = bench.past(asks, init=1)
        duts = [bench.add(WindowTracker(parameters), f"core_{n}") for n in range(cores)]
        size = bench.any(len(duts[0].size), "size")
        bench.assume(~(restart & inputs["store"]))
        bench.assume(~inputs["begin_count"] | ((size > 0) & (size <= parameters.capacity)))
        window = Window(
            bench, parameters, restart=restart, begin=bench.past(inputs["begin_count"]),
            size=bench.past(size), advance=inputs["store"],
        )  # fmt: skip
        for n, dut in enumerate(duts):
            turns = {"mine": window.turn == n, "displaces": window.full & (window.owner == n)}
            connect_tracker(bench, dut, {**inputs, **turns, "size": size})
        stored = Cat(dut.stored for dut in duts)
        bench.claim(
            "each tuple is stored in exactly one core",
            Mux(inputs["store"], stored.any() & ((stored & (stored - 1)) == 0), stored == 0),
        )
        for n, dut in enumerate(duts):
            tracked_core(bench, parameters, dut, n, window, known, restart, inputs["store"])
        if cores == 1:
            rows_told(bench, duts[0], known)
        bench.cover(
            "a window is displaced by a smaller one, which fills",
            known & window.full & (window.size == 2) & inputs["store"],
        )
        return bench

    return build


def rows_told(bench, dut, known):
    """Claim that `second` is the row after the span's first row, and `stop` that after its last."""
    rows = len(dut.second)
    second, stop = (dut.span.tail.row + 1)[:rows], dut.span.head.row  # there is one lane
    bench.claim("second is the row after the first", ~known | (dut.second == second))
    bench.claim("stop is the row after the last that holds any", ~known | (dut.stop == stop))


def tracked_core(bench, parameters, dut, n, window, known, restart, store):
    """Claim that the span of a core is its share of the window."""
    cores = parameters.cores
    bench.claim(
        f"core {n} stores what comes in its turn",
        ~known | (dut.stored == (store & (window.turn == n))),
    )
    bits = len(Value.cast(dut.span.head))
    head, tail = bench.register(bits, "head"), bench.register(bits, "tail")
    bench.next(
        head.eq(Mux(restart, 0, head + (store & (window.turn == n)))),
        tail.eq(Mux(restart, 0, tail + (store & window.full & (window.owner == n)))),
    )
    bench.claim(
        f"core {n} shows its share of the last tuples as its span",
        ~known | ((Value.cast(dut.span.head) == head) & (Value.cast(dut.span.tail) == tail)),
    )
    share = bench.register(range(parameters.sub_window + 2), "share")
    bench.next(
        share.eq(
            Mux(
                restart, 0,
                share + (store & (window.turn == n)) - (store & window.full & (window.owner == n)),
            )
        )
    )  # fmt: skip
    bench.claim(f"core {n} never holds more than fits", share <= parameters.sub_window)
    bench.claim(f"core {n} never overflows, as the window fits", ~dut.overflow)
    bench.claim(f"core {n} settles at once without timestamps", dut.settled)
    # A share follows from the number of tuples in the window and the owner of the oldest one.
    ahead = turns_left(window.owner, C(n, 2), cores)
    expected = sum(
        Mux(window.held > ahead + cores * turn, 1, 0) for turn in range(parameters.sub_window)
    )
    bench.invariant(share == expected)
    bench.invariant(
        ~known | (window.turn == modulo(window.owner + window.held, cores, 2 * parameters.capacity))
    )
    occupancy = bench.inside(dut, "occupancy")
    inner, came, left = (bench.inside(occupancy, name) for name in ("held", "came", "left"))
    full, vacant = occupancy.full, occupancy.vacant
    bench.invariant(~known | ((inner + came - left) == share))
    bench.invariant(~known | ~(came & left))
    bench.invariant(~known | (full == (share == parameters.sub_window)))
    bench.invariant(~known | (vacant == (share == 0)))
    bench.invariant(bench.inside(dut, "empty") == restart)


def modulo(value, number, most):
    """Return ``value`` modulo ``number``, for values of at most ``most``."""
    rest = C(0, 4)
    for n in range(most + 1):
        rest = Mux(value == n, n % number, rest)
    return rest


#: Mutants of a tracker that concern time.
TIMED = dict.fromkeys(
    ("begin_time.eq", "forget.eq", "timed.eq(0)", "If(begin_count) -> If(1)"),
    "of use with timestamps only: window-timed",
)


#: Mutants that the proofs need not detect, by the number of cores.
SPARED = {1: {"lane": "there is one lane: moving-span"}, 2: TIMED, 3: {}}

PROOFS = [
    Proof(
        name="turn",
        says="cores that count for themselves have one turn after the other, one at a time",
        component="Turn, 3 cores",
        build=one_core_each,
        depth=10,
        induction=2,
        mutate=(Turn,),
    ),
    Proof(
        name="moving-span",
        says="the ends of the span equal counts of keys that came and left",
        component="MovingSpan, 2 lanes",
        build=moving_span,
        depth=12,
        induction=2,
        mutate=(MovingSpan,),
        spared={"pointer.lane + 1 -> pointer.lane - 1": "of two lanes, the next is the one before"},
    ),
    Proof(
        name="occupancy",
        says="full and vacant equal what a count of the keys says",
        component="Occupancy, 3 keys",
        build=occupancy,
        depth=10,
        induction=2,
        mutate=(Occupancy,),
    ),
    *(
        Proof(
            name=f"window-{cores}",
            says="every tuple is stored in one core, spans are shares of the last tuples, under any"
            " interleaving of tuples and control words",
            component=f"WindowTracker, cores: {cores}, windows of 1 to {2 * cores}",
            build=tracked_cores(cores),
            depth=12,
            induction=2,
            mutate=(mutated,),
            spared=SPARED[cores],
        )
        for cores, mutated in ((1, MovingSpan.elaborate), (2, WindowTracker), (3, Occupancy))
    ),
]
