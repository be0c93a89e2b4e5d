# SPDX-License-Identifier: Apache-2.0
"""Matches of groups whose walks overlap, sent from star to star, against lists."""

import random

import pytest

from hdl.index.layouts import bank_count, closed_layout, found_layout, group_count
from hdl.index.results import GroupResults
from hdl.parameters import JoinParameters
from hdl.words.results import ResultKind, node_result
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import integer

IN_FLIGHT = 3
DEADLINE = 4_000


def results_of(comparator):
    """The results of an index with groups of 8 probes."""
    parameters = JoinParameters.of(
        engine="index", comparator=comparator, sub_window=20, probes=8, probe_bits=8
    )
    return GroupResults(parameters, in_flight=IN_FLIGHT)


class Walks:
    """Walks of groups, which begin and end at random, and what the results make of them."""

    def __init__(self, dut, seed, groups):
        self.dut = dut
        self.generator = random.Random(seed)
        self.groups = group_count(dut.parameters)
        self.to_take = list(range(groups))
        self.begins = {n: self.generator.randrange(6) for n in self.to_take}  # visits to come
        self.ends = dict.fromkeys(self.to_take, 0)  # walks under way
        self.matches = {n: [] for n in self.to_take}
        self.words = []
        self.taken, self.final = [], set()

    def chance(self):
        """Does it happen in this cycle?"""
        return self.generator.random() < 0.5

    def group(self, n):
        """A closed group: it has 8 probes, and a star, but for every fourth."""
        punctuation = {"overflow": 0, "disorder": 0, "illegal": 0, "free": 0}
        ending = {"count": 8, "star": n % 4 != 3, "mark": 0, "punctuation": punctuation}
        return integer(closed_layout(self.dut.parameters), {"ending": ending, "first": n % 8})

    async def cycle(self, ctx):
        """Begin, end, find, and take what there is."""
        self.take(ctx)
        self.begin(ctx)
        self.end(ctx)
        ready = self.chance()
        ctx.set(self.dut.results.ready, ready)
        *_, valid, word = await ctx.tick().sample(
            self.dut.results.valid, self.dut.results.payload.as_value()
        )
        if valid and ready:
            self.words.append(node_result(self.dut.parameters, 0).from_bits(word))
        assert not ctx.get(self.dut.idle) or ctx.get(self.dut.free) == (1 << self.groups) - 1

    def take(self, ctx):
        """A group begins."""
        ctx.set(self.dut.take, 0)
        if self.to_take and self.chance():
            number = 1 << self.to_take[0] % self.groups
            if ctx.get(self.dut.free) & number:
                ctx.set(self.dut.take, number)
                ctx.set(self.dut.group.as_value(), self.group(self.to_take[0]))
                self.taken.append(self.to_take.pop(0))

    def begin(self, ctx):
        """A visit of the oldest group that has any begins walks in some banks, or in none."""
        under_way = [n for n in self.taken if n not in self.final]
        started, final = [0] * bank_count(self.dut.parameters), 0
        if under_way and under_way[0] != self.taken[-1] and self.chance():
            n = under_way[0]
            bit = 1 << n % self.groups
            if self.begins[n]:
                self.begins[n] -= 1
                started = [bit * self.chance() for _ in started]
                self.ends[n] += sum(map(bool, started))
            if not self.begins[n]:
                self.final.add(n)
                final = bit
        for port, groups in zip(self.dut.started, started, strict=True):
            ctx.set(port, groups)
        ctx.set(self.dut.final, final)

    def end(self, ctx):
        """A walk of any group finds an entry and ends, or does one of both."""
        walking = [n for n, walks in self.ends.items() if walks]
        ended = found = 0
        if walking and self.chance():
            n = self.generator.choice(walking)
            bit = 1 << n % self.groups
            ended = self.chance()
            queue = ctx.get(self.dut.queues[n % self.groups])
            if self.chance() and ctx.get(self.dut.room) >> queue & 1:
                found = 1
                base = 8 if n % 4 == 0 and n else 0  # the group before it has no star
                number, place = base + self.generator.randrange(8), self.generator.randrange(16)
                match = {"number": number, "place": place}
                ctx.set(
                    self.dut.found.as_value(), integer(found_layout(self.dut.parameters), match)
                )
                ctx.set(self.dut.found_queue, queue)
                self.matches[n].append((number, place))
            self.ends[n] -= ended
            ended *= bit
        ctx.set(self.dut.ended, ended)
        ctx.set(self.dut.found_valid, found)


