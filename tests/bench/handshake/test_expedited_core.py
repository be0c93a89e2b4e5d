# SPDX-License-Identifier: Apache-2.0
"""A core of the low-latency handshake join against a model that takes words in the same order."""

from collections import deque
from itertools import pairwise
import random

import pytest

from bench.handshake import LOW_LATENCY
from bench.handshake.chain import ExpeditedCore
from bench.handshake.layouts import LaneKind
from tests.bench.handshake.core_bench import CoreBench, core_parameters
from tests.halves import half

ARCHITECTURE = LOW_LATENCY
R, S = 0, 1
ACK, EXPIRE, FENCE = ({"kind": kind} for kind in (LaneKind.ACK, LaneKind.EXPIRE, LaneKind.FENCE))


def tuple_of(x, *, before=0, homeless=1):
    body = {"tuple": {"key": {"x": x}}}
    return {"kind": LaneKind.TUPLE, "homeless": homeless, "before": before, "body": body}


class Model:
    """A core, word by word: what it keeps and has in flight, what it finds and sends on."""

    def __init__(self, parameters, position, last):
        self.cores, self.position, self.last = parameters.cores, position, last
        self.kept, self.arrived, self.expired = [{}, {}], [0, 0], [0, 0]
        self.flying, self.acknowledged = {}, 0  # tuples of S that were sent on
        self.found, self.sent = [[], []], [[], []]

    def take(self, lane, word):
        """Take a word of a lane."""
        kind = word["kind"]
        if kind == LaneKind.ACK:
            self.acknowledged += 1
            return
        if kind == LaneKind.FENCE:
            self.found[lane].append("mark")
        elif kind == LaneKind.EXPIRE:
            self.kept[1 - lane].pop(self.expired[1 - lane], None)
            self.expired[1 - lane] += 1
        else:
            self.tuple(lane, word)
        self.sent[lane].append(
            (kind, word["body"]["tuple"]["key"]["x"] if "body" in word else None)
        )

    def tuple(self, lane, word):
        """Compare a tuple with those of the other side, and keep it if this is its home."""
        number, x = self.arrived[lane], word["body"]["tuple"]["key"]["x"]
        found = [n for n, key in self.kept[1 - lane].items() if key == x and n < word["before"]]
        if lane == R:
            first = max(self.acknowledged, self.expired[S])
            for n in range(first, self.arrived[S] if not self.last else first):
                key, homeless, expired = self.flying[n]
                counts = homeless if n < word["before"] else word["homeless"] and number >= expired
                found += [n] if counts and key == x else []
        else:
            self.sent[R].append((LaneKind.ACK, None))
        self.found[lane] += [(number, n) if lane == R else (n, number) for n in found]
        mine = number % self.cores == self.position
        if mine and number >= self.expired[lane]:
            self.kept[lane][number] = x
        if lane == S:
            self.flying[number] = (x, word["homeless"] and not mine, self.expired[R])
        self.arrived[lane] += 1


def schedule(core, generator, count):
    """Return words as a coordinator and the other cores send them, each with its lane.

    A full window loses its oldest tuple before the next one, often sooner. A tuple that has passed
    its home is not homeless any more.
    """
    parameters, words = core.parameters, []
    numbers, expired = [0, 0], [0, 0]
    for _ in range(count):
        own = generator.randrange(2)
        for side in (R, S):
            held = numbers[side] - expired[side]
            leave = int(side == own and held == parameters.capacity)
            if held and generator.random() < 0.1:
                leave = generator.randint(leave, held)
            words += [(1 - side, EXPIRE)] * leave
            expired[side] += leave
        home = numbers[own] % parameters.cores
        homeless = int(home <= core.position if own == R else home >= core.position)
        before = numbers[1 - own]
        words.append((own, tuple_of(generator.randrange(3), before=before, homeless=homeless)))
        numbers[own] += 1
    return [*words, (R, FENCE), (S, FENCE)]


