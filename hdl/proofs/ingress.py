# SPDX-License-Identifier: Apache-2.0
"""Proofs about the root of the distribution tree: groups, stars, words."""

from typing import NamedTuple

from amaranth import *

from hdl.ingress import word_facts as facts
from hdl.ingress.group_schedule import GroupSchedule
from hdl.ingress.punctuation import Punctuation
from hdl.ingress.word_halves import WordHalves
from hdl.parameters import JoinParameters, KeyField
from hdl.words import operands
from hdl.words.inputs import Control, InputKind, input_word, value_ranges

from .bench import Bench
from .proof import Proof

__all__ = ["PROOFS", "ingress_parameters"]


def ingress_parameters(**changes):
    """Return small parameters of an ingress; groups of three, stars up to four probes apart."""
    few = {
        "cores": 1, "sub_window": 1, "keys": (KeyField(name="x", bits=1),), "probes": 3,
        "probe_bits": 2, "timestamp_bits": 0, "comparator": "equality",
    }  # fmt: skip
    return JoinParameters(**{**few, **changes})


class Group(NamedTuple):
    """The open group of a side, as ``host/punctuation.py`` has it.

    Attributes
    ----------
    count, others, since : Value
        Probes in the group, tuples of the other side since its first one, probes since the last
        star.
    """

    count: Value
    others: Value
    since: Value


class Specification:
    """When groups end: one tuple after the other, with plain counters.

    Parameters
    ----------
    bench : Bench
    parameters : JoinParameters
    period : Value
        Probes from star to star.
    """

    def __init__(self, bench, parameters, period):
        self.bench = bench
        self.parameters = parameters
        self.period = period
        self.limit = parameters.cores * parameters.slack
        longest = 1 << parameters.probe_bits
        self.group = Group(
            bench.register(range(parameters.probes + 1), "count"),
            bench.register(range(self.limit + 1), "others"),
            bench.register(range(longest + 1), "since"),
        )
        bench.invariant(self.group.count < parameters.probes)
        bench.invariant((self.group.count == 0) | (self.group.others < self.limit))
        bench.invariant((self.group.count != 0) | (self.group.others == 0))
        bench.invariant(self.group.count <= self.group.since)
        bench.invariant(self.group.since < period)
        bench.invariant((period > parameters.probes) | (self.group.count == self.group.since))

    @property
    def free(self):
        """Whether stars are so rare that mergers need not keep the order of cores."""
        return self.period > self.parameters.probes

    def probe(self, group, comes):
        """Return the group after a probe of this side, whether it ended, and with a star."""
        count, since = group.count + 1, group.since + 1
        due = since == self.period
        ends = comes & (due | (count == self.parameters.probes))
        star = ends & (due | ~self.free)
        after = Group(
            Mux(comes, Mux(ends, 0, count), group.count),
            Mux(ends, 0, group.others),
            Mux(star, 0, Mux(comes, since, group.since)),
        )
        return self.kept(after), ends, star

    def other(self, group, comes):
        """Return the same after a tuple of the other side."""
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
        """Return a group with the widths of registers."""
        return Group(
            *(
                self.bench.view(own, value[: len(own)])
                for own, value in zip(self.group, group, strict=True)
            )
        )

    def follow(self, *, advance, finish, after):
        """Go on to a group when a word is taken; a control word ends everything."""
        for own, value in zip(self.group, after, strict=True):
            self.bench.next(own.eq(Mux(advance, Mux(finish, 0, value), own)))


def schedule_states(bench, dut, specification):
    """Say which states a :class:`GroupSchedule` has."""
    begun, grouped, filled, passed, exhausted, left, due, unstarred = (
        bench.inside(dut, name)
        for name in (
            "begun", "grouped", "filled", "passed", "exhausted", "left", "due", "unstarred",
        )
    )  # fmt: skip
    group = specification.group
    probes = specification.parameters.probes
    bench.invariant(begun == (group.count != 0))
    bench.invariant(~begun | (grouped == group.count))
    bench.invariant(~begun | (passed == group.others))
    bench.invariant(filled == (group.count == probes - 1))
    bench.invariant(exhausted == (begun & (group.others == specification.limit - 1)))
    bench.invariant(left == specification.period - group.since)
    bench.invariant(due == (left == 1))
    bench.invariant(unstarred == (group.since != 0))


