# SPDX-License-Identifier: Apache-2.0
"""The sequence and the stages that all scanners share, with slots that say what keys are."""

import random

from amaranth import *
import pytest

from hdl.parameters import JoinParameters
from hdl.scan.ring import KeyRing
from hdl.scan.scanner import RowScanner
from hdl.words.prepared import ending_layout
from tests.halves import half
from tests.hdl.ecp5 import simulate
from tests.hdl.input_words import integer

DEADLINE = 4_000


class PlainScanner(RowScanner):
    """The least that a subclass can be: bit n of a key is what slot n says of its lane."""

    def __init__(self, parameters, *, bits):
        self.bits = bits
        super().__init__(
            parameters,
            slot_latency=KeyRing.LATENCY + 2,
            key=unsigned(bits),
            criterion=unsigned(1),
            bits=bits,
        )

    def elaborate(self, platform):
        m = Module()
        take, step, row, last = self.elaborate_sequence(m)
        arriving = self.elaborate_stages(m, take, step, row, last)[-1]
        compared = self.elaborate_comparing(m, arriving)
        slots = [Signal(self.parameters.engine.lanes, name=f"slot_{n}") for n in range(self.bits)]
        found = [Signal.like(slot, name=f"found_{n}") for n, slot in enumerate(slots)]
        for n, slot in enumerate(slots):
            m.d.sync += [slot.eq(Cat(key[n] for key in self.keys)), found[n].eq(slot)]
        self.elaborate_outcome(m, compared, found)
        return m


class Groups:
    """Random groups, and the rows that their passes read."""

    def __init__(self, parameters, number, *, lengths=None, alike=False):
        self.ring_rows = parameters.ring_rows
        self.generator = generator = random.Random(f"{parameters} {number} {lengths}")
        self.payloads, self.passes = [], []
        rows = 2 * self.ring_rows  # pointers have one bit more than addresses
        lengths = lengths or [0, 1, 2, 3, 5, self.ring_rows - 1, self.ring_rows]
        for _ in range(number):
            first, length = generator.randrange(rows), generator.choice(lengths)
            count = (
                parameters.engine.probes
                if alike
                else generator.randrange(parameters.engine.probes + 1)
            )
            payload = self.garbage()
            payload |= {"first": first, "second": (first + 1) % rows}
            payload["ending"]["count"] = count
            if alike:
                payload["ending"] = {"count": count, "star": 1}
            if count:  # without probes, `stop` may be anything
                payload["stop"] = (first + length) % rows
            self.payloads.append(payload)
            read = length if count else 0
            self.passes.append([(first + n) % rows for n in range(max(1, read))])

    def garbage(self):
        """What a payload may be while it does not matter."""
        names = ("first", "second", "stop", "newest_tail", "oldest_head")
        rows = {name: self.generator.randrange(2 * self.ring_rows) for name in names}
        flags = {name: self.generator.randrange(2) for name in ("star", "mark")}
        return {**rows, "ending": {"count": self.generator.randrange(2), **flags}}


class Rows:
    """What should be in every cycle: a pass under way, a row read, an outcome."""

    def __init__(self, dut, groups, *, crowded):
        self.dut, self.groups, self.crowded = dut, groups, crowded
        self.waiting = list(zip(groups.payloads, groups.passes, strict=True))
        self.under_way = []  # rows left of the pass
        self.oldest = None
        self.taken = self.earliest = -KeyRing.LATENCY - 1  # cycles: a group was, may be taken
        self.ending = None  # of the group that was taken last
        self.outcomes = {}  # by cycle
        self.keys = {}  # by cycle
        self.reads = []  # cycles

    def offer(self, cycle):
        """The group at hand in this cycle, if there is one; its ``ending`` stays for a while."""
        payload = self.groups.garbage()
        held = cycle <= self.taken + KeyRing.LATENCY
        if held:
            payload["ending"] = self.ending
        if not self.waiting or cycle < self.earliest:
            return False, payload
        following, _ = self.waiting[0]
        if held and following["ending"] != self.ending:
            return False, payload
        return True, following

    def step(self, cycle, room, offered, *, pauses):
        """Go on by a cycle; return whether a row is read."""
        generator, lanes = self.groups.generator, self.dut.parameters.engine.lanes
        reading = bool(self.under_way) and room
        if reading:
            row = self.under_way.pop(0) % self.groups.ring_rows
            last = not self.under_way
            least = int(self.crowded)
            keys = [generator.randrange(least, 1 << self.dut.bits) for _ in range(lanes)]
            if not self.crowded and generator.random() < 0.5:
                keys = [0] * lanes
            self.keys[cycle + KeyRing.LATENCY] = keys
            self.reads.append(cycle)
            if last or any(keys):
                outcome = (keys, row, last, self.ending)
                self.outcomes[cycle + self.dut.latency] = outcome
        if offered and not self.under_way:
            payload, rows = self.waiting.pop(0)
            self.under_way = list(rows)
            self.oldest, self.ending, self.taken = payload["first"], payload["ending"], cycle
            self.earliest = cycle + 1
            if generator.random() < pauses:
                self.earliest += generator.randrange(12)
        return reading


