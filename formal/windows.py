# SPDX-License-Identifier: Apache-2.0
"""Proofs about count-based windows and their parts."""

from amaranth import *

from hdl.window.tracker import MovingSpan, Occupancy, Turn, WindowTracker

from .proof import proof
from .small import window_parameters

__all__ = ["TIMED", "Window", "next_turn", "turn_states", "turns_left"]

# Model of a count-based window, as a machine that sees every tuple.


def next_turn(turn, cores):
    """Return the core whose turn follows ``turn``."""
    return Mux(turn == cores - 1, 0, turn + 1)


def turns_left(turn, position, cores):
    """Return the number of turns before that of ``position``."""
    return Mux(position >= turn, position - turn, position + cores - turn)


class Window:
    """Model of a count-based window, as a machine that sees every tuple.

    Parameters
    ----------
    bench : Bench
    parameters : JoinParameters
    restart : Value
        The window is empty from the next cycle on.
    begin : Value
        Together with ``restart``: the window may hold ``size`` tuples from then on.
    size : Value
    advance : Value
        A tuple arrives.

    Attributes
    ----------
    turn : Signal
        Core that stores the next tuple.
    owner : Signal
        Core that holds the oldest tuple.
    size, held : Signal
        Number of tuples that the window may hold, and that it holds.
    full : Signal
        The window holds as many tuples as it may.
    """

    def __init__(self, bench, parameters, *, restart, begin, size, advance):
        cores, capacity = parameters.cores, parameters.capacity
        self.turn = bench.register(range(max(2, cores)), "turn")
        self.owner = bench.register(range(max(2, cores)), "owner")
        self.size = bench.register(range(capacity + 1), "size", init=capacity)
        self.held = bench.register(range(capacity + 1), "held")
        self.full = bench.wire(self.held == self.size)
        bench.next(
            self.turn.eq(Mux(restart, 0, Mux(advance, next_turn(self.turn, cores), self.turn))),
            self.owner.eq(
                Mux(restart, 0, Mux(advance & self.full, next_turn(self.owner, cores), self.owner))
            ),
            self.held.eq(Mux(restart, 0, self.held + (advance & ~self.full))),
            self.size.eq(Mux(restart & begin, size, self.size)),
        )
        bench.invariant((self.turn < cores) & (self.owner < cores))
        bench.invariant((self.held <= self.size) & (self.size > 0) & (self.size <= capacity))


def turn_states(bench, dut, turn, position, known, cores):
    """Claim the states of a :class:`Turn`, as invariants."""
    left, here = (bench.inside(dut, name) for name in ("left", "here"))
    bench.invariant(~known | (left == turns_left(turn, position, cores)))
    bench.invariant(~known | (here == (turn == position)))


# Proofs about the parts of a window: turns of a core, the ends of the span, a count of keys.


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


# Proof about a region that is told when to store and when to expire, whatever it is told.

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


# Proofs about the window: which tuples a region holds.


def connect_tracker(bench, dut, inputs):
    """Drive the inputs of a tracker."""
    bench.drive(dut, **inputs)


def tracked_cores(bench, cores):
    """Return a function that builds the bench of ``cores`` cores that track one side together."""
    parameters = window_parameters(cores=cores)
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
    share = bench.register(range(parameters.window.sub_window + 2), "share")
    bench.next(
        share.eq(
            Mux(
                restart, 0,
                share + (store & (window.turn == n)) - (store & window.full & (window.owner == n)),
            )
        )
    )  # fmt: skip
    bench.claim(f"core {n} never holds more than fits", share <= parameters.window.sub_window)
    bench.claim(f"core {n} never overflows, as the window fits", ~dut.overflow)
    bench.claim(f"core {n} settles at once without timestamps", dut.settled)
    # A share follows from the number of tuples in the window and the owner of the oldest one.
    ahead = turns_left(window.owner, C(n, 2), cores)
    expected = sum(
        Mux(window.held > ahead + cores * turn, 1, 0)
        for turn in range(parameters.window.sub_window)
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
    bench.invariant(~known | (full == (share == parameters.window.sub_window)))
    bench.invariant(~known | (vacant == (share == 0)))
    bench.invariant(bench.inside(dut, "empty") == restart)


def modulo(value, number, most):
    """Return ``value`` modulo ``number``, for values of at most ``most``."""
    rest = C(0, 4)
    for n in range(most + 1):
        rest = Mux(value == n, n % number, rest)
    return rest


#: Mutants of a tracker that concern what never happens to a window that fits.
ELSEWHERE = {
    **TIMED,
    **dict.fromkeys(
        ("self.overflow.eq", "If(forget) -> If(1)", "forget.eq(self.forget)"),
        "a window that fits its cores never overflows: window-told",
    ),
    "init=1 -> init=0": "no key leaves before a window is full: window-told",
}  # fmt: skip


#: Cores, what the mutants are made of, and those that the proofs need not detect.
CASES = (
    (1, MovingSpan.elaborate, {"lane": "there is one lane: moving-span"}),
    (2, WindowTracker, ELSEWHERE),
    (3, MovingSpan.following, {"pointer.lane + 1": "there is one lane: moving-span"}),
)

for _cores, _mutated, _spared in CASES:
    proof(
        f"window-{_cores}",
        says="every tuple is stored in one core, spans are shares of the last tuples, under any"
        " interleaving of tuples and control words",
        component=f"WindowTracker, cores: {_cores}, windows of 1 to {2 * _cores}",
        depth=12,
        induction=2,
        mutate=(_mutated,),
        spared=_spared,
        given={"cores": _cores},
    )(tracked_cores)
