# SPDX-License-Identifier: Apache-2.0
"""Proofs about the cores that store: whose turn it is, and how epochs change their lists."""

from amaranth import *

from hdl.ingress.ingress import Ingress
from hdl.ingress.storage_turns import LISTS, CoreLists, ListWalk, SideTurns, StorageTurns
from hdl.trees.distribution import DistributionNode, DistributionTree
from hdl.words.inputs import Control, InputKind

from .proof import proof
from .small import ingress_parameters, window_parameters
from .stream_rules import offer, take

__all__ = ["Lists", "TurnsWindow"]

# Models of turns: lists of cores, and the tuples of a window one by one, with their cores.

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


# Proofs about turns that change: which core stores a tuple, and whose oldest tuple leaves.


@proof(
    "core-lists",
    says="lists take the cores that exist, once each, and none is begun while it is needed",
    component="CoreLists, 3 cores",
    depth=10,
    induction=1,
    mutate=(CoreLists,),
)
def core_lists(bench):
    """Lists of up to three cores. A side may need any list at any time."""
    parameters = window_parameters()
    cores, slack = parameters.cores, parameters.slack
    dut = bench.add(CoreLists(parameters))
    inputs = {name: bench.any(1, name) for name in ("append", "begin", "forget", "advance")}
    append, begin, forget, advance = inputs.values()
    bench.assume((append + begin + forget) <= 1)
    value, needed = bench.any(2, "value"), bench.any(1, "needed")
    exists, which = value < cores, Cat(value == n for n in range(cores))
    bench.drive(dut, **inputs, core=value, exists=exists, which=which, needed=needed)
    needed = bench.past(needed)

    write, begins = Signal(name=bench.name("write")), Signal(name=bench.name("begins"))
    lists = Lists(bench, cores, write=write, value=value, begins=begins, forget=forget & advance)
    twice = lists.listed.bit_select(value, 1)
    refused = {
        "core": append & (~exists | twice), "segment": begin & ((lists.length == 0) | needed)
    }  # fmt: skip
    bench.set(write, advance & append & ~refused["core"])
    bench.set(begins, advance & begin)
    bench.assume(~(advance & refused["segment"]))
    bench.claim(
        "a core is refused if there is none of its number or if it is listed already, a segment if"
        " its list is empty or if a side needs the list that follows",
        (dut.core_refused == refused["core"]) & (dut.segment_refused == refused["segment"]),
    )
    told = lists.told(bench, dut.lists.shape(), begins)
    entry = Cat(lists.length[:2], told[0].number)
    bench.claim(
        "each core of a list is written once, at the end of it, in the cycle after its word",
        (dut.write == bench.past(write))
        & (~dut.write | ((dut.entry == bench.past(entry)) & (dut.value == bench.past(value)))),
    )
    bench.claim("the limit is that of the cores in force", dut.limit == slack * lists.live)
    for at, words in enumerate(("being written", "in force", "of the segment before")):
        vacant = (lists.length == 0) & (at == 0)
        bench.claim(
            f"the list {words} tells where it is, its first entry and the number of its last one",
            Mux(vacant, dut.lists[at].number == told[at].number, dut.lists[at] == told[at]),
        )
    list_states(bench, dut, lists, told)
    bench.cover(
        "all cores are live, in another order",
        (lists.live == cores) & (lists.now[0] == 2) & (lists.now[1] == 0),
    )
    bench.cover(
        "a segment is refused as its list is needed", refused["segment"] & (lists.length != 0)
    )


def list_states(bench, dut, lists, told):
    """Claim the states of :class:`CoreLists`, as invariants."""
    listed, length, vacant = (bench.inside(dut, name) for name in ("listed", "length", "vacant"))
    bench.invariant((listed == lists.listed) & (length == lists.length))
    bench.invariant(vacant == (length == 0))
    bench.invariant(bench.inside(dut, "barred") | ~vacant)
    bench.invariant(lists.length == sum(listed[n] for n in range(len(listed))))
    bench.invariant((lists.live > 0) & (lists.live <= len(listed)))


