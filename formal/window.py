# SPDX-License-Identifier: Apache-2.0
"""Proofs about the window: which tuples a region holds."""

from amaranth import *

from hdl.window.tracker import MovingSpan, WindowTracker

from .proof import proof
from .small import window_parameters
from .told_window import TIMED
from .window_model import Window, turns_left

__all__ = []


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
