# SPDX-License-Identifier: Apache-2.0
"""Proofs about what a join aggregate reduces: matches to values, and words of cores to one."""

from amaranth import *

from hdl.memory.columns import KeyColumn
from hdl.parameters import JoinParameters, KeyField
from hdl.reducing import GroupValues, MatchReducer, ReducingMerger
from hdl.words import values as match_values
from hdl.words.values import MatchKind, neutral_values

from .proof import proof
from .serializers import keeps_up
from .stream_rules import answers_within, keeps_sequence, offer, take

__all__ = []

NAMES = ("count", "total", "least", "most")


def match_parameters(**changes):
    """Return small parameters of a join aggregate."""
    few = {
        "cores": 2, "sub_window": 3, "keys": (KeyField(name="x", bits=1),), "probe_bits": 2,
        "fan_in": 2, "value_bits": 2, **changes,
    }  # fmt: skip
    return JoinParameters.of(**few)


def smaller(a, b):
    """Return the smaller one of two numbers."""
    return Mux(a < b, a, b)


#: Mutants of :func:`hdl.words.values.combination` that nobody can see.
EQUAL = dict.fromkeys(
    ("b['least'] -> a['least'] <= b['least']", "b['most'] -> a['most'] >= b['most']"),
    "of two equal values, either will do",
)


@proof(
    "reducing-merger",
    says="a word of every port leaves as one: counts and sums added, least and greatest kept,"
    " faults of any port",
    component="ReducingMerger, 2 ports",
    depth=9,
    mutate=(ReducingMerger, match_values.combination),
    spared=EQUAL,
)
def reducing_merger(bench):
    """Two ports: the word of any number that leaves is that of both ports with this number."""
    dut = bench.add(ReducingMerger(match_parameters(), level=0, ports=2))
    got = take(bench, dut.o, "output")
    number = bench.constant(2, "number")
    inside, watched = [], []
    left = bench.register(4, "left")
    bench.next(left.eq(left + got))
    for n, i in enumerate(dut.i):
        put = offer(bench, i)
        bench.assume(i.payload.kind.as_value() < 3)
        entered = bench.register(4, "entered")
        word = bench.register(len(Value.cast(i.payload)), "word")
        chosen = bench.wire(put & (entered == number))
        bench.next(entered.eq(entered + put), word.eq(Mux(chosen, Value.cast(i.payload), word)))
        inside.append(bench.wire(entered - left))
        watched.append(bench.view(i.payload, word))
        bench.claim(f"no word leaves before port {n} has shown it", left <= entered)
    out, (a, b) = dut.o.payload, watched
    # All cores close the same groups.
    leaves = bench.wire(got & (left == number))
    bench.assume(~leaves | (a.kind == b.kind))
    is_value = a.kind == MatchKind.VALUE
    value, first, second = out.body.value, a.body.value, b.body.value
    bench.claim("a word is of the kind of its parts", ~leaves | (out.kind == a.kind))
    bench.claim(
        "counts and sums are added, the least and the greatest value are kept",
        ~(leaves & is_value)
        | (
            (value["count"] == first["count"] + second["count"])
            & (value.total == first.total + second.total)
            & (value.least == smaller(first.least, second.least))
            & (value.most == -smaller(-first.most, -second.most))
            & (value.probe == first.probe)
        ),
    )
    told, one, other = out.body.punctuation, a.body.punctuation, b.body.punctuation
    rest = ("disorder", "illegal", "free")
    bench.claim(
        "a star or mark tells of an overflow at any port",
        ~leaves
        | is_value
        | (
            (told.overflow == (one.overflow | other.overflow))
            & (Cat(told[name] for name in rest) == Cat(one[name] for name in rest))
        ),
    )
    both = Cat(count != 0 for count in inside).all()
    answers_within(
        bench, "a word leaves while both ports have shown it", both & dut.o.ready & ~dut.o.valid, 1
    )
    bench.cover("the third value leaves", leaves & is_value & (number == 2))
    bench.cover("a port is two words ahead", (inside[0] == 2) & (inside[1] == 0))


def reductions(bench, put, lane, value, probes):
    """Return what each probe's matches in the group so far are reduced to, with this lane."""
    parameters = match_parameters(probes=probes)
    neutral = neutral_values(parameters)
    outcome = []
    for n in range(probes):
        layout = match_values.values_layout(parameters, 0)
        kept = {
            name: bench.register(layout[name].shape, f"{name}_{n}", init=neutral[name])
            for name in NAMES
        }
        match = bench.wire(lane.matches[n])
        with_lane = {
            "count": kept["count"] + 1,
            "total": kept["total"] + value,
            "least": smaller(kept["least"], value),
            "most": -smaller(-kept["most"], -value),
        }
        now = {}
        for name in NAMES:
            now[name] = Signal(layout[name].shape, name=bench.name(f"now_{name}"))
            bench.set(now[name], Mux(match, with_lane[name], kept[name]))
            bench.next(
                kept[name].eq(Mux(put, Mux(lane.last, neutral[name], now[name]), kept[name]))
            )
        # A pass meets no more keys than a region holds.
        bench.assume(~(put & match) | (kept["count"] < parameters.window.sub_window))
        outcome.append(Cat(now[name] for name in NAMES))
    return Cat(outcome)