@proof(
    "side-turns",
    says="the core that stores and the core whose tuple leaves are those of a window that keeps"
    " each tuple with its core, over any segments",
    component="SideTurns, 3 cores, windows of 1 to 3",
    depth=15,
    mutate=(SideTurns, ListWalk),
    spared={
        "elaborate_total: init=1 -> init=0": "the room is that of a full window after power-up"
        " too; a reset does not restore it",
        "older.eq(older - 1) and single.eq(older == 2)": "it shows in windows of four tuples"
        " and more",
    },
)
def side_turns(bench):
    """One side of three cores, whose lists come as :class:`CoreLists` writes them."""
    parameters = window_parameters(sub_window=1)
    cores, capacity = parameters.cores, parameters.capacity
    dut = bench.add(SideTurns(parameters))
    names = ("tuple", "restart", "segment", "advance")
    inputs = {name: bench.any(1, name) for name in names}
    held, empties, segment, taken = inputs.values()
    write = bench.any(1, "write")
    advance, restart, begins = taken & held, taken & empties, taken & segment
    bench.assume((held + empties + segment + write) <= 1)
    begin, timed, size = bench.any(1, "begin"), bench.any(1, "timed"), bench.any(2, "size")
    value = bench.any(2, "value")
    bench.assume((size > 0) & (size <= capacity) & (value < cores))
    lists = Lists(bench, cores, write=write, value=value, begins=begins, forget=C(0))
    bench.assume(~write | ((lists.length < cores) & ~lists.listed.bit_select(value, 1)))
    window = TurnsWindow(
        bench,
        lists,
        capacity,
        advance=advance,
        restart=restart,
        begins=begins,
        begin=begin,
        size=size,
        timed=timed,
    )
    bench.assume(~begins | ((lists.length != 0) & (window.empty | (window.age < LISTS - 2))))
    told = lists.told(bench, dut.lists.shape(), begins)
    entry = bench.past(Cat(lists.length[:2], told[0].number))
    bench.drive(
        dut, **inputs, begin=begin, size=size, timed=timed, lists=told,
        write=bench.past(write), entry=entry, value=bench.past(value),
    )  # fmt: skip
    bench.claim("cores store in the order of the list in force", dut.core == window.core)
    bench.claim("a tuple leaves if a count-based window is full", dut.expires == window.leaves)
    bench.claim(
        "the tuple that leaves is the oldest one", ~window.leaves | (dut.oldest == window.oldest)
    )
    bench.claim(
        "a window has told whether it has tuples of three segments",
        bench.past(dut.spans_three) == (~window.empty & (window.age == LISTS - 2)),
    )
    side_states(bench, dut, lists, window, told)
    bench.cover(
        "three segments have tuples, of which the oldest leaves",
        window.leaves & advance & (window.age == 2),
    )
    bench.cover(
        "a segment without tuples is skipped",
        window.leaves & advance & (window.age == 2) & (window.size == 1),
    )


def side_states(bench, dut, lists, window, told):
    """Claim the states of :class:`SideTurns`, as invariants, which makes the search short."""
    ages = [(n < window.held, age) for n, age in enumerate(window.ages)]
    newer, middle, older = (bench.inside(dut, name) for name in ("newer", "middle", "older"))
    has = [bench.inside(dut, name) for name in ("has_newer", "has_middle", "has_older")]
    of_newest = sum(here & (age == 0) for here, age in ages)
    of_oldest = sum(here & (age == window.age) & (age != 0) for here, age in ages)
    between = sum(here & (age != window.age) & (age != 0) for here, age in ages)
    for held, some, number in zip(
        (newer, middle, older), has, (of_newest, between, of_oldest), strict=True
    ):
        bench.invariant((some == (number != 0)) & (~some | (held == number)))
    bench.invariant(window.timed | (newer == of_newest))
    single, fresh, room, size = (
        bench.inside(dut, name) for name in ("single", "fresh", "room", "size")
    )
    bench.invariant(~has[2] | (single == (older == 1)))
    bench.invariant(size == window.size)
    bench.invariant(fresh | window.timed | dut.expires | (room == window.size - window.held))
    bench.invariant(~fresh | (window.held == 0))
    for name, turn, age in (
        ("storing", window.turn, C(0)),
        ("leaving", None, bench.wire(Mux(window.empty, 0, window.age))),
    ):
        known, core = ("coming", "last", "plain", "at"), bench.inside(dut, name).core
        coming, last, plain, kept = (bench.inside(dut, name, one) for one in known)
        bench.invariant(kept == (told[1].number - age)[: len(kept)])
        for n in range(2):
            at = told[n + 1]
            bench.invariant((age != n) | ((last == at.last) & (plain == at.plain)))
        bench.invariant((coming <= last) & ((coming == 0) | (last != 0)))
        if turn is None:
            bench.invariant(window.empty | (core == window.oldest))
        else:
            bench.invariant((last == lists.live - 1) & (turn <= last))
            bench.invariant(coming == Mux(turn == last, 0, turn + 1))


