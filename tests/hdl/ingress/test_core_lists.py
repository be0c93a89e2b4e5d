# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.sim import Simulator
import pytest

from hdl.ingress.storage_turns import LISTS, CoreLists
from hdl.parameters import JoinParameters

INPUTS = ("append", "begin", "forget", "advance")


def run(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


class Lists:
    """The lists that have been written, as Python's own."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.begun = [list(range(parameters.cores))]
        self.next = []

    def refuses(self, word, value, needed):
        """Return whether a word is refused; ``needed`` concerns the list after the next one."""
        if word == "append":
            return not 0 <= value < self.parameters.cores or value in self.next
        return word == "begin" and (not self.next or needed)

    def take(self, word, value):
        """Take a word that is not refused."""
        if word == "append":
            self.next.append(value)
        elif word == "begin":
            self.begun.append(self.next)
            self.next = []
        elif word == "forget":
            self.next = []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "cores", [1, 4, 9, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3, 5, 8))]
)
def test_lists_are_those_of_the_words_that_are_taken(cores):
    """A word in every cycle; a word that is not taken has no effect."""
    generator = random.Random(cores)
    parameters = JoinParameters.of(cores=cores, sub_window=3)
    dut = CoreLists(parameters)
    model = Lists(parameters)
    written, entries = {}, 1 << len(dut.core)
    seen = dict.fromkeys(("taken append", "taken begin", "refused append", "refused begin"), 0)

    async def bench(ctx):
        needed = False
        for _ in range(1_500):
            word = generator.choice([*["append"] * 6, "begin", "begin", "forget", None])
            value = generator.choice([*range(cores), -1, cores, cores + 1, -2048, 2047])
            taken = generator.random() < 0.8
            refused = model.refuses(word, value, needed)
            taken = taken and not (refused and word == "begin")
            for name in INPUTS:
                ctx.set(getattr(dut, name), name == word or (name == "advance" and taken))
            ctx.set(dut.core, value % (1 << len(dut.core)))
            ctx.set(dut.exists, 0 <= value < cores)
            ctx.set(dut.which, 1 << value % entries)
            needed = generator.random() < 0.3
            ctx.set(dut.needed, needed)
            assert ctx.get(dut.core_refused) == (refused and word == "append")
            assert ctx.get(dut.segment_refused) == (refused and word == "begin")
            if word in ("append", "begin"):
                seen[f"{'refused' if refused else 'taken'} {word}"] += 1
            if taken and not refused:
                model.take(word, value)
            await ctx.tick()
            assert ctx.get(dut.write) == (taken and word == "append" and not refused)
            if ctx.get(dut.write):
                written[ctx.get(dut.entry)] = ctx.get(dut.value)
            assert ctx.get(dut.limit) == len(model.begun[-1]) * parameters.slack
            newest = len(model.begun) - 1
            assert ctx.get(dut.lists[0].number) == (newest + 1) % LISTS
            for number, live in enumerate([*model.begun, model.next][-3:], max(0, newest - 1)):
                told, place = dut.lists[newest + 1 - number], number % LISTS * entries
                assert ctx.get(told.number) == number % LISTS
                assert ctx.get(told.plain) == (number == 0)
                if live:
                    assert ctx.get(told.last) == len(live) - 1
                    assert ctx.get(told.first) == live[0]
                assert number == 0 or [written[place + n] for n in range(len(live))] == live

    run(dut, bench)
    assert all(seen.values())
