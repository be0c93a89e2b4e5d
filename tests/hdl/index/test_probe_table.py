# SPDX-License-Identifier: Apache-2.0
"""Probes, their groups and what is read of them, against lists; memories at their worst."""

from collections import deque
from dataclasses import dataclass
import random

import pytest

from hdl.index.layouts import probe_shape, waiting_layout
from hdl.index.probe_table import ProbeTable
from hdl.memory.columns import KeyColumn
from hdl.parameters import JoinParameters, KeyField
from hdl.words.prepared import criterion_layout, ending_layout
from tests.hdl.ecp5 import simulate
from tests.hdl.hostile_column import HostileColumn

CYCLES = 400
#: Cycles until all is visited and released after the last probe.
DEADLINE = 1_000
PROBE_BITS = 3
#: Cycles more than the latency until a probe has ``arrived``.
READ_AHEAD = 3
#: A probe or an end of a group comes so many cycles after it was allowed.
NOTICE = 3


@pytest.fixture(autouse=True)
def hostile(monkeypatch):
    monkeypatch.setattr("hdl.index.probe_table.KeyColumn", HostileColumn)


def table_of(comparator, probes):
    """A table for groups of so many probes, with two key fields."""
    keys = (KeyField(name="x", bits=5), KeyField(name="y", bits=7, signed=False))
    return ProbeTable(
        JoinParameters.of(
            engine="index", comparator=comparator, sub_window=20, probes=probes, keys=keys,
            bucket_bits=4, probe_bits=max(PROBE_BITS, (probes - 1).bit_length()),
        )
    )  # fmt: skip


def members(layout, number):
    """The members of a layout that is an integer, as integers."""
    return {name: number >> f.offset & ((1 << f.width) - 1) for name, f in layout}


def shown(ctx, value):
    """The members of an output, as integers."""
    return members(value.shape(), ctx.get(value.as_value()))


@dataclass
class Pace:
    """How likely it is in each cycle that something happens."""

    add: float = 1.0
    close: float = 0.0  # before the group is full
    void: float = 0.0  # without a probe
    take: float = 1.0
    visit: float = 1.0
    release: float = 1.0


class Probes:
    """What comes to a table, and what it must show."""

    def __init__(self, dut, pace, seed):
        self.dut, self.pace = dut, pace
        self.parameters = dut.parameters
        self.generator = random.Random(seed)
        self.slots = 1 << probe_shape(self.parameters).width
        self.now = 0
        self.tail = 0
        self.open, self.first = 0, 0  # probes of the open group, the tail at the first
        self.number = 0  # probes since the last star
        self.added = []  # cycle, members and number of every probe
        self.closed, self.taken = deque(), deque()  # groups, and their counts
        self.to_visit = self.visited = self.released = 0  # probes whose groups were taken, …
        self.reads = deque([None] * KeyColumn.LATENCY)
        self.allowed = deque([False] * NOTICE)
        self.most_probes = self.most_groups = 0
        self.closed_before = 0  # groups that were closed, and not taken, a cycle ago
        self.full_speed = True  # ``soon`` has always been high

    def goes(self, name):
        """Does it happen in this cycle?"""
        return self.generator.random() < getattr(self.pace, name)

    def cycle(self, ctx):
        """Look, and set the inputs, of one cycle."""
        dut = self.dut
        self.check(ctx)
        # Of groups it is known a cycle later.
        soon = self.closed_before < dut.DEPTH - dut.IN_FLIGHT - 1
        self.closed_before = len(self.closed)
        soon &= len(self.added) - self.released < self.slots - dut.IN_FLIGHT
        assert ctx.get(dut.soon) == soon
        self.full_speed &= soon
        self.allowed.append(soon)
        self.tail += self.generator.choice([0, 0, 1, 5])
        ctx.set(dut.tail, self.tail % (1 << len(dut.tail)))
        self.check_oldest(ctx)
        visit = self.visited < self.to_visit and ctx.get(dut.arrived) and self.goes("visit")
        ctx.set(dut.visited, visit)
        self.read(ctx)
        self.take(ctx)
        self.release(ctx)
        self.visited += visit
        self.come(ctx, self.allowed.popleft())
        self.most_probes = max(self.most_probes, len(self.added) - self.released)
        self.most_groups = max(self.most_groups, len(self.closed))
        self.now += 1

    def check(self, ctx):
        """The oldest group, and the probe that is visited next."""
        dut = self.dut
        assert ctx.get(dut.closed) == bool(self.closed)
        if self.closed:
            assert shown(ctx, dut.group) == self.closed[0]
        arrived = self.visited < len(self.added) and (
            self.now - self.added[self.visited][0] >= dut.latency + READ_AHEAD
        )
        assert ctx.get(dut.arrived) == arrived
        if arrived:
            _, probe, _ = self.added[self.visited]
            visiting = shown(ctx, dut.visiting)
            assert visiting == {name: probe[name] for name in visiting}

    def check_oldest(self, ctx):
        """The first row of the oldest group that has not been taken, or where one would begin."""
        oldest = self.first if self.open else self.tail
        oldest %= 1 << len(self.dut.tail)
        assert ctx.get(self.dut.oldest) == (self.closed[0]["first"] if self.closed else oldest)

    def read(self, ctx):
        """Read what a probe compares entries with; look at what was read before."""
        dut, due = self.dut, self.reads.popleft()
        if due is not None:
            _, probe, number = self.added[due]
            assert (ctx.get(dut.size), ctx.get(dut.number)) == (probe["size"], number)
            criterion = members(criterion_layout(self.parameters), probe["criterion"])
            assert shown(ctx, dut.criterion) == criterion
        last = self.visited + ctx.get(dut.arrived)
        walking = self.generator.randrange(self.released, last) if last > self.released else None
        if walking is not None and self.generator.random() < 0.5:
            walking = last - 1
        self.reads.append(walking)
        ctx.set(dut.walking, self.generator.randrange(self.slots))
        if walking is not None:
            ctx.set(dut.walking, walking % self.slots)

    def take(self, ctx):
        """Take the oldest group."""
        take = bool(self.closed) and self.goes("take")
        ctx.set(self.dut.take, take)
        if take:
            group = self.closed.popleft()
            count = members(ending_layout(self.parameters), group["ending"])["count"]
            self.taken.append(count)
            self.to_visit += count

    def release(self, ctx):
        """Release the oldest group, if all of its probes were visited in earlier cycles."""
        release = self.taken and self.released + self.taken[0] <= self.visited
        release = bool(release) and self.goes("release")
        ctx.set(self.dut.release, release)
        ctx.set(self.dut.released, self.taken[0] if release else self.generator.randrange(2))
        if release:
            self.released += self.taken.popleft()

    def come(self, ctx, allowed):
        """A probe comes, the end of a group, or both."""
        dut, parameters = self.dut, self.parameters
        layout = waiting_layout(parameters)
        probe = self.generator.getrandbits(layout.size)
        add = allowed and self.goes("add")
        full = add and self.open + 1 == parameters.engine.probes
        last = add and self.number + 1 == 1 << parameters.engine.probe_bits  # a star must follow
        close = full or last or (allowed and self.goes("close" if add else "void"))
        ending_shape = ending_layout(parameters)
        ending = self.generator.getrandbits(ending_shape.size)
        star = ending_shape["star"].offset
        ending |= last << star
        ctx.set(dut.add, add)
        ctx.set(dut.probe.as_value(), probe)
        ctx.set(dut.close, close)
        ctx.set(dut.ending.as_value(), ending)
        first = self.first if self.open else self.tail % (1 << len(dut.tail))
        if add:
            self.added.append((self.now, members(layout, probe), self.number))
            self.first = first
            self.open += 1
            self.number += 1
        if close:
            place = ending_shape["count"]
            ending &= ~(((1 << place.width) - 1) << place.offset)
            ending |= self.open << place.offset
            self.closed.append({"ending": ending, "first": first})
            self.open = 0
            if ending >> star & 1:
                self.number = 0


