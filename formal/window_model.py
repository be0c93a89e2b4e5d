# SPDX-License-Identifier: Apache-2.0
"""Model of a count-based window, as a machine that sees every tuple."""

from amaranth import *

__all__ = ["Window", "next_turn", "turn_states", "turns_left"]


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