def neighbours(core, generator, words):
    """Return the words of both lanes, and scripts that send them.

    A lane is ahead of the other one by no more words than the links of a chain hold. The right
    neighbour acknowledges tuples of S some time after they were sent.
    """
    lanes, sent = [deque(), deque()], [0, 0]
    most = 4 * core.parameters.cores

    async def put(ctx, own, word):
        lanes[own].append(word)
        await core.send(ctx, own, [word])

    def wants_acknowledgement():
        return not core.last and lanes[R].count(ACK) < core.tuples(S)

    async def lane(ctx, own):
        for n, (of, word) in enumerate(words):
            if of != own:
                continue
            before = sum(other != own for other, _ in words[:n])
            ahead = generator.randrange(most)
            while before - sent[1 - own] > ahead or (own == R and generator.random() < 0.3):
                if own == R and wants_acknowledgement():
                    await put(ctx, R, ACK)
                else:
                    await ctx.tick()
            await put(ctx, own, word)
            sent[own] += 1
        while not core.is_marked(own) or (own == R and wants_acknowledgement()):
            await (put(ctx, R, ACK) if own == R and wants_acknowledgement() else ctx.tick())

    return lanes, [lambda ctx: lane(ctx, R), lambda ctx: lane(ctx, S)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "position", "sub_window", "stalls"),
    half([(2, 1, 4), (1, 0, 3), (2, 0, 1), (5, 3, 5), (3, 1, 2)], [0.0, 0.5], of=5),
)
def test_a_core_finds_keeps_and_sends_on_what_a_model_does(cores, position, sub_window, stalls):
    parameters = core_parameters(ARCHITECTURE, cores=cores, sub_window=sub_window)
    last, generator = position == cores - 1, random.Random(cores + position)
    core = CoreBench(
        ExpeditedCore(parameters), position=position, last=int(last), stalls=stalls, seed=cores
    )
    words, scripts = neighbours(core, generator, schedule(core, generator, 120))
    core.run(*scripts)
    model = Model(parameters, position, last)
    for lane in core.events:
        model.take(lane, words[lane].popleft())
    assert not any(words)
    assert sum(len(found) for found in model.found) > 20
    for lane in (R, S):
        assert core.results(lane) == model.found[lane]
        assert core.words(lane) == model.sent[lane]


def core_of(cores, sub_window=8, position=0, **others):
    parameters = core_parameters(ARCHITECTURE, cores=cores, sub_window=sub_window)
    last = int(position == cores - 1)
    return CoreBench(ExpeditedCore(parameters), position=position, last=last, **others)


@pytest.mark.parametrize(("cores", "lane"), half([1, 2, 3, 5], [R, S]))
def test_a_word_passes_a_core_in_two_cycles_and_one_leaves_in_each(cores, lane):
    core, taken = core_of(cores), []

    async def script(ctx):
        for _ in range(12):
            taken.append(await core.send(ctx, lane, [EXPIRE]))

    core.run(script)
    assert [left - came for came, left in zip(taken, core.stamps[lane], strict=True)] == [2] * 12
    assert core.stamps[lane] == list(range(taken[0] + 2, taken[0] + 14))


@pytest.mark.few(2)
@pytest.mark.parametrize(("lane", "cores"), half([R, S], [1, 2, 3, 5]))
def test_a_match_is_found_after_the_stated_cycles(cores, lane):
    """Row 0 of an idle core; a tuple of S meets none on the way, which takes a stage less."""
    core, came = core_of(cores), []

    async def script(ctx):
        await core.send(ctx, 1 - lane, [tuple_of(9)])
        await ctx.tick().repeat(30)
        came.append(await core.send(ctx, lane, [tuple_of(9, before=1)]))

    core.run(script)
    assert core.results(lane) == [(0, 0)]
    # The tuple is at the output of the link in the cycle after its transfer.
    assert core.found_at[lane][0] - (came[0] + 1) == core.dut.latency - (lane == S)


@pytest.mark.few(2)
@pytest.mark.parametrize(("lane", "rows"), half([R, S], [1, 2, 3, 4, 7]))
def test_tuples_follow_each_other_after_as_many_cycles_as_there_are_rows(rows, lane):
    """In the last core, which has none in flight."""
    core = core_of(1, sub_window=64)

    async def script(ctx):
        await core.send(ctx, 1 - lane, [tuple_of(n) for n in range(rows)])
        await ctx.tick().repeat(60)
        await core.send(ctx, lane, [tuple_of(n % rows, before=rows) for n in range(30)])
        await ctx.tick().repeat(30 * rows)

    core.run(script)
    found = core.found_at[lane][::rows]  # by tuples with the same match
    assert len(core.found_at[lane]) == 30
    steps = {then - now for now, then in pairwise(found)}
    assert steps == {rows * rows}