@proof(
    "storage-turns",
    says="… and so they are for both sides under any interleaving of tuples and control words",
    component="StorageTurns, 2 cores, windows of 1 to 2",
    depth=12,
    mutate=(StorageTurns,),
)
def storage_turns(bench):
    """Two cores, each with room for one tuple; both sides, and every word that concerns them."""
    parameters = window_parameters(cores=2, sub_window=1)
    cores, capacity = parameters.cores, parameters.capacity
    dut = bench.add(StorageTurns(parameters))
    names = ("core", "segment", "clear", "begins")
    flags = {name: bench.any(1, name) for name in names}
    core, segment, clear, begins = flags.values()
    taken, tuples, empties = (bench.any(n, "word") for n in (1, 2, 2))
    timed, value = bench.any(1, "timed"), bench.any(dut.value.shape(), "value")
    below, above = bench.any(1, "below"), bench.any(1, "above")
    bench.assume((core + segment + clear + begins + tuples.any()) <= 1)
    bench.assume((empties == 0) | clear | begins)
    bench.assume(~clear | (empties == 3))
    bench.assume(~begins | (empties == 1) | (empties == 2))
    bench.assume((below == (value < 1)) & (above == (value > capacity)))
    advance = bench.wire(taken & ~dut.segment_refused)
    given = {**flags, "advance": advance, "tuples": tuples, "empties": empties, "timed": timed,
             "value": value}  # fmt: skip
    bench.drive(dut, **given, which=Cat(value[0] == n for n in range(cores)))
    bench.set(dut.exists, (value >= 0) & (value < cores))
    bench.set(dut.limits.WINDOW.below, below)
    bench.set(dut.limits.WINDOW.above, above)

    exists = (value >= 0) & (value < cores)
    write, starts = Signal(name=bench.name("write")), Signal(name=bench.name("starts"))
    lists = Lists(bench, cores, write=write, value=value[0], begins=starts, forget=clear & advance)
    size = Mux(below, 1, Mux(above, capacity, value))[: range(capacity + 1).stop.bit_length()]
    windows = [
        TurnsWindow(
            bench, lists, capacity, advance=advance & tuples[n], restart=advance & empties[n],
            begins=starts, begin=begins, size=size, timed=timed,
        )
        for n in range(2)
    ]  # fmt: skip
    needed = Cat(~window.empty & (window.age == LISTS - 2) for window in windows).any()
    refused = {
        "core": core & (~exists | lists.listed.bit_select(value[0], 1)),
        "segment": segment & ((lists.length == 0) | needed),
    }
    bench.set(write, advance & core & ~refused["core"])
    bench.set(starts, advance & segment & ~refused["segment"])
    bench.claim(
        "a core is refused that does not exist or is listed, a segment without cores or"
        " while a window has tuples of the third one before",
        (dut.core_refused == refused["core"]) & (dut.segment_refused == refused["segment"]),
    )
    bench.claim(
        "the limit is that of the cores in force", dut.limit == parameters.slack * lists.live
    )
    for n, (name, window) in enumerate(zip("RS", windows, strict=True)):
        bench.claim(f"cores store {name} in the order of the list", dut.storing[n] == window.core)
        bench.claim(f"a tuple of {name} leaves a full window", dut.leaves[n] == window.leaves)
        bench.claim(
            f"the oldest tuple of {name} leaves", ~window.leaves | (dut.leaving[n] == window.oldest)
        )
    bench.cover(
        "a segment is refused as a window still needs the third one before",
        segment & needed & (lists.length != 0),
    )
    bench.cover(
        "one side leaves a core that no longer stores",
        windows[0].leaves & (lists.live == 1) & (windows[0].oldest != lists.now[0]),
    )


# Proofs about epochs: all cores change at the same tuple, and each tuple has one owner.

#: Numbers of tuples of R that are followed, one in each proof run.
TUPLES = 3
CORES = 2


