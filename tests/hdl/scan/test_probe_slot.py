# SPDX-License-Identifier: Apache-2.0
"""Spans and slots against running numbers of keys."""

import random

from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.scan.probe_slot import ProbeSlot, SpanMask
from hdl.words.prepared import pointer_layout
from tests.hdl.input_words import criterion_of, stored_key


class Timeline:
    """Passes over random spans, cycle by cycle.

    ``cycles`` has a dictionary for each: ``load`` (a span and whether it is used), ``present``,
    ``first``, ``row`` and ``mask``, the lanes of the row that lie inside the span, if it is a row
    of the pass.
    """

    def __init__(self, parameters, seed, *, passes=60, gap=0):
        self.parameters = parameters
        self.generator = random.Random(seed)
        self.rows = 1 << pointer_layout(parameters)["row"].width
        self.cycles = []
        begun = 0
        self.idle()
        self.idle()
        for _ in range(passes):
            for _ in range(self.generator.choice([0, 0, 1, 3])):
                self.idle()
            while len(self.cycles) < begun + gap:
                self.idle()
            begun = len(self.cycles)
            self.scan()

    def idle(self):
        """A cycle in which no row is read, though there is an address."""
        row = self.generator.randrange(self.rows)
        self.cycles.append({"present": False, "first": False, "row": row, "mask": None})

    def pointer(self, number):
        """A ring position by its running number."""
        lanes = self.parameters.engine.lanes
        return {"lane": number % lanes, "row": number // lanes % self.rows}

    def scan(self):
        """Load a span in the last cycle so far, then read rows that cover it."""
        generator, lanes = self.generator, self.parameters.engine.lanes
        tail = generator.randrange(4 * self.rows * lanes)
        head = tail + generator.choice([0, 1, lanes, generator.randrange(8 * lanes)])
        used = generator.random() < 0.8
        span = {"tail": self.pointer(tail), "head": self.pointer(head)}
        self.cycles[-1]["load"] = (span, used)
        first = tail // lanes - generator.choice([0, 0, 1, 2])
        stop = -(-head // lanes) + generator.choice([0, 0, 1, 2])
        for row in range(first, max(stop, first + 1)):
            if generator.random() < 0.2:
                self.idle()
            # Rows behind the row after the tail's and before the head's need not be presented.
            middle = tail // lanes + 1 < row < head // lanes
            lane_numbers = range(row * lanes, (row + 1) * lanes)
            self.cycles.append(
                {
                    "present": not middle or generator.random() < 0.3,
                    "first": row == first,
                    "row": row % self.rows,
                    "mask": [used and tail <= number < head for number in lane_numbers],
                }
            )


def bits(flags):
    """A list of flags as a number."""
    return sum(flag << n for n, flag in enumerate(flags))


def cycle_before(cycles, now, delay):
    """What was on, ``delay`` cycles ago."""
    return cycles[now - delay] if now >= delay else {}


def simulate(dut, body):
    """Run ``body(ctx)``."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(body)
    simulator.run()


def slot_parameters(lanes, **changes):
    """Parameters of a small ring."""
    return JoinParameters.of(sub_window=9 * lanes, lanes=lanes, **changes)


@pytest.mark.few(4)
@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_the_lanes_of_a_row_inside_the_span_after_the_latency(lanes, seed):
    parameters = slot_parameters(lanes)
    dut = SpanMask(parameters)
    assert dut.latency == 2
    timeline = Timeline(parameters, 10 * seed + lanes)
    cycles = timeline.cycles

    async def bench(ctx):
        for now, cycle in enumerate(cycles):
            before = cycle_before(cycles, now, dut.latency)
            if before.get("mask") is not None:
                assert ctx.get(dut.lanes) == bits(before["mask"])
            ctx.set(dut.load, "load" in cycle)
            if "load" in cycle:
                ctx.set(dut.span, cycle["load"][0])
                ctx.set(dut.used, cycle["load"][1])
            ctx.set(dut.present, cycle["present"])
            ctx.set(dut.row, cycle["row"])
            ctx.set(dut.presented, cycle_before(cycles, now, 1).get("present", False))
            ctx.set(dut.first, cycle_before(cycles, now, 1).get("first", False))
            await ctx.tick()

    simulate(dut, bench)
    assert len({cycle["row"] for cycle in cycles if cycle["mask"]}) == timeline.rows  # it wraps


@pytest.mark.few(3)
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("probe_side", [0, 1])
@pytest.mark.parametrize("comparator", ["band", "equality"])
def test_a_slot_compares_its_probe_with_the_keys_of_its_span(lanes, probe_side, comparator):
    field = KeyField(name="x", bits=3)
    parameters = slot_parameters(lanes, keys=(field,), comparator=comparator)
    dut = ProbeSlot(parameters, probe_side=probe_side)
    assert dut.latency == 4
    timeline = Timeline(parameters, lanes, gap=4)
    cycles, generator = timeline.cycles, timeline.generator
    bounds = {"x": (-2, 1)}

    # A probe is added as soon as the one before it has been begun for two cycles, or later.
    probe, earliest = None, 0
    for now, cycle in enumerate(cycles):
        if "load" in cycle:
            probe = generator.randrange(-4, 4)
            cycles[generator.randrange(earliest, now)]["add"] = (probe, cycle["load"][0])
            earliest = now + 2
        cycle["probe"] = probe if "load" not in cycle else cycles[now - 1].get("probe")
        cycle["keys"] = [generator.randrange(-4, 4) for _ in range(lanes)]

    def matches(before):
        found = []
        for inside, key in zip(before["mask"], before["keys"], strict=True):
            r, s = (key, before["probe"]) if probe_side else (before["probe"], key)
            found.append(inside and (-2 <= r - s <= 1 if comparator == "band" else r == s))
        return bits(found)

    async def bench(ctx):
        for now, cycle in enumerate(cycles):
            previous = [cycle_before(cycles, now, n) for n in range(dut.latency + 1)]
            outcome, arriving = previous[dut.latency], previous[2]
            if outcome.get("mask") is not None and outcome["probe"] is not None:
                assert ctx.get(dut.matches) == matches(outcome)
            if arriving.get("mask") is not None and arriving["probe"] is not None:
                assert ctx.get(dut.mask) == bits(arriving["mask"])
            ctx.set(dut.add, "add" in cycle)
            if "add" in cycle:
                ctx.set(dut.span, cycle["add"][1])
            key = {"x": cycle["add"][0] if "add" in cycle else -4}
            ctx.set(dut.criterion, criterion_of(parameters, probe_side, key, bounds))
            ctx.set(dut.begin, "load" in cycle)
            ctx.set(dut.used, "load" in cycle and cycle["load"][1])
            ctx.set(dut.begin_keys, "load" in arriving)
            ctx.set(dut.present, cycle["present"])
            ctx.set(dut.row, cycle["row"])
            ctx.set(dut.presented, previous[1].get("present", False))
            ctx.set(dut.first, previous[1].get("first", False))
            ctx.set(dut.masked, arriving.get("present", False))
            ctx.set(dut.compare, previous[dut.latency - 1].get("mask") is not None)
            keys = arriving.get("keys", [0] * lanes)
            ctx.set(dut.keys, [stored_key(parameters, {"x": key}) for key in keys])
            await ctx.tick()

    simulate(dut, bench)
