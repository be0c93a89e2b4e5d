# SPDX-License-Identifier: Apache-2.0
"""Specification of when groups end and stars follow, as a machine that takes tuples one by one."""

from typing import NamedTuple

from amaranth import *

__all__ = ["Group", "Specification", "free_limit", "schedule_states"]

#: Least limit of a group, by the docstring of :class:`hdl.ingress.punctuation.GroupSchedule`.
LEAST_LIMIT = 2


def free_limit(bench, parameters, may_change):
    """Return a limit of any size from the least one on; it changes after some of the words.

    Parameters
    ----------
    bench : Bench
    parameters : JoinParameters
        They give the greatest limit.
    may_change : Value
        A word is taken behind which the limit may be another one.
    """
    most = parameters.cores * parameters.slack
    first, then = (bench.constant(range(most + 1), "limit"), bench.any(range(most + 1), "limit"))
    for limit in (first, then):
        bench.assume((limit >= LEAST_LIMIT) & (limit <= most))
    changed = bench.register(1, "changed")
    kept = bench.register(range(most + 1), "kept", init=LEAST_LIMIT)
    limit = bench.wire(Mux(changed, kept, first), "limit")
    bench.next(changed.eq(changed | may_change), kept.eq(Mux(may_change, then, limit)))
    bench.invariant((kept >= LEAST_LIMIT) & (kept <= most))
    return limit


class Group(NamedTuple):
    """The open group of a side, as ``host/protocol/punctuation.py`` defines it.

    Attributes
    ----------
    count, others, since : Value
        Probes in the group, tuples of the other side since the first of these probes, and probes
        since the last star.
    """

    count: Value
    others: Value
    since: Value


class Specification:
    """Plain counters that tell when groups end, for one tuple after the other.

    Parameters
    ----------
    bench : Bench
    parameters : JoinParameters
    period : Value
        Number of probes from star to star; zero for no stars. Then ``since`` only says whether any
        probe has come.
    limit : Value
        Tuples of the other side that end a group early; it changes only where all groups end.
    """

    def __init__(self, bench, parameters, period, limit):
        self.bench = bench
        self.parameters = parameters
        self.period = period
        self.limit = limit
        longest = 1 << parameters.engine.probe_bits
        self.group = Group(
            bench.register(range(parameters.engine.probes + 1), "count"),
            bench.register(len(limit), "others"),
            bench.register(range(longest + 1), "since"),
        )
        bench.invariant(self.group.count < parameters.engine.probes)
        bench.invariant((self.group.count == 0) | (self.group.others < self.limit))
        bench.invariant((self.group.count != 0) | (self.group.others == 0))
        bench.invariant((period == 0) | (self.group.count <= self.group.since))
        bench.invariant((self.group.count == 0) | (self.group.since != 0))
        bench.invariant(Mux(period == 0, self.group.since <= 1, self.group.since < period))
        bench.invariant(self.free | (self.group.count == self.group.since))

    @property
    def free(self):
        """Return whether stars are so rare that mergers need not keep the order of cores."""
        return (self.period == 0) | (self.period > self.parameters.engine.probes)

    def probe(self, group, comes):
        """Return the group after a probe of this side, if it ended, and if with a star."""
        count, since = group.count + 1, Mux(self.period == 0, 1, group.since + 1)
        due = since == self.period
        ends = comes & (due | (count == self.parameters.engine.probes))
        star = ends & (due | ~self.free)
        after = Group(
            Mux(comes, Mux(ends, 0, count), group.count),
            Mux(ends, 0, group.others),
            Mux(star, 0, Mux(comes, since, group.since)),
        )
        return self.kept(after), ends, star

    def other(self, group, comes):
        """Return the group after a tuple of the other side, if it ended, and if with a star."""
        counts = comes & (group.count != 0)
        ends = counts & (group.others + 1 == self.limit)
        star = ends & ~self.free
        after = Group(
            Mux(ends, 0, group.count),
            Mux(ends, 0, group.others + counts),
            Mux(star, 0, group.since),
        )
        return self.kept(after), ends, star

    def kept(self, group):
        """Return a group in the widths of the registers."""
        return Group(
            *(
                self.bench.view(own, value[: len(own)])
                for own, value in zip(self.group, group, strict=True)
            )
        )

    def follow(self, *, advance, finish, after):
        """Register the group ``after`` when a word is taken; ``finish`` ends and resets it."""
        for own, value in zip(self.group, after, strict=True):
            self.bench.next(own.eq(Mux(advance, Mux(finish, 0, value), own)))


def schedule_states(bench, dut, specification):
    """Claim the reachable states of a :class:`GroupSchedule`, as invariants."""
    begun, grouped, filled, passed, nearly, exhausted, left, due, unstarred = (
        bench.inside(dut, name)
        for name in (
            "begun", "grouped", "filled", "passed", "nearly", "exhausted", "left", "due",
            "unstarred",
        )
    )  # fmt: skip
    group = specification.group
    probes = specification.parameters.engine.probes
    bench.invariant(begun == (group.count != 0))
    bench.invariant(~begun | (grouped == group.count))
    bench.invariant(~begun | (passed == group.others))
    bench.invariant(~begun | (nearly == specification.limit - LEAST_LIMIT))
    bench.invariant(filled == (group.count == probes - 1))
    bench.invariant(exhausted == (begun & (group.others == specification.limit - 1)))
    period = specification.period
    bench.invariant(left == Mux(period == 0, 0, period - group.since))
    bench.invariant(due == (left == 1))
    bench.invariant(unstarred == (group.since != 0))
