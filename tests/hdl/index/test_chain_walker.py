# SPDX-License-Identifier: Apache-2.0
"""Walks, cycle by cycle: a place in the circle, a chain in a list, and what is found in it."""

from collections import Counter, deque
import random

import pytest

from hdl.index.chain_walker import ChainWalker
from hdl.index.layouts import bank_count, group_count, probe_shape, walks_layout, walks_waiting
from hdl.parameters import JoinParameters
from tests.halves import half
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import criterion_ranges, integer
from tests.hdl.walks_model import KEYS, Ring, Walk, random_criterion

CYCLES = 320
#: Cycles until all walks have ended after the last one was begun.
DEADLINE = 4_000
PROBE_BITS = 9


def walker_of(comparator, *, tuples_per_word=1, cores=1, bucket_bits=2):
    """A walker for a ring of 64 entries; of 8, for 40 cores."""
    parameters = JoinParameters.of(
        engine="index", comparator=comparator, keys=KEYS, bucket_bits=bucket_bits, cores=cores,
        sub_window=20 if cores == 1 else 1, tuples_per_word=tuples_per_word, probe_bits=PROBE_BITS,
    )  # fmt: skip
    return ChainWalker(parameters, probe_side=0)


class Walks:
    """Visits of a region at random, the memories around a walker, and a model of it."""

    def __init__(self, dut, seed, *, begins=0.5, room=1.0, distinct=0, single=False):
        self.dut = dut
        self.parameters = parameters = dut.parameters
        self.generator = random.Random(seed)
        self.begins, self.room_pace, self.distinct = begins, room, distinct
        self.ring = Ring(parameters, self.generator, single=single)
        self.banks, self.groups = bank_count(parameters), group_count(parameters)
        self.now = 0
        self.visits = 0
        self.probes = {}  # criterion, size and number, by place in the table
        self.waiting = deque()
        self.circle = [None] * dut.CIRCLE  # the walk that comes round in this cycle, in order
        self.reads = deque([None] * dut.READING)  # place and probe, if an entry was read
        self.due = {}  # found, ended and compared, by cycle
        self.room = (1 << self.groups) - 1
        self.without_ready = 0  # cycles
        self.late = [0] * self.groups  # matches since there was no room, by queue
        self.counts = Counter()
        self.most_waiting = 0

    @property
    def idle(self):
        """Nothing is under way."""
        return not (self.waiting or any(self.circle) or self.due)

    def cycle(self, ctx, *, begins=True):
        """What is due, the walk that comes round, the memories, and new visits."""
        self.check_outputs(ctx)
        self.check_walk(ctx)
        self.answer(ctx)
        self.set_room(ctx)
        self.visit(ctx, begins=begins)
        self.now += 1

    def check_outputs(self, ctx):
        """Matches and ends come exactly when they are due."""
        dut = self.dut
        found, ended, compared = self.due.pop(self.now, (None, 0, 0))
        assert ctx.get(dut.found_valid) == (found is not None)
        if found is not None:
            match = ctx.get(dut.found)
            assert (ctx.get(dut.found_queue), match.number, match.place) == found
            self.late[found[0]] += 1
            assert self.late[found[0]] <= dut.MATCHES_IN_FLIGHT
        assert ctx.get(dut.ended) == ended
        assert ctx.get(dut.compared) == compared
        self.counts.update(found=found is not None, ended=bool(ended), compared=compared)

    def check_walk(self, ctx):
        """The walk that comes round reads, or else the next one sets out, if there is room."""
        dut = self.dut
        walk = self.circle.pop(0)
        # It sets out once it has passed the queue, and has been chosen.
        set_out = dut.latency - dut.CIRCLE
        if walk is None and self.waiting and self.now - self.waiting[0].begun >= set_out:
            walk = self.waiting.popleft()
        reads = walk is not None and self.room >> walk.queue & 1  # of the cycle before
        assert ctx.get(dut.busy) == bool(reads)
        assert ctx.get(dut.stalled) == (walk is not None and not reads)
        self.reads.append(None)
        if reads:
            assert (ctx.get(dut.place), ctx.get(dut.probe)) == (walk.place, walk.probe)
            self.reads[-1] = (walk.place, walk.probe)
            walk = self.follow(walk)
        self.circle.append(walk)
        self.counts.update(busy=bool(reads), stalled=walk is not None and not reads)

    def follow(self, walk):
        """Say what comes of an entry that is read; return the walk, if it goes on."""
        ring = self.ring
        criterion, size, number = self.probes[walk.probe]
        link, own = ring.links[walk.place], ring.buckets[walk.place] == walk.bucket
        sees = own and walk.age < size
        match = sees and self.matches(criterion, walk.place)
        goes_on = own and 0 < link <= walk.age and not (match and self.distinct)
        self.due[self.now + self.dut.CIRCLE] = (
            (walk.queue, number, walk.place) if match else None,
            0 if goes_on else 1 << walk.group,
            sees,
        )
        walk.place = (walk.place - link) % ring.rows
        walk.age -= link
        return walk if goes_on else None

    def matches(self, criterion, place):
        """Whether a probe with this criterion and the entry are a pair."""
        key = self.ring.stored[place]
        if self.parameters.predicate.kind != "band":
            return criterion == key
        ranges = criterion_ranges(self.parameters, criterion)
        return all(low <= key[f.name] <= high for f, (low, high) in zip(KEYS, ranges, strict=True))

    def answer(self, ctx):
        """What is read comes from the memories; anything, if nothing was read."""
        dut, generator, read = self.dut, self.generator, self.reads.popleft()
        place, probe = read or (generator.randrange(self.ring.rows), None)
        random_probe = (
            random_criterion(self.parameters, self.generator),
            generator.randrange(self.ring.rows),
            0,
        )
        criterion, size, number = self.probes.get(probe, random_probe)
        ctx.set(dut.key, self.ring.stored[place])
        ctx.set(dut.link, {"link": self.ring.links[place], "bucket": self.ring.buckets[place]})
        for name, value in criterion.items():
            ctx.set(getattr(dut.criterion, name), value)
        ctx.set(dut.size, size)
        ctx.set(dut.number, number)
        ctx.set(dut.distinct, self.distinct)

    def set_room(self, ctx):
        """Room for the matches of each queue comes and goes."""
        for queue in range(self.groups):
            if self.generator.random() < 0.1:
                has_room = self.generator.random() < self.room_pace
                self.room = self.room & ~(1 << queue) | has_room << queue
            if self.room >> queue & 1:
                self.late[queue] = 0
        ctx.set(self.dut.room, self.room)

    def visit(self, ctx, *, begins):
        """Begin walks in some banks, as long as the queue may be given any."""
        dut, generator = self.dut, self.generator
        self.without_ready = 0 if ctx.get(dut.ready) else self.without_ready + 1
        begin = 0
        # The visit of the last cycle with ``ready`` is the first of those in flight.
        if begins and self.without_ready < dut.IN_FLIGHT and generator.random() < self.begins:
            begin = generator.randrange(1, 1 << self.banks)
        common = {
            "probe": self.visits % (1 << probe_shape(self.parameters).width),
            "group": generator.randrange(self.groups),
            "queue": generator.randrange(self.groups),
        }
        entries = [self.ring.entry(bank, self.banks) for bank in range(self.banks)]
        payload = {"entries": entries, **common}
        ctx.set(dut.begin, begin)
        ctx.set(dut.walks.as_value(), integer(walks_layout(self.parameters), payload))
        if begin:
            size = generator.randrange(self.ring.rows)
            number = self.visits % (1 << PROBE_BITS)
            self.probes[common["probe"]] = (
                random_criterion(self.parameters, generator),
                size,
                number,
            )
            self.visits += 1
        for bank, entry in enumerate(entries):
            if begin >> bank & 1:
                self.waiting.append(Walk(**entry, **common, begun=self.now))
        waiting = len({walk.probe for walk in self.waiting})  # a probe makes one visit here
        self.most_waiting = max(self.most_waiting, waiting)