def group_schedule(parameters):
    """Return a function that builds the bench of one side's schedule."""

    def build():
        bench = Bench()
        dut = bench.add(GroupSchedule(parameters))
        longest = 1 << parameters.probe_bits
        period = bench.register(range(longest + 1), "period", init=1)
        bench.invariant((period > 0) & (period <= longest))
        wanted = bench.any(range(longest + 1), "wanted")
        bench.assume((wanted > 0) & (wanted <= longest))
        probe, other, finish, advance = (
            bench.any(1, name) for name in ("probe", "other", "finish", "advance")
        )
        bench.assume(~finish | ~(probe | other))
        own = Specification(bench, parameters, period)
        leads = C(1)
        if parameters.side_by_side:
            leads = bench.any(1, "leads")
            bench.set(dut.leads, leads)
            # The ingress parts two tuples of which the first one would end the group.
            exhausted = (own.group.count != 0) & (own.group.others == own.limit - 1)
            bench.assume(~(probe & other & ~leads & exhausted))
        else:
            bench.assume(~(probe & other))
        next_period = bench.wire(Mux(finish, wanted, period))
        bench.next(period.eq(Mux(advance, next_period, period)))
        for name, value in (
            ("period", next_period), ("single", next_period == 1), ("free", own.free),
            ("probe", probe), ("other", other), ("finish", finish), ("advance", advance),
        ):  # fmt: skip
            bench.set(getattr(dut, name), value)
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
        bench.cover("a group ends as it has waited too long", advance & ends[2] & dut.star)
        bench.cover("a full group ends without a star", ends[1] & ~dut.star)
        return bench

    return build


def punctuation(parameters):
    """Return a function that builds the bench of both sides' schedules under one precision."""

    def build():
        bench = Bench()
        dut = bench.add(Punctuation(parameters))
        longest = 1 << parameters.probe_bits
        period = bench.register(range(longest + 1), "period", init=1)
        bench.invariant((period > 0) & (period <= longest))
        wanted = bench.any(range(longest + 1), "wanted")
        bench.assume((wanted > 0) & (wanted <= longest))
        finish, changes, advance = (
            bench.any(1, name) for name in ("finish", "set_precision", "advance")
        )
        probes = bench.any(2, "probes")
        bench.assume(~finish | (probes == 0))
        bench.assume(~changes | finish)
        first = bench.any(1, "first") if parameters.side_by_side else C(0)
        if parameters.side_by_side:
            bench.set(dut.first, first)
        else:
            bench.assume(~probes.all())
        for name, value in (
            ("probes", probes), ("finish", finish), ("set_precision", changes),
            ("wanted", wanted), ("single", wanted == 1), ("unordered", wanted > parameters.probes),
            ("advance", advance),
        ):  # fmt: skip
            bench.set(getattr(dut, name), value)
        next_period = bench.wire(Mux(changes, wanted, period))
        bench.next(period.eq(Mux(advance, next_period, period)))
        sides = [Specification(bench, parameters, period) for _ in range(2)]
        apart = both_sides(bench, dut, sides, probes, first, finish, advance)
        bench.invariant(bench.inside(dut, "period") == period)
        bench.invariant(bench.inside(dut, "single") == (period == 1))
        bench.invariant(bench.inside(dut, "free") == (period > parameters.probes))
        bench.claim(
            "order is free from a word on if stars are rarer than groups end",
            dut.free == (next_period > parameters.probes),
        )
        bench.claim(
            "the combiner is told of stars while order counts",
            dut.starring == (advance & dut.star.any() & (period <= parameters.probes)),
        )
        bench.cover("both groups end at once", advance & dut.star.all() & ~finish & ~apart)
        return bench

    return build