def group_parts(ending, probes):
    """Return which words a group has: a value for each probe, a star, a mark."""
    return Cat(*(ending.count > n for n in range(probes)), ending.star, ending.mark)


def part_of(word, punctuation, probes):
    """Return a function that tells whether a word is a part of a group.

    What is kept of the group is the number of its first probe, its punctuation, and its values.
    """
    bits = len(punctuation.as_value())

    def is_part(held, n):
        if n >= probes:
            kind = MatchKind.STAR if n == probes else MatchKind.MARK
            said = word.body.punctuation.as_value()
            return (word.kind == kind) & (said == held[2 : 2 + bits])
        values = held[2 + bits :]
        own = values.word_select(n, len(values) // probes)
        found = word.body.value
        return (
            (word.kind == MatchKind.VALUE)
            & (found.probe == (held[:2] + n)[:2])
            & (Cat(Value.cast(found[name]) for name in NAMES) == own)
        )

    return is_part


def first_number(bench, ends, ending):
    """Return how many probes since the last star came before the group that ends."""
    base = bench.register(2, "base")
    bench.next(base.eq(Mux(ends, Mux(ending.star, 0, base + ending.count), base)))
    return base


@proof(
    "group-values",
    says="the values of a group leave in order, numbered from the last star, then star and"
    " mark, a word in every cycle",
    component="GroupValues, 2 probes",
    depth=9,
    mutate=(GroupValues,),
    spared={"without word.kind.eq(MatchKind.VALUE)": "a VALUE is zero"},
)
def group_values(bench):
    """Groups of up to two probes with any values."""
    probes = 2
    dut = bench.add(GroupValues(match_parameters(probes=probes, value_bits=1)))
    put = offer(bench, dut.i)
    got = take(bench, dut.o, "output")
    group = dut.i.payload
    ending = group.ending
    bench.assume(ending.count <= probes)
    base = first_number(bench, put, ending)
    values = Cat(Value.cast(group["values"][n][name]) for n in range(probes) for name in NAMES)
    kept = bench.wire(Cat(base, ending.punctuation.as_value(), values))
    parts = bench.wire(group_parts(ending, probes))
    is_part = part_of(dut.o.payload, ending.punctuation, probes)
    inside = keeps_sequence(bench, "register", put, parts, kept, got, is_part, most=7)
    stuck = dut.o.ready & ~dut.o.valid & (inside != 0)
    answers_within(bench, "a word leaves while any is inside", stuck, 1)
    idle = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "a group is taken with the last word before it", idle, 5)
    keeps_up(bench, dut, parts.any())


@proof(
    "match-reducer",
    says="each probe of a group leaves once, in order, with count, sum, least and greatest of"
    " all values that it matches, then star and mark",
    component="MatchReducer, 2 probes, 2 lanes",
    depth=10,
    mutate=(MatchReducer, match_values.combination),
    spared=EQUAL,
)
def match_reducer(bench):
    """Lanes of groups of up to two probes; a value comes two cycles after its lane was taken."""
    probes = 2
    dut = bench.add(MatchReducer(match_parameters(probes=probes, lanes=2)))
    offered = offer(bench, dut.i)
    got = take(bench, dut.o, "output")
    shown = dut.i.payload
    bench.assume(shown.ending.count <= probes)
    value = bench.any(dut.value.shape(), "value")
    bench.set(dut.value, value)
    bench.claim("the end of a pass is told", dut.finished == (offered & shown.last))
    place = Cat(dut.place.lane, dut.place.row[: len(shown.row)])
    bench.claim("it reads where the match is", ~offered | (place == Cat(shown.lane, shown.row)))
    put, bits = offered, Value.cast(shown)
    for _ in range(KeyColumn.LATENCY):
        put, bits = bench.past(put), bench.past(bits)
    put, lane = bench.wire(put), bench.view(shown, bits)
    reduced = reductions(bench, put, lane, value, probes)
    ending = lane.ending
    ends = bench.wire(put & lane.last)
    base = first_number(bench, ends, ending)
    kept = bench.wire(Cat(base, ending.punctuation.as_value(), reduced))
    parts = group_parts(ending, probes)
    word = dut.o.payload
    is_part = part_of(word, ending.punctuation, probes)
    inside = keeps_sequence(bench, "reducer", ends, parts, kept, got, is_part, most=30)
    stuck = dut.o.ready & ~dut.o.valid & (inside != 0)
    answers_within(bench, "a word leaves while any is inside", stuck, 4)
    idle = dut.i.valid & ~dut.i.ready & dut.o.ready
    answers_within(bench, "a lane is taken as soon as there is room", idle, 8)
    bench.cover("a value of two matches leaves", got & (word.body.value["count"] == 2))
