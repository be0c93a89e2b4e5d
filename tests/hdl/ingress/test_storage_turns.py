# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.ingress.storage_turns import CoreLists, StorageTurns
from hdl.parameters import JoinParameters
from tests.halves import half
from tests.hdl.turns_model import Turns

FLAGS = ("core", "segment", "clear", "begins", "timed")


class Words:
    """Random words for both sides, and what lists make of them."""

    def __init__(self, parameters, generator):
        self.parameters, self.generator = parameters, generator
        self.model = Turns(parameters)

    def word(self):
        """Return the inputs of a word, and what takes it in the model."""
        cores, choice = self.parameters.cores, self.generator.random()
        if choice < 0.2:
            value = self.generator.randint(-1, cores)
            return {"core": 1, "value": value}, lambda: self.model.append(value)
        if choice < 0.27:
            return {"segment": 1}, self.model.begin
        if choice < 0.28:
            return {"clear": 1, "empties": 3}, self.model.clear
        if choice < 0.3:
            return self.window(self.generator.randrange(2))
        tuples = self.generator.randrange(4)
        return {"tuples": tuples}, lambda: [
            self.model.take(side) for side in range(2) if tuples >> side & 1
        ]

    def window(self, side):
        """Return a word that begins a window, of a size that is out of range now and then."""
        capacity = self.parameters.capacity
        value = self.generator.choice([-5, 0, 1, capacity, capacity + 1, 2047, capacity // 2])
        timed = self.generator.random() < 0.3
        size = 0 if timed else min(max(value, 1), capacity)
        inputs = {"begins": 1, "empties": 1 << side, "timed": timed, "value": value}
        return inputs, lambda: self.model.restart(side, size)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("cores", "stalls"),
    half([1, 2, 3, 4, 5, 7], [0.0, 0.4], of=3),
)
def test_both_sides_have_the_turns_of_lists_in_every_cycle(cores, stalls):
    """Up to one tuple of each side in a cycle; a word that waits has no effect."""
    generator = random.Random(cores)
    parameters = JoinParameters.of(cores=cores, sub_window=3)
    dut = StorageTurns(parameters)
    words = Words(parameters, generator)
    seen = {"refused": 0, "leaves": 0, "segments": 0}

    async def bench(ctx):
        for _ in range(1_500):
            inputs, take = words.word()
            taken = generator.random() >= stalls
            for name in FLAGS:
                ctx.set(getattr(dut, name), inputs.get(name, 0))
            value = inputs.get("value", 0)
            for name in ("tuples", "empties"):
                ctx.set(getattr(dut, name), inputs.get(name, 0))
            ctx.set(dut.value, value)
            ctx.set(dut.exists, 0 <= value < cores)
            ctx.set(dut.which, 1 << value if 0 <= value < cores else 1)
            ctx.set(dut.limits.WINDOW.below, value < 1)
            ctx.set(dut.limits.WINDOW.above, value > parameters.capacity)
            for side in range(2):
                core, leaves = words.model.next(side)
                assert ctx.get(dut.storing[side]) == core
                assert ctx.get(dut.leaves[side]) == (leaves is not None)
                if leaves is not None:
                    seen["leaves"] += 1
                    assert ctx.get(dut.leaving[side]) == leaves
            assert ctx.get(dut.limit) == len(words.model.live) * parameters.slack
            told = ctx.get(dut.core_refused) + ctx.get(dut.segment_refused)
            ctx.set(dut.advance, taken and not ctx.get(dut.segment_refused))
            if taken:
                refused = take()
                concerns = "core" in inputs or "segment" in inputs
                assert told == (concerns and refused)
                seen["refused"] += told
                seen["segments"] += "segment" in inputs and not refused
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(seen.values())


@pytest.mark.parametrize(("component", "word"), [(CoreLists, "begin"), (StorageTurns, "segment")])
def test_refusal_is_told_in_the_cycle_of_the_word(component, word):
    dut = component(JoinParameters.of(cores=2, sub_window=3))
    assert dut.latency == 0

    async def bench(ctx):
        ctx.set(getattr(dut, word), 1)
        assert ctx.get(dut.segment_refused) == 1  # no core is listed
        ctx.set(getattr(dut, word), 0)
        assert ctx.get(dut.segment_refused) == 0

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()