def both_sides(bench, dut, sides, probes, first, finish, advance):
    """Claim what becomes of the groups of both sides; return whether two tuples have to part."""
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
        # Of two tuples that part only one is at hand at a time.
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
        # S's star comes first if S's tuple, the first one, ends S's own group.
        tells = dut.star.all() & ~finish & ~apart
        bench.claim(
            "S's star comes first if its group ended before R's",
            ~tells | (dut.s_first == firsts[1]),
        )
    return apart


def word_halves():
    """Words of one tuple, of two, or of none, that go on as soon as they may."""
    bench = Bench()
    dut = bench.add(WordHalves())
    advance, apart = bench.any(1, "advance"), bench.any(1, "apart")
    tuples, first = bench.any(2, "tuples"), bench.any(1, "first")
    for name, value in (
        ("tuples", tuples), ("first", first), ("apart", apart), ("advance", advance),
    ):  # fmt: skip
        bench.set(getattr(dut, name), value)
    # A word is at hand until its last beat is taken.
    stays = bench.past(advance & ~dut.last)
    waits = bench.past(~advance)
    same = (tuples == bench.past(tuples)) & (first == bench.past(first))
    bench.assume(~(stays | (waits & ~bench.first())) | same)
    gone = bench.register(2, "gone")  # tuples of the word at hand that have gone on
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
    return bench


#: Of an index with timestamps, which has all operations.
FULL = {"engine": "index", "comparator": "band", "timestamp_bits": 2, "bucket_bits": 1}


def legal_words(parameters, word):
    """Return whether a word is legal, as the comments of :class:`Control` have it."""
    control, is_control = word.body.control, word.kind == InputKind.CONTROL
    index = control.index
    known = {
        Control.CLEAR: C(1), Control.FLUSH: C(1), Control.PRECISION: C(1),
        Control.BOUND_LOW: index < len(parameters.keys),
        Control.BOUND_HIGH: index < len(parameters.keys),
        Control.WINDOW: index < 2, Control.LIFESPAN: index < 2,
        Control.DISTINCT: index < 2, Control.COORDINATE: index < len(parameters.keys),
    }  # fmt: skip
    if not parameters.timestamp_bits:
        del known[Control.LIFESPAN]
    if parameters.engine != "index":
        del known[Control.DISTINCT], known[Control.COORDINATE]
    executed = Cat((control.op == op) & legal for op, legal in known.items()).any()
    tuples = (word.kind == InputKind.R) | (word.kind == InputKind.S)
    if parameters.tuples_per_word == 2:
        tuples |= word.kind == InputKind.BOTH
    return tuples | (is_control & executed)


def word_facts(parameters):
    """Return a function that builds the bench of what a word says by itself."""

    def build():
        bench = Bench()
        layout = input_word(parameters)
        word = bench.any(layout, "word")
        known = {
            name: bench.wire(Value.cast(value))
            for name, value in facts.word_facts(parameters, word).items()
        }
        control, is_control = word.body.control, word.kind == InputKind.CONTROL
        legal = legal_words(parameters, word)
        bench.claim("legal words are those that mean something", known["legal"] == legal)
        bench.claim(
            "an illegal word holds no tuple, ends no group and sets nothing",
            known["legal"]
            | ~Cat(
                known[name]
                for name in ("is_r", "is_s", "finish", "set_precision", "bounds", "clear")
            ).any(),
        )
        both = word.kind == InputKind.BOTH if parameters.tuples_per_word == 2 else C(0)
        bench.claim("tuples of R are seen", known["is_r"] == ((word.kind == InputKind.R) | both))
        bench.claim("tuples of S are seen", known["is_s"] == ((word.kind == InputKind.S) | both))
        bound = (control.op == Control.BOUND_LOW) | (control.op == Control.BOUND_HIGH)
        bench.claim(
            "all control words but bounds end groups",
            known["finish"] == (is_control & legal & ~bound),
        )
        precision = bench.wire(is_control & (control.op == Control.PRECISION))
        bench.claim(
            "a precision is set by its control word only", known["set_precision"] == precision
        )
        longest = 1 << parameters.probe_bits
        inside = (control.value > 0) & (control.value < longest)
        period = bench.wire(Mux(inside, control.value, longest))
        bench.claim(
            "a period of zero, or beyond the probe index, is the longest",
            ~precision | (known["wanted"] == period),
        )
        bench.claim("a period of one is told", ~precision | (known["single"] == (period == 1)))
        bench.claim(
            "a period longer than a group is told",
            ~precision | (known["unordered"] == (period > parameters.probes)),
        )
        limits = dict(zip(value_ranges(parameters).items(), range(0, 8, 2), strict=False))
        for (op, (low, high)), bit in limits.items():
            of_op = is_control & (control.op == op)
            bench.claim(
                f"values of {op.name} beyond their range are told",
                known["limits"][bit : bit + 2]
                == Cat(of_op & (control.value < low), of_op & (control.value > high)),
            )
        if parameters.comparator == "band":
            bench.claim(
                "a bound is set by its control word only",
                known["bounds"]
                == Cat(
                    is_control & (control.op == op) & (control.index == n)
                    for n, _ in enumerate(parameters.keys)
                    for op in (Control.BOUND_LOW, Control.BOUND_HIGH)
                ),
            )
        bench.cover(
            "a word is illegal", ~known["legal"] & is_control & (control.op == Control.WINDOW)
        )
        bench.cover("a precision sets a period", precision & (period == 3) & known["unordered"])
        return bench

    return build


