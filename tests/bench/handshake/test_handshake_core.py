# SPDX-License-Identifier: Apache-2.0
"""A core of the handshake join against a model that sees the same things happen in order."""

from collections import deque
from itertools import pairwise
import random

import pytest

from bench.handshake import HANDSHAKE
from bench.handshake.layouts import LaneKind
from tests.bench.handshake.core_bench import core_parameters
from tests.bench.handshake.flow_bench import FlowBench
from tests.halves import half

R, S = 0, 1
ACK, EXPIRE, FENCE = ({"kind": kind} for kind in (LaneKind.ACK, LaneKind.EXPIRE, LaneKind.FENCE))


def tuple_of(x):
    return {"kind": LaneKind.TUPLE, "body": {"tuple": {"key": {"x": x}}}}


class Model:
    """A core: what it keeps, what it finds and what it sends on."""

    def __init__(self):
        self.kept, self.here, self.came = [{}, {}], [deque(), deque()], [0, 0]
        self.found, self.sent = [[], []], [[], []]

    def leave(self, side):
        """The oldest tuple leaves; one of R that is sent on is still kept."""
        return self.here[side].popleft()

    def send(self, side):
        """Send the oldest tuple on."""
        number = self.leave(side)
        self.sent[side].append((LaneKind.TUPLE, self.kept[side][number]))
        if side == S:
            del self.kept[S][number]

    def take(self, lane, word):
        """Take a word."""
        kind = word["kind"]
        if kind == LaneKind.ACK:
            del self.kept[R][min(self.kept[R])]
        elif kind == LaneKind.EXPIRE:
            del self.kept[1 - lane][self.leave(1 - lane)]
        elif kind == LaneKind.FENCE:
            self.found[lane].append("mark")
            self.sent[lane].append((kind, None))
        else:
            number, x = self.came[lane], word["body"]["tuple"]["key"]["x"]
            found = [n for n, key in self.kept[1 - lane].items() if key == x]
            self.found[lane] += [(number, n) if lane == R else (n, number) for n in found]
            self.kept[lane][number] = x
            self.here[lane].append(number)
            self.came[lane] += 1
            if lane == R:
                self.sent[S].append((LaneKind.ACK, None))


def neighbours(core, generator, count):
    """Return the words of both lanes, and scripts that send them.

    Where a side's tuples leave the chain, words of the other side's lane expire them. The left
    neighbour acknowledges tuples of R some time after they were sent.
    """
    lanes = [[], []]
    ends = [core.position == 0, core.last]  # of the way of R, and of S

    async def put(ctx, lane, word):
        lanes[lane].append(word)
        await core.send(ctx, lane, [word])

    def unacknowledged():
        return core.tuples(R) - lanes[S].count(ACK)

    def held(side):
        return sum("body" in word for word in lanes[side]) - lanes[1 - side].count(EXPIRE)

    async def lane(ctx, own):
        missing, other = count, 1 - own
        while missing or (ends[other] and lanes[own].count(EXPIRE) < count):
            core.held[own] = core.most if ends[own] else generator.randrange(6)
            if own == S and unacknowledged() and generator.random() < 0.7:
                await put(ctx, S, ACK)
            elif ends[other] and held(other) > generator.randrange(9) * bool(missing):
                await put(ctx, own, EXPIRE)
            elif missing:
                missing -= 1
                await put(ctx, own, tuple_of(generator.randrange(4)))
            else:
                await ctx.tick()
        await put(ctx, own, FENCE)
        core.held[own] = core.most if ends[own] else 0  # all that are here leave
        while not (core.is_marked(R) and core.is_marked(S) and core.is_empty):
            await (put(ctx, S, ACK) if own == S and unacknowledged() else ctx.tick())

    return lanes, [lambda ctx: lane(ctx, R), lambda ctx: lane(ctx, S)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "position", "sub_window", "stalls"),
    half([(2, 1, 4), (1, 0, 3), (2, 0, 1), (5, 3, 5), (3, 1, 2)], [0.0, 0.5], of=5),
)
def test_a_core_finds_keeps_and_sends_on_what_a_model_does(cores, position, sub_window, stalls):
    parameters, generator = (
        core_parameters(HANDSHAKE, cores=cores, sub_window=sub_window),
        random.Random(cores + position),
    )
    core = FlowBench(
        parameters, position=position, last=int(position == cores - 1), stalls=stalls, seed=cores
    )
    lanes, scripts = neighbours(core, generator, 60)
    core.run(*scripts)
    model = Model()
    for side, word in core.happened(lanes):
        if word is None:
            model.send(side)
        else:
            model.take(side, word)
    assert sum(len(found) for found in model.found) > 40
    for side in (R, S):
        assert core.results(side) == model.found[side]
        assert core.words(side) == model.sent[side]