@proof(
    "epochs",
    says="no two cores disagree on the epoch of a tuple, and exactly one of them stores it",
    component="Ingress and DistributionTree, 2 cores, any of the first 3 tuples",
    depth=11,
    mutate=(ListWalk.following, DistributionNode.elaborate),
    spared={
        "place + 1 -> place - 1": "of two cores, the next one is the one before: side-turns",
        "choices swapped": "it shows in the fourth tuple: side-turns",
        "place == last -> place != last": "likewise",
        "without words.ready": "no word leaves any more: distribution-node",
        "without register.i.valid": "likewise",
        "-> exchanged": "likewise",
        "all() ->": "it takes more words than the bound allows until a child is full:"
        " distribution-node",
    },
)
def epochs(bench):
    """An ingress and a distribution tree over two cores, which take words at any time.

    Words are tuples of R, CORE and SEGMENT in any order. As many segments begin as lists are kept
    for, so that none has to wait. One tuple is followed.
    """
    parameters = ingress_parameters(cores=CORES)
    ingress = bench.add(Ingress(parameters), "ingress")
    shape = ingress.o.payload.shape()
    tree = bench.add(DistributionTree(shape, leaves=CORES, fan_out=2), "tree")
    put = offer(bench, ingress.i)
    bench.set(ingress.room, 1)
    bench.set(Value.cast(tree.i.payload), Value.cast(ingress.o.payload))
    bench.set(tree.i.valid, ingress.o.valid)
    bench.set(ingress.o.ready, tree.i.ready)
    word = ingress.i.payload
    control = word.body.control
    is_tuple = bench.wire(word.kind == InputKind.R)
    is_core, is_segment = (
        bench.wire((word.kind == InputKind.CONTROL) & (control.op == op))
        for op in (Control.CORE, Control.SEGMENT)
    )
    bench.assume(is_tuple | is_core | is_segment)

    value = bench.wire(control.value[0])
    write, begins = (Signal(name=bench.name(name)) for name in ("write", "begins"))
    lists = Lists(bench, CORES, write=write, value=value, begins=begins, forget=C(0))
    known = (control.value >= 0) & (control.value < CORES) & ~lists.listed.bit_select(value, 1)
    bench.set(write, put & is_core & known)
    bench.set(begins, put & is_segment & (lists.length != 0))
    epoch = bench.register(range(LISTS), "epoch")
    bench.assume(~begins | (epoch < LISTS - 2))
    turn, sent = bench.register(range(CORES), "turn"), bench.register(range(TUPLES + 1), "sent")
    last = turn == lists.live - 1
    stores = bench.wire(put & is_tuple)
    bench.next(
        epoch.eq(epoch + begins),
        turn.eq(Mux(begins, 0, Mux(stores, Mux(last, 0, turn + 1), turn))),
        sent.eq(Mux(sent == TUPLES, sent, sent + stores)),
    )
    number = bench.constant(range(TUPLES), "number")
    bench.assume(number < TUPLES)
    followed = bench.wire(stores & (sent == number))
    there = bench.register(1, "there")
    owner, during = bench.register(range(CORES), "owner"), bench.register(range(LISTS), "during")
    bench.next(
        there.eq(there | followed),
        owner.eq(Mux(followed, lists.core(turn), owner)),
        during.eq(Mux(followed, epoch, during)),
    )
    leaves(bench, tree, number, there, owner, during)


def leaves(bench, tree, number, there, owner, during):
    """Claim what each core is told of the tuple that is followed."""
    told = []
    for core, o in enumerate(tree.o):
        got = take(bench, o, f"core {core}")
        is_tuple = o.payload.kind == InputKind.R
        seen = bench.register(range(TUPLES + 1), "seen")
        changes = bench.register(range(LISTS), "changes")
        bench.next(
            seen.eq(Mux(seen == TUPLES, seen, seen + (got & is_tuple))),
            changes.eq(changes + (got & ~is_tuple)),
        )
        here = bench.wire(got & is_tuple & (seen == number))
        bench.claim(f"core {core} has the tuple only once it has been sent", ~here | there)
        bench.claim(f"core {core} has the tuple in its epoch", ~here | (changes == during))
        bench.claim(f"core {core} knows its owner", ~here | (o.payload.storing[0] == owner))
        mine, had = bench.register(1, "mine"), bench.register(1, "had")
        bench.next(mine.eq(Mux(here, o.payload.storing[0] == core, mine)), had.eq(had | here))
        told.append((had, mine))
        bench.cover(
            f"core {core} stores a tuple of the second epoch",
            here & (during == 1) & (o.payload.storing[0] == core),
        )
    (first, one), (second, other) = told
    bench.claim("exactly one core stores the tuple", ~(first & second) | (one ^ other))
    bench.cover(
        "a core has the tuple long before the other one", first & ~second & bench.past(first)
    )