FACTS = (
    facts.word_facts, facts.is_clear, operands.executes, operands.is_legal, operands.ends_groups,
    operands.bounds_set, operands.value_limits,
)  # fmt: skip

#: Mutants of a schedule that nobody can see.
UNSEEN = {
    "init=1 -> init=0 (1)": "the first probe is due by its flag, and its star sets the counter",
    "probes + 1 -> probes - 1": "of the probes of a group, at most all but two are counted, then flags",
    "probes == 1 -> probes != 1 (1)": "the first group ends with its first probe, which is due",
}

PROOFS = [
    Proof(
        name="group-schedule",
        says="groups end and stars follow as the host's specification has it",
        component="GroupSchedule, groups of 3, 12 tuples of the other side",
        build=group_schedule(ingress_parameters(cores=2)),
        depth=17,
        induction=1,
        mutate=(GroupSchedule,),
        spared=UNSEEN,
    ),
    Proof(
        name="group-schedule-pairs",
        says="… and so they do for two tuples at hand, as for one after the other",
        component="GroupSchedule, side by side",
        build=group_schedule(ingress_parameters(engine="index", tuples_per_word=2)),
        depth=50,
        induction=1,
        mutate=(GroupSchedule,),
        spared=UNSEEN,
    ),
    Proof(
        name="punctuation",
        says="both sides' groups follow the precision in force, from its control word on",
        component="Punctuation, groups of 3",
        build=punctuation(ingress_parameters()),
        depth=12,
        induction=1,
        mutate=(Punctuation,),
    ),
    Proof(
        name="punctuation-pairs",
        says="… with two tuples at hand, and the order of their stars",
        component="Punctuation, side by side",
        build=punctuation(ingress_parameters(engine="index", tuples_per_word=2)),
        depth=50,
        induction=1,
        mutate=(Punctuation,),
    ),
    Proof(
        name="word-halves",
        says="the tuples of a word go on once each, the first one first",
        component="WordHalves",
        build=word_halves,
        depth=8,
        induction=2,
        mutate=(WordHalves,),
    ),
    Proof(
        name="word-facts",
        says="what a word says by itself; one that is illegal says nothing",
        component="word_facts, index with timestamps",
        build=word_facts(ingress_parameters(**FULL)),
        depth=2,
        induction=1,
        mutate=FACTS,
    ),
    Proof(
        name="word-facts-pairs",
        says="… of words of up to two tuples",
        component="word_facts, scan, two tuples",
        build=word_facts(ingress_parameters(tuples_per_word=2)),
        depth=2,
        induction=1,
        mutate=FACTS,
    ),
]
