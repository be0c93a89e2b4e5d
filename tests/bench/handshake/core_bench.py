# SPDX-License-Identifier: Apache-2.0
"""One core of a chain between two neighbours that tests play."""

from amaranth.hdl import Value

from bench.handshake.layouts import LaneKind, chain_result, lane_word
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench

__all__ = ["CoreBench", "core_parameters"]

X6 = (KeyField(name="x", bits=6, signed=False),)


def core_parameters(architecture, *, cores, sub_window):
    """Return parameters of a chain that compares keys for equality."""
    return JoinParameters.of(
        cores=cores, sub_window=sub_window, keys=X6, comparator="equality",
        architecture=architecture,
    )  # fmt: skip


class CoreBench:
    """Words for both lanes of a core, what it sends on, and what its tuples find.

    Attributes
    ----------
    sent : list of two lists
        Words that leave in the lane of R, and in that of S; with the cycle of each in ``stamps``.
    results : list of two lists
        What tuples of R have found, and tuples of S.
    events : list of int
        In the order in which it was: 0 for a word of R that was taken, 1 for one of S.
    """

    def __init__(self, dut, *, position=0, last=0, stalls=0.0, seed=0, deadline=5_000):
        self.dut, self.position, self.last = dut, position, last
        self.parameters, self.layout = dut.parameters, lane_word(dut.parameters)
        self.bench = StreamBench(dut, deadline=deadline, stalls=stalls, seed=seed)
        self.stamps, self.found_at = [[], []], [[], []]
        self.sent = [
            self.bench.sink(port, 0, self.stamps[n]) for n, port in enumerate((dut.r_o, dut.s_o))
        ]
        self._results = [
            self.bench.sink(port, 0, self.found_at[n]) for n, port in enumerate(dut.results)
        ]
        self.events = []
        self.bench.simulator.add_testbench(self.watch, background=True)

    async def watch(self, ctx):
        """Note which lane's word is taken."""
        ctx.set(self.dut.position, self.position)
        ctx.set(self.dut.last, self.last)
        while True:
            *_, taken = await ctx.tick().sample(self.dut.taken)
            assert taken != 3, "two words were taken in one cycle"
            if taken:
                self.events.append(taken >> 1)

    async def send(self, ctx, lane, words):
        """Send words in a lane; return the cycle of the last transfer."""
        port, now = (self.dut.r_i, self.dut.s_i)[lane], None
        for word in words:
            while self.bench.pauses():
                await ctx.tick()
            ctx.set(Value.cast(port.payload), integer(self.layout, word))
            ctx.set(port.valid, 1)
            while True:
                *_, ready = await ctx.tick().sample(port.ready)
                if ready:
                    now = self.bench.cycle - 1
                    break
            ctx.set(port.valid, 0)
        return now

    def words(self, lane):
        """Return what has left in a lane: kinds, and the keys of tuples."""
        words = map(self.layout.from_bits, self.sent[lane])
        return [
            (word.kind, word.body.tuple.key.x if word.kind == LaneKind.TUPLE else None)
            for word in words
        ]

    def tuples(self, lane):
        """Return how many tuples have left in a lane."""
        kinds = (1 << len(Value.cast(self.dut.r_o.payload.kind))) - 1  # the lowest bits of a word
        return sum(word & kinds == LaneKind.TUPLE.value for word in self.sent[lane])

    def is_marked(self, side):
        """Return whether the last result of a side is a mark."""
        layout = chain_result(self.parameters)
        return any(layout.from_bits(word).mark for word in self._results[side][-1:])

    def results(self, side):
        """Return what tuples of a side have found, as pairs of numbers and marks."""
        found = map(chain_result(self.parameters).from_bits, self._results[side])
        return ["mark" if word.mark else (word.pair.r, word.pair.s) for word in found]

    def run(self, *scripts):
        """Run scripts side by side, and then for some time in which nothing may come."""

        def ended(script):
            async def process(ctx):
                await script(ctx)
                await ctx.tick().repeat(40)
                self.bench.done()

            return process

        for script in scripts:
            self.bench.spawn(ended(script))
        self.bench.run()