def core_of(cores, sub_window=8, position=0, **others):
    parameters = core_parameters(HANDSHAKE, cores=cores, sub_window=sub_window)
    return FlowBench(parameters, position=position, last=int(position == cores - 1), **others)


@pytest.mark.parametrize(("cores", "lane"), half([1, 2, 3, 5], [R, S]))
def test_a_word_passes_a_core_in_two_cycles_and_one_leaves_in_each(cores, lane):
    core, taken = core_of(cores), []

    async def script(ctx):
        for _ in range(6):
            taken.append(await core.send(ctx, lane, [FENCE]))

    core.run(script)
    assert core.stamps[lane] == [taken[0] + 2 + n for n in range(6)]


@pytest.mark.parametrize(("cores", "side"), half([2, 3, 5], [R, S]))
def test_an_idle_core_sends_a_tuple_on_after_the_stated_cycles(cores, side):
    """After it got another one, or 5 cycles after it came itself; with 2 in the links."""
    core, came = core_of(cores), []

    async def script(ctx):
        core.held[side] = 1
        await core.send(ctx, side, [tuple_of(3)])
        await ctx.tick().repeat(30)
        assert core.words(side) == []  # the neighbour has as many
        came.append(await core.send(ctx, side, [tuple_of(4)]))
        await ctx.tick().repeat(30)
        assert core.words(side) == [(LaneKind.TUPLE, 3)]
        core.held[side] = 0
        await ctx.tick().repeat(30)
        came.append(await core.send(ctx, side, [tuple_of(5)]))

    core.run(script)
    assert [x for _, x in core.words(side)] == [3, 4, 5]
    stamps = core.stamps[side]
    assert [stamps[0] - came[0], stamps[2] - came[1]] == [2 + 2, 2 + 5]


@pytest.mark.parametrize(("lane", "cores"), half([R, S], [1, 2, 3, 5]))
def test_a_match_is_found_after_the_stated_cycles(cores, lane):
    """Row 0 of an idle core."""
    core, came = core_of(cores), []

    async def script(ctx):
        await core.send(ctx, 1 - lane, [tuple_of(9)])
        await ctx.tick().repeat(30)
        came.append(await core.send(ctx, lane, [tuple_of(9)]))

    core.run(script)
    assert core.results(lane) == [(0, 0)]
    # The tuple is at the output of the link in the cycle after its transfer.
    assert core.found_at[lane][0] - (came[0] + 1) == core.dut.latency


@pytest.mark.few(2)
@pytest.mark.parametrize(("lane", "rows"), half([R, S], [1, 2, 3, 4, 7]))
def test_passes_take_a_cycle_for_each_row_while_nothing_is_sent(rows, lane):
    core = core_of(1, sub_window=16)

    async def script(ctx):
        await core.send(ctx, 1 - lane, [tuple_of(n) for n in range(rows)])
        await ctx.tick().repeat(60)
        await core.send(ctx, lane, [tuple_of(n % rows) for n in range(20)])
        await ctx.tick().repeat(20 * rows)

    core.run(script)
    assert len(core.found_at[lane]) == 20
    found = core.found_at[lane][::rows]  # by tuples with the same match
    assert {then - now for now, then in pairwise(found)} == {rows * rows}


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [4, 5, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 7))])
def test_a_tuple_takes_a_cycle_more_than_it_has_rows_while_others_are_sent(rows):
    """In that cycle a tuple of the other side is read; all are equal, so every row is a match."""
    core, count, acknowledged = core_of(3, position=1), 40, 0
    core.held = [0, rows]

    async def r(ctx):
        await ctx.tick().repeat(100)
        await core.send(ctx, R, [tuple_of(9)] * count)

    async def s(ctx):
        nonlocal acknowledged
        await core.send(ctx, S, [tuple_of(9)] * rows)
        await ctx.tick().repeat(100)
        while acknowledged < count:
            if acknowledged < core.tuples(R):
                acknowledged += 1
                await core.send(ctx, S, [ACK])
            await core.send(ctx, S, [tuple_of(9)])

    core.run(r, s)
    found = [pair[0] for pair in core.results(R)]
    first, last = found.index(5), found.index(25)
    cycles = core.found_at[R][last] - core.found_at[R][first]
    assert 20 * rows <= last - first < cycles <= last - first + 20 + 1  # which was read before
