# SPDX-License-Identifier: Apache-2.0
"""Proofs about the groups of probes that an ingress closes."""

from typing import NamedTuple

from amaranth import *

from hdl.ingress.punctuation import GroupSchedule, Punctuation
from hdl.ingress.word_facts import WordHalves

from .proof import proof
from .small import group_parameters

__all__ = ["Group", "Specification", "free_limit", "schedule_states"]

# Specification of when groups end and stars follow, as a machine that takes tuples one by one.

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


# Proofs about the groups that the ingress closes.


def group_schedule(bench, parameters):
    """Return a function that builds the bench of one side's schedule."""
    dut = bench.add(GroupSchedule(parameters))
    longest = 1 << parameters.engine.probe_bits
    period = bench.register(range(longest + 1), "period", init=1)
    bench.invariant(period <= longest)
    wanted = bench.any(range(longest + 1), "wanted")
    bench.assume(wanted <= longest)
    probe, other, finish, advance = (
        bench.any(1, name) for name in ("probe", "other", "finish", "advance")
    )
    bench.assume(~finish | ~(probe | other))
    limit = free_limit(bench, parameters, finish & advance)
    own = Specification(bench, parameters, period, limit)
    leads = C(1)
    if parameters.side_by_side:
        leads = bench.any(1, "leads")
        bench.set(dut.leads, leads)
        # The ingress separates two tuples if the first of them would end the group.
        exhausted = (own.group.count != 0) & (own.group.others == own.limit - 1)
        bench.assume(~(probe & other & ~leads & exhausted))
    else:
        bench.assume(~(probe & other))
    next_period = bench.wire(Mux(finish, wanted, period))
    bench.next(period.eq(Mux(advance, next_period, period)))
    bench.drive(
        dut, period=next_period, single=next_period == 1, free=own.free, probe=probe,
        other=other, finish=finish, advance=advance, limit=limit,
    )  # fmt: skip
    one, *ended_one = own.other(own.group, other & ~leads)
    two, *ended_two = own.probe(one, probe)
    after, *ended_three = own.other(two, other & leads)
    ends, stars = zip(ended_one, ended_two, ended_three, strict=True)
    own.follow(advance=advance, finish=finish, after=after)
    bench.claim("a group ends when it has to", dut.close == (finish | Cat(ends).any()))
    starred = Mux(finish, own.group.since != 0, Cat(stars).any())
    bench.claim("a star follows when it has to", dut.star == starred)
    if parameters.side_by_side:
        bench.claim(
            "exhausted says that the next tuple of the other side ends the group",
            dut.exhausted == exhausted,
        )
        alone = own.probe(own.group, probe)[1]
        bench.claim("ripe says that the probe by itself ends the group", dut.ripe == alone)
        bench.claim("two tuples end one group at the most", sum(ends) <= 1)
    schedule_states(bench, dut, own)
    late = advance & ends[2] & dut.star
    bench.cover("a group ends as it has waited too long", late & (limit > 3))
    bench.cover("a group waits for two tuples of the other side only", late & (limit == 2))
    bench.cover("a full group ends without a star", ends[1] & ~dut.star)
    bench.cover("a full group ends where no stars are wanted", advance & ends[1] & (period == 0))


def punctuation(bench, parameters):
    """Return a function that builds the bench of both sides' schedules under one precision."""
    dut = bench.add(Punctuation(parameters))
    longest = 1 << parameters.engine.probe_bits
    period = bench.register(range(longest + 1), "period", init=1)
    bench.invariant(period <= longest)
    wanted = bench.any(range(longest + 1), "wanted")
    bench.assume(wanted <= longest)
    finish, changes, advance = (
        bench.any(1, name) for name in ("finish", "set_precision", "advance")
    )
    probes = bench.any(2, "probes")
    bench.assume(~finish | (probes == 0))
    bench.assume(~changes | finish)

    def rare(period):
        return (period == 0) | (period > parameters.engine.probes)

    limit = free_limit(bench, parameters, finish & advance)
    first = bench.any(1, "first") if parameters.side_by_side else C(0)
    if parameters.side_by_side:
        bench.set(dut.first, first)
    else:
        bench.assume(~probes.all())
    bench.drive(
        dut, probes=probes, finish=finish, set_precision=changes, wanted=wanted,
        single=wanted == 1, unordered=rare(wanted), advance=advance, limit=limit,
    )  # fmt: skip
    next_period = bench.wire(Mux(changes, wanted, period))
    bench.next(period.eq(Mux(advance, next_period, period)))
    sides = [Specification(bench, parameters, period, limit) for _ in range(2)]
    apart = both_sides(bench, dut, sides, probes, first, finish, advance)
    bench.invariant(bench.inside(dut, "period") == period)
    bench.invariant(bench.inside(dut, "single") == (period == 1))
    bench.invariant(bench.inside(dut, "free") == rare(period))
    bench.claim(
        "order is free from a word on if stars are rarer than groups end",
        dut.free == rare(next_period),
    )
    bench.claim(
        "the combiner is told of stars while order counts",
        dut.starring == (advance & dut.star.any() & ~rare(period)),
    )
    bench.cover("both groups end at once", advance & dut.star.all() & ~finish & ~apart)


