# SPDX-License-Identifier: Apache-2.0
"""Proofs about turns that change: which core stores a tuple, and whose oldest tuple leaves."""

from amaranth import *

from hdl.ingress.storage_turns import LISTS, CoreLists, ListWalk, SideTurns, StorageTurns

from .proof import proof
from .small import window_parameters
from .turns_model import Lists, TurnsWindow

__all__ = []


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