def run(comparator, probes, pace, *, seed=1, cycles=CYCLES):
    """Let probes come for so many cycles; then the open group ends, and all are released."""
    bench = Probes(table_of(comparator, probes), pace, seed)

    async def body(ctx):
        for _ in range(cycles):
            bench.cycle(ctx)
            await ctx.tick()
        bench.pace = Pace(add=0.0, void=1.0)
        for _ in range(DEADLINE):
            if bench.released == len(bench.added):
                return
            bench.cycle(ctx)
            await ctx.tick()
        raise AssertionError(f"{bench.released} of {len(bench.added)} probes were released")

    simulate(bench.dut, None, body)
    return bench


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("comparator", "probes"), [("equality", 1), ("band", 2), ("equality", 3), ("band", 8)]
)
def test_probes_and_groups_come_out_in_order(comparator, probes):
    pace = Pace(add=0.8, close=0.2, void=0.1, take=0.6, visit=0.8, release=0.7)
    bench = run(comparator, probes, pace, seed=probes)
    assert len(bench.added) > bench.slots  # the ring has begun again


@pytest.mark.parametrize("probes", [2, 5])
def test_a_probe_in_every_cycle(probes):
    """Groups that are taken, visited and released at once never make the next probe wait."""
    bench = run("equality", probes, Pace(), seed=probes)
    assert bench.full_speed
    assert len(bench.added) == CYCLES - NOTICE


@pytest.mark.parametrize(
    ("comparator", "probes", "cycles"), [("equality", 4, CYCLES), ("band", 17, 600)]
)
def test_a_table_that_is_full_of_probes(comparator, probes, cycles):
    """Groups that are seldom answered fill it to its last place; then as many come as go."""
    bench = run(comparator, probes, Pace(release=0.01), cycles=cycles)
    assert bench.most_probes == bench.slots


@pytest.mark.parametrize("void", [0.0, 1.0])
def test_a_table_that_is_full_of_groups(void):
    """Groups that are not taken, with one probe each or without any."""
    bench = run("band", 1, Pace(add=1.0 - void, void=void, take=0.05), cycles=300)
    assert bench.most_groups == bench.dut.DEPTH


def test_an_open_group_leaves_room_for_a_probe():
    """Whatever its size, once the groups before it are answered."""
    dut = table_of("equality", 40)
    bench = Probes(dut, Pace(), 1)

    async def body(ctx):
        for _ in range(NOTICE + dut.parameters.engine.probes - 1):
            bench.cycle(ctx)
            await ctx.tick()
        assert bench.full_speed
        assert bench.open == dut.parameters.engine.probes - 1

    simulate(dut, None, body)