def outcome_of(dut, found):
    """The outcome of a row, as :class:`Rows` has it; the ending of the last row only."""
    slots = [found.matches[n] for n in range(dut.bits)]
    keys = [
        sum((slot >> lane & 1) << n for n, slot in enumerate(slots))
        for lane in range(dut.parameters.engine.lanes)
    ]
    return keys, found.row, bool(found.last), found.ending.as_value().value


def scan(dut, groups, *, room, pauses=0.0, crowded=False):
    """Let all groups be scanned, and check every cycle; return those in which a row was read.

    ``room`` is called once in every cycle with whether there is an outcome, and says whether there
    is room. After a group, the next one comes later with a probability of ``pauses``. In a
    ``crowded`` ring every key matches.
    """
    rows = Rows(dut, groups, crowded=crowded)
    layout = ending_layout(dut.parameters)
    assert dut.latency == KeyRing.LATENCY + 3

    async def bench(ctx):
        cycle = settled = 0
        while settled < 2 * dut.latency:
            assert cycle < DEADLINE
            there = room(bool(ctx.get(dut.matches_valid)))
            valid, payload = rows.offer(cycle)
            ctx.set(dut.room, there)
            ctx.set(dut.group.valid, valid)
            ctx.set(dut.group.payload, payload)
            ctx.set(dut.keys, rows.keys.pop(cycle, [0] * dut.parameters.engine.lanes))

            running, oldest = bool(rows.under_way), rows.oldest
            address = rows.under_way[0] % groups.ring_rows if running else None
            ready = not running or (len(rows.under_way) == 1 and there)
            reading = rows.step(cycle, there, valid, pauses=pauses)
            assert ctx.get(dut.running) == running
            assert ctx.get(dut.reading) == reading
            assert ctx.get(dut.group.ready) == ready
            if running:
                assert ctx.get(dut.oldest) == oldest
            if reading:
                assert ctx.get(dut.address) == address

            expected = rows.outcomes.pop(cycle, None)
            assert ctx.get(dut.matches_valid) == (expected is not None)
            if expected is not None:
                *values, ending = outcome_of(dut, ctx.get(dut.matches))
                *wanted, wanted_ending = expected
                assert values == wanted
                if wanted[-1]:
                    assert ending == integer(layout, wanted_ending)
            await ctx.tick()
            cycle += 1
            settled = 0 if rows.waiting or rows.under_way else settled + 1

    simulate(dut, None, bench)
    assert not rows.outcomes
    assert len(rows.reads) == sum(map(len, groups.passes))
    return rows.reads


def scanner(*, lanes=1, probes=1, sub_window=5, bits=1):
    """A scanner of a small ring."""
    parameters = JoinParameters.of(sub_window=sub_window * lanes, lanes=lanes, probes=probes)
    return PlainScanner(parameters, bits=bits)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("lanes", "probes", "bits", "sub_window", "stalls", "pauses"),
    half([(1, 1, 1, 1), (2, 3, 3, 5), (3, 2, 1, 9)], [0.0, 0.4, 0.9], [0.0, 0.6], of=3),
)
def test_every_row_of_a_pass_is_read_and_has_its_outcome_after_the_latency(
    lanes, probes, bits, sub_window, stalls, pauses
):
    dut = scanner(lanes=lanes, probes=probes, sub_window=sub_window, bits=bits)
    generator = random.Random(lanes)
    groups = Groups(dut.parameters, 40 if stalls < 0.9 else 15)
    scan(dut, groups, room=lambda _: generator.random() >= stalls, pauses=pauses)


@pytest.mark.few(2)
@pytest.mark.parametrize("lengths", [[0, 1], [2], [1, 2, 3, 7]])
def test_passes_follow_each_other_without_an_idle_cycle(lengths):
    dut = scanner(lanes=2, probes=2)
    groups = Groups(dut.parameters, 60, lengths=lengths, alike=True)
    reads = scan(dut, groups, room=lambda _: True)
    assert reads == list(range(1, 1 + len(reads)))  # the first one in the cycle after its group


def test_no_more_outcomes_come_without_room_than_are_in_flight():
    """While nothing is taken, every row has an outcome; ``room`` comes out of a register."""
    dut = scanner(lanes=3, bits=2)
    generator = random.Random(7)
    levels = [0]  # of a queue that has room while it is empty
    room, taking = False, 0

    def queue(arrives):
        nonlocal room, taking
        now, room = room, not levels[-1]
        taking = taking - 1 if taking else generator.choice([0] * 15 + [3, 40])
        take = taking and levels[-1] and generator.random() < 0.8
        levels.append(levels[-1] + arrives - bool(take))
        return now

    scan(dut, Groups(dut.parameters, 90, lengths=[8]), room=queue, crowded=True)
    assert max(levels) - 1 == dut.latency + 1 <= dut.in_flight