def both_sides(bench, dut, sides, probes, first, finish, advance):
    """Claim how the groups of both sides end; return whether two tuples have to be separated."""
    schedules = bench.inside(dut, "schedules")
    apart, firsts = C(0), []
    for n, (own, schedule) in enumerate(zip(sides, schedules, strict=True)):
        probe, other = probes[n], probes[1 - n]
        leads = (first == n) if own.parameters.side_by_side else C(1)
        exhausted = (own.group.count != 0) & (own.group.others == own.limit - 1)
        apart = apart | (other & probe & ~leads & exhausted)
        one, *ended_one = own.other(own.group, other & ~leads)
        two, *ended_two = own.probe(one, probe)
        after, *ended_three = own.other(two, other & leads)
        ends, stars = zip(ended_one, ended_two, ended_three, strict=True)
        own.follow(advance=advance, finish=finish, after=after)
        # Of two tuples that are separated, only one is present at a time.
        bench.assume(~(probe & other & ~leads & exhausted & advance))
        name = "RS"[n]
        parted = probe & other & ~leads & exhausted
        bench.claim(
            f"{name}'s group ends when it has to",
            parted | (dut.close[n] == (finish | Cat(ends).any())),
        )
        starred = Mux(finish, own.group.since != 0, Cat(stars).any())
        bench.claim(
            f"a star follows {name}'s group when it has to", parted | (dut.star[n] == starred)
        )
        schedule_states(bench, schedule, own)
        firsts.append(Mux(leads, ends[1], 0))
    if sides[0].parameters.side_by_side:
        bench.claim(
            "two tuples part if the first one ends the other side's group",
            ~probes.all() | (dut.apart == apart),
        )
        # S's star comes first if S's tuple is the first of the two and ends S's own group.
        tells = dut.star.all() & ~finish & ~apart
        bench.claim(
            "S's star comes first if its group ended before R's",
            ~tells | (dut.s_first == (probes.all() & firsts[1])),
        )
    return apart


@proof(
    "word-halves",
    says="the tuples of a word go on once each, the first one first",
    component="WordHalves",
    depth=8,
    induction=2,
    mutate=(WordHalves,),
)
def word_halves(bench):
    """Words of one tuple, of two, or of none, which advance as soon as they may."""
    dut = bench.add(WordHalves())
    advance, apart = bench.any(1, "advance"), bench.any(1, "apart")
    tuples, first = bench.any(2, "tuples"), bench.any(1, "first")
    bench.drive(dut, tuples=tuples, first=first, apart=apart, advance=advance)
    # A word stays until its last beat is taken.
    stays = bench.past(advance & ~dut.last)
    waits = bench.past(~advance)
    same = (tuples == bench.past(tuples)) & (first == bench.past(first))
    bench.assume(~(stays | (waits & ~bench.first())) | same)
    gone = bench.register(2, "gone")  # tuples of the current word that have advanced
    bench.next(gone.eq(Mux(advance, Mux(dut.last, 0, gone | dut.present), gone)))
    bench.claim("a tuple goes on once", (dut.present & gone) == 0)
    bench.claim(
        "all tuples have gone on with the last beat", ~dut.last | ((dut.present | gone) == tuples)
    )
    bench.claim(
        "the first tuple goes on first",
        ~tuples.all() | (gone != 0) | dut.present.bit_select(first, 1),
    )
    bench.claim(
        "two tuples go on together unless they part",
        ~tuples.all() | (gone != 0) | (dut.last == ~apart),
    )
    bench.claim("every other word takes one beat", tuples.all() | dut.last)
    second = bench.inside(dut, "second")
    bench.invariant(second == (gone != 0))
    bench.invariant(~second | ((gone == (1 << bench.past(first))) & bench.past(tuples).all()))
    bench.cover("S goes on before R", gone[1] & dut.present[0] & dut.last)


#: Mutants of a schedule that no observer can detect.
UNSEEN = {
    "init=1 -> init=0 (1)": "the first probe is due by its flag, and its star sets the counter",
    "probes + 1 -> probes - 1": "at most all but two probes of a group are counted, then flags",
    "probes == 1 -> probes != 1 (1)": "the first group ends with its first probe, which is due",
}


#: Mutants of the precision in force that no observer can detect.
PERIOD = {"init=1 -> init=0 (1)": "a period of one counts by its flag alone"}

proof(
    "group-schedule",
    says="groups end and stars follow as the host's specification has it",
    component="GroupSchedule, groups of 3, any limit from 2 to 6",
    depth=12,
    induction=1,
    mutate=(GroupSchedule,),
    spared=UNSEEN,
    given={"parameters": group_parameters()},
)(group_schedule)
proof(
    "group-schedule-pairs",
    says="… and so they do for two tuples at hand, as for one after the other",
    component="GroupSchedule, side by side, any limit from 2 to 6",
    depth=13,
    induction=1,
    mutate=(GroupSchedule,),
    spared=UNSEEN,
    given={"parameters": group_parameters(engine="index", tuples_per_word=2)},
)(group_schedule)
proof(
    "punctuation",
    says="both sides' groups follow the precision in force, from its control word on",
    component="Punctuation, groups of 3, any limit from 2 to 6",
    depth=12,
    induction=1,
    mutate=(Punctuation,),
    spared=PERIOD,
    given={"parameters": group_parameters()},
)(punctuation)
proof(
    "punctuation-pairs",
    says="… with two tuples at hand, and the order of their stars",
    component="Punctuation, side by side, any limit from 2 to 6",
    depth=13,
    induction=1,
    mutate=(Punctuation,),
    spared=PERIOD,
    given={"parameters": group_parameters(engine="index", tuples_per_word=2)},
)(punctuation)
