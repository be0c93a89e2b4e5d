# SPDX-License-Identifier: Apache-2.0
"""The table of passes against lists of them, cycle by cycle."""

import random

import pytest

from hdl.memory.columns import KeyColumn
from hdl.parameters import JoinParameters, KeyField
from hdl.scan.layouts import verified_probe_layout
from hdl.scan.ring import PassTable
from tests.halves import half
from tests.hdl.ecp5 import simulate


def table_parameters(probes, *, lanes=1):
    """Parameters whose keys have a digest of two bits and a rest of six."""
    return JoinParameters.of(
        lanes=lanes, probes=probes, sub_window=9 * lanes, comparator="equality",
        keys=(KeyField(name="x", bits=8),), digest_bits=2,
    )  # fmt: skip


class Passes:
    """What a table should hold and say; a method for everything that can happen in a cycle."""

    def __init__(self, dut):
        self.dut = dut
        self.latency = dut.latency
        self.probe_bits = verified_probe_layout(dut.parameters).size
        self.rows = 2 * dut.parameters.ring_rows
        self.collecting = {}  # probes by number
        self.passes = []  # those that began: first row, count, probes by number
        self.followed = []  # when the table went on to the pass after each
        self.ended = 0
        self.room = True
        self.expected = [None] * self.latency  # probes on their way out
        self.most = 0

    @property
    def read(self):
        """The pass that is read, if it began."""
        number = len(self.followed)
        return self.passes[number] if number < len(self.passes) else None

    def may_end(self, cycle):
        """Is the oldest pass read, and are its probes out of the table?"""
        return self.ended < len(self.followed) and (
            self.followed[self.ended] + self.latency <= cycle
        )

    async def cycle(self, ctx, cycle, generator, chances):
        """Check outputs, set inputs by ``chances``, and go on by a cycle."""
        dut, probes = self.dut, self.dut.parameters.engine.probes
        under_way = len(self.passes) - self.ended
        self.most = max(self.most, under_way)
        assert ctx.get(dut.room) == self.room
        assert ctx.get(dut.pending) == (under_way > 0)
        if under_way:
            assert ctx.get(dut.oldest) == self.passes[self.ended][0]
        if self.read:
            first, count, held = self.read
            assert ctx.get(dut.reading.first) == first
            assert ctx.get(dut.reading.count) == count
        due = self.expected.pop(0)
        assert due in (None, ctx.get(dut.reading.probe.as_value()))

        def happens(name):
            return generator.random() < chances[name]

        add, number = happens("add"), generator.randrange(probes)
        probe = generator.getrandbits(self.probe_bits)
        began, first = self.room and happens("began"), generator.randrange(self.rows)
        following = self.read is not None and happens("following")
        ended = self.may_end(cycle) and happens("ended")
        wanted = generator.randrange(probes)
        self.expected.append(held.get(wanted) if self.read else None)

        ctx.set(dut.add, add)
        ctx.set(dut.number, number)
        ctx.set(dut.probe.as_value(), probe)
        ctx.set(dut.began, began)
        ctx.set(dut.first, first)
        ctx.set(dut.reading.number, wanted)
        ctx.set(dut.reading.following, following)
        ctx.set(dut.reading.ended, ended)
        if following:
            self.followed.append(cycle)
        if add:
            self.collecting[number] = probe
        ctx.set(dut.count, len(self.collecting))
        if began:
            self.passes.append((first, len(self.collecting), self.collecting))
            self.collecting = {}
        # A pass that ends in this cycle makes room in the cycle after the next one.
        self.room = under_way + began < PassTable.PASSES - 1
        self.ended += ended
        await ctx.tick()


#: How often probes are added, and passes begin, are read and end: phases that fill the table, keep
#: it full, empty it, and let everything happen at once.
PHASES = [
    {"add": 0.7, "began": 0.5, "following": 0.3, "ended": 0.0},
    {"add": 0.9, "began": 1.0, "following": 0.8, "ended": 0.5},
    {"add": 0.5, "began": 0.1, "following": 0.5, "ended": 1.0},
    {"add": 0.3, "began": 0.0, "following": 1.0, "ended": 1.0},
    {"add": 0.9, "began": 0.4, "following": 0.4, "ended": 0.9},
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("probes", "delay"), half([1, 2, 3, 5], [0, 1, 2], of=3))
def test_every_probe_is_kept_until_its_pass_has_ended(platform, probes, delay):
    dut = PassTable(table_parameters(probes, lanes=probes), delay=delay)
    assert dut.latency == delay + KeyColumn.LATENCY
    passes, generator = Passes(dut), random.Random(probes)

    async def bench(ctx):
        for cycle in range(500):
            await passes.cycle(ctx, cycle, generator, PHASES[cycle // 50 % len(PHASES)])

    simulate(dut, platform, bench)
    assert passes.most == PassTable.PASSES - 1
    assert passes.ended > 2 * PassTable.PASSES


@pytest.mark.parametrize("delay", [0, 2])
def test_a_probe_and_a_pass_in_every_cycle(delay):
    dut = PassTable(table_parameters(1), delay=delay)
    passes, generator = Passes(dut), random.Random(delay)
    always = dict.fromkeys(("add", "began", "following", "ended"), 1.0)

    async def bench(ctx):
        for cycle in range(100):
            await passes.cycle(ctx, cycle, generator, always)

    simulate(dut, None, bench)
    assert len(passes.passes) == 100
    # A pass is read in the cycle after it began, and ends once its probe is there.
    assert passes.followed == list(range(1, 100))
    assert passes.ended == 100 - 1 - dut.latency
