# SPDX-License-Identifier: Apache-2.0
"""Models of turns: lists of cores, and the tuples of a window one by one, with their cores."""

from amaranth import *

from hdl.ingress.storage_turns import LISTS

__all__ = ["Lists", "TurnsWindow"]

#: Lists that may hold tuples beside the one that is being written.
KEPT = LISTS - 1


class Lists:
    """Model of the lists of cores, entry by entry.

    Parameters
    ----------
    bench : Bench
    cores : int
    write, value : Value
        A core is appended to the list that is being written, and its number.
    begins : Value
        The segment of that list begins.
    forget : Value
        The list that is being written is discarded.

    Attributes
    ----------
    length, live : Signal
        Number of cores in the list that is being written, and in the one in force.
    next, now : list of Signal
        Entries of these two lists.
    listed : Value
        For each core, whether it is in the list that is being written.
    """

    def __init__(self, bench, cores, *, write, value, begins, forget):
        count, core = range(cores + 1), range(max(2, cores))
        self.length = bench.register(count, "length")
        self.live = bench.register(count, "live", init=cores)
        self.next = [bench.register(core, f"next_{n}") for n in range(cores)]
        self.now = [bench.register(core, f"now_{n}", init=n) for n in range(cores)]
        ends = begins | forget
        bench.next(
            self.length.eq(Mux(ends, 0, self.length + write)),
            self.live.eq(Mux(begins, self.length, self.live)),
        )
        for n, (later, now) in enumerate(zip(self.next, self.now, strict=True)):
            bench.next(
                later.eq(Mux(write & (self.length == n), value, later)),
                now.eq(Mux(begins, later, now)),
            )
        self.listed = Cat(
            Cat((entry == n) & (self.length > at) for at, entry in enumerate(self.next)).any()
            for n in range(cores)
        )

    def told(self, bench, shape, begins):
        """Return what is told of the list that is being written, that in force, and the one before.

        Parameters
        ----------
        bench : Bench
        shape : ArrayLayout
            See :func:`hdl.ingress.storage_turns.known_lists`.
        begins : Value
            As that of the model.
        """
        told, before = Signal(shape, name=bench.name("told")), bench.register(shape[0].width)
        begun, newest = bench.register(1, "begun"), bench.register(range(LISTS), "newest")
        bench.next(begun.eq(begun | begins), newest.eq(newest + begins))
        bench.next(before.eq(Mux(begins, told[1], before)))
        written, in_force, _ = told
        bench.set(Cat(written.number, written.first), Cat((newest + 1)[:2], self.next[0]))
        bench.set(Cat(written.last, written.several), Cat((self.length - 1)[:2], self.length > 1))
        bench.set(Cat(in_force.number, in_force.first), Cat(newest, self.now[0]))
        bench.set(Cat(in_force.last, in_force.several), Cat((self.live - 1)[:2], self.live > 1))
        bench.set(in_force.plain, ~begun)
        bench.set(told[2].as_value(), before)
        return told

    def core(self, turn):
        """Return the core whose turn it is, in the list in force."""
        return pick(self.now, turn)


class TurnsWindow:
    """Model of a side's window as the tuples in it, with the core and the age of each.

    The age of a tuple is the number of segments that have begun since it came.

    Parameters
    ----------
    bench : Bench
    lists : Lists
    capacity : int
        Greatest size of a window.
    advance, restart, begins : Value
        A tuple comes; the window is emptied; a segment begins. One of them at a time.
    begin, size, timed : Value
        With ``restart``: a window of ``size`` tuples begins, or a time-based one.

    Attributes
    ----------
    core : Value
        Core that stores the next tuple.
    leaves : Value
        The next tuple expires the oldest one.
    oldest, age : Value
        Core and age of the oldest tuple.
    empty : Value
        A count-based window holds no tuple, or the window is time-based.
    turn, held : Signal
        Turn of the next tuple, and number of tuples that are held.
    ages : list of Signal
        Ages of the tuples, the newest one first.
    """

    def __init__(self, bench, lists, capacity, *, advance, restart, begins, begin, size, timed):
        turn = bench.register(range(len(lists.now) + 1), "turn")
        self.size = bench.register(range(capacity + 1), "size", init=capacity)
        self.timed = bench.register(1, "timed")
        held = bench.register(range(capacity + 1), "held")
        cores = [bench.register(len(lists.now[0]), f"core_{n}") for n in range(capacity)]
        ages = [bench.register(range(KEPT + 1), f"age_{n}") for n in range(capacity)]
        last = turn == lists.live - 1
        self.core = lists.core(turn)
        self.leaves = ~self.timed & (held == self.size)
        self.oldest, self.age = (pick(of, (held - 1)[: len(held)]) for of in (cores, ages))
        self.empty = held == 0
        self.turn, self.held, self.ages = turn, held, ages
        grows = advance & ~self.timed & ~self.leaves
        bench.next(
            turn.eq(Mux(restart | begins, 0, Mux(advance, Mux(last, 0, turn + 1), turn))),
            held.eq(Mux(restart, 0, held + grows)),
            self.size.eq(Mux(restart & begin, size, self.size)),
            self.timed.eq(Mux(restart & begin, timed, self.timed)),
        )
        newer = [(self.core, C(0)), *zip(cores, ages, strict=True)]
        for (core, age), (core_before, age_before) in zip(newer[1:], newer, strict=False):
            older = Mux(age == KEPT, age, age + begins)
            bench.next(
                core.eq(Mux(advance, core_before, core)),
                age.eq(Mux(advance, age_before, older)),
            )


def pick(values, place):
    """Return the value at a place."""
    found = C(0, len(values[0]))
    for n, value in enumerate(values):
        found = Mux(place == n, value, found)
    return found