@pytest.mark.few(3)
@pytest.mark.parametrize("comparator", ["equality", "band"])
@pytest.mark.parametrize("seed", range(3))
def test_results_leave_star_by_star(comparator, seed):
    """The matches of all groups up to a star, in any order; then the star; none too early."""
    groups = 40
    bench = Walks(results_of(comparator), seed, groups)

    async def run(ctx):
        for _ in range(DEADLINE):
            await bench.cycle(ctx)
            if not bench.to_take and len(bench.final) == groups - 1:
                break
        else:
            raise AssertionError(f"{len(bench.final)} of {groups} groups after {DEADLINE} cycles")
        for _ in range(200):
            await bench.cycle(ctx)

    simulate(bench.dut, None, run)
    words = iter(bench.words)
    expected = []
    for n in range(groups - 1):
        expected += bench.matches[n]
        if n % 4 == 3:
            continue
        found = []
        for _ in expected:
            word = next(words)
            assert word.kind == ResultKind.PAIR
            found.append((word.body.pair.probe, word.body.pair.row))
        assert sorted(found) == sorted(expected)
        assert next(words).kind == ResultKind.STAR
        expected = []
    # The last group's walks have not ended, so the matches of those before it may have left.
    assert all(word.kind == ResultKind.PAIR for word in words)


def test_latency_of_a_match_and_of_a_star():
    """From a match to its word, and from the last walk of a group, which has it, to its star."""
    dut = results_of("band")
    bench = Walks(dut, 0, 1)

    async def run(ctx):
        ctx.set(dut.results.ready, 1)
        ctx.set(dut.take, 1)
        ctx.set(dut.group.as_value(), bench.group(0))
        await ctx.tick()
        ctx.set(dut.take, 0)
        await ctx.tick().repeat(4)  # until there is room at the output
        ctx.set(dut.started[0], 1)
        ctx.set(dut.final, 1)
        await ctx.tick()
        ctx.set(dut.started[0], 0)
        ctx.set(dut.final, 0)
        await ctx.tick()
        ctx.set(dut.found_valid, 1)
        ctx.set(dut.ended, 1)
        seen = []
        for cycle in range(12):
            if ctx.get(dut.results.valid):
                seen.append((cycle, ctx.get(dut.results.payload.kind)))
            await ctx.tick()
            ctx.set(dut.found_valid, 0)
            ctx.set(dut.ended, 0)
        assert seen == [(dut.latency, ResultKind.PAIR), (8, ResultKind.STAR)]

    simulate(dut, None, run)


@pytest.mark.parametrize("star", [0, 1])
def test_a_younger_group_goes_first_unless_there_is_a_star_between(star):
    """The older group has a walk without end; the other one has found something."""
    dut = results_of("equality")
    bench = Walks(dut, 0, 2)
    kinds = []

    async def run(ctx):
        ctx.set(dut.results.ready, 1)
        for n in range(2):
            group = {"ending": {"count": 8, "star": star or n}, "first": 0}
            ctx.set(dut.take, 1 << n)
            ctx.set(dut.group.as_value(), integer(closed_layout(dut.parameters), group))
            await ctx.tick()
        ctx.set(dut.take, 0)
        ctx.set(dut.started[0], 0b11)
        ctx.set(dut.final, 0b11)
        await ctx.tick()
        ctx.set(dut.started[0], 0)
        ctx.set(dut.final, 0)
        ctx.set(dut.found_valid, 1)
        ctx.set(dut.found_queue, ctx.get(dut.queues[1]))
        ctx.set(dut.ended, 0b10)
        await ctx.tick()
        ctx.set(dut.found_valid, 0)
        ctx.set(dut.ended, 0)
        for cycle in range(60):
            if ctx.get(dut.results.valid):
                kinds.append((cycle > 30, ctx.get(dut.results.payload.kind)))
            ctx.set(dut.ended, cycle == 30)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(bench.dut, None, run)
    late = [(True, ResultKind.STAR)]
    if star:
        assert kinds == [*late, (True, ResultKind.PAIR), *late]
    else:
        assert kinds == [(False, ResultKind.PAIR), *late]


def test_groups_without_matches_and_stars_take_two_cycles_each():
    dut = results_of("equality")
    groups = group_count(dut.parameters)
    released = []

    async def run(ctx):
        group = {"ending": {"count": 8, "star": 0}, "first": 0}
        ctx.set(dut.group.as_value(), integer(closed_layout(dut.parameters), group))
        for n in range(groups):
            ctx.set(dut.take, 1 << n)
            await ctx.tick()
        ctx.set(dut.take, 0)
        ctx.set(dut.final, (1 << groups) - 1)
        for cycle in range(60):
            if ctx.get(dut.release):
                released.append(cycle)
            await ctx.tick()
            ctx.set(dut.final, 0)

    simulate(dut, None, run)
    assert len(released) == groups
    assert released[-1] - released[0] == 2 * (groups - 1)