def run(bench, *, cycles=CYCLES):
    """Begin walks for so many cycles; then all of them end."""

    async def body(ctx):
        for _ in range(cycles):
            bench.cycle(ctx)
            await ctx.tick()
        bench.room_pace = 1.0
        for _ in range(DEADLINE):
            if bench.idle:
                break
            bench.cycle(ctx, begins=False)
            await ctx.tick()
        else:
            raise AssertionError(f"{len(bench.waiting)} walks wait after {DEADLINE} cycles")
        assert ctx.get(bench.dut.ready)

    simulate(bench.dut, None, body)
    return bench.counts


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("comparator", "distinct", "room"), half(["equality", "band"], [0, 1], [1.0, 0.6])
)
def test_every_entry_of_a_chain_is_met_once(comparator, distinct, room):
    """Only want of room makes a walk wait; it ends with its first match if keys are distinct."""
    bench = Walks(walker_of(comparator), 1, begins=0.3, room=room, distinct=distinct)
    counts = run(bench)
    assert counts["found"] > 10
    assert bool(counts["stalled"]) == (room < 1)


@pytest.mark.few(2)
@pytest.mark.parametrize(("cores", "bucket_bits"), [(40, 2), (1, 1)], ids=["small", "few-buckets"])
@pytest.mark.parametrize("comparator", ["equality", "band"])
def test_small_rings_and_few_buckets(comparator, cores, bucket_bits):
    run(Walks(walker_of(comparator, cores=cores, bucket_bits=bucket_bits), 2, room=0.8))


@pytest.mark.few(2)
@pytest.mark.parametrize("comparator", ["equality", "band"])
@pytest.mark.parametrize("tuples_per_word", [1, 2])
def test_a_full_queue_of_walks(comparator, tuples_per_word):
    """Without room nothing is read, and as many visits wait as there are places for."""
    dut = walker_of(comparator, tuples_per_word=tuples_per_word)
    bench = Walks(dut, 3, begins=1.0, room=0.05)
    run(bench)
    assert bench.most_waiting >= walks_waiting(dut.parameters)


@pytest.mark.parametrize("tuples_per_word", [1, 2])
def test_an_entry_is_read_in_every_cycle(tuples_per_word):
    """The latency, and the throughput as long as walks wait."""
    dut = walker_of("equality", tuples_per_word=tuples_per_word)
    bench = Walks(dut, 4, begins=1.0, single=True)
    busy = []

    async def body(ctx):
        for _ in range(CYCLES):
            bench.cycle(ctx)
            busy.append(bench.counts["busy"])
            await ctx.tick()

    simulate(dut, None, body)
    set_out = dut.latency - dut.CIRCLE
    assert busy == [max(0, cycle + 1 - set_out) for cycle in range(CYCLES)]
