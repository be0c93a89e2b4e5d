# SPDX-License-Identifier: Apache-2.0
"""Run a ScaleGate whose sources have random gaps, and check what it makes of them."""

import random

from amaranth.hdl import Cat, Value

from hdl.scalegate.gate import ScaleGate
from hdl.scalegate.words import GateKind
from sim.link.simulation import simulate
from sim.model.scale_gate import GateWord, GateWordKind, ScaleGateReference

__all__ = ["GateRun"]

TIME_BITS, BODY_BITS = 20, 16
#: Mean distance between two tuples of the merged stream.
DISTANCE = 4


class GateRun:
    """Sources with random times, of which each pauses in some cycles by chance.

    Parameters
    ----------
    sources : int
        Number of sources.
    tuples : int
        Tuples of all sources together.
    gaps : float
        Share of cycles in which a source has nothing to offer.
    stalls : float
        Share of cycles in which nothing is taken from the gate.

    Attributes
    ----------
    steady : float
        Tuples per cycle at the output, from the first tuple up to the last one before some source
        had sent everything.
    """

    def __init__(self, sources, *, tuples, gaps, stalls=0.0, seed=0):
        self.dut = ScaleGate(TIME_BITS, BODY_BITS, sources=sources)
        self.gaps, self.stalls = gaps, stalls
        self.random = random.Random(seed)
        self.queues = [
            sorted(self.random.randrange(1, tuples * DISTANCE) for _ in range(tuples // sources))
            for _ in range(sources)
        ]
        self.expected = self.merged()
        self.found, self.stamps = [], []
        self.ended = None  # cycle in which the first source has sent everything

    def merged(self):
        """Return (time, source) of every tuple in the order of the reference."""
        gate = ScaleGateReference(len(self.queues))
        found = []
        for number, times in enumerate(self.queues):
            for time in times:
                found += gate.push(number, GateWord(GateWordKind.TUPLE, time))
            found += gate.push(number, GateWord(GateWordKind.LEAVE))
        return [(word.time, word.source) for word in found]

    def run(self, *, deadline):
        """Run until every tuple has left.

        Raises
        ------
        AssertionError
            If the order is not that of the reference, or after ``deadline`` cycles.
        """
        simulate(self.dut, self.bench, deadline=deadline)
        if self.found != self.expected:
            raise AssertionError("the gate must give the order of the reference")
        within = [at for at in self.stamps if self.ended is None or at < self.ended]
        self.steady = (len(within) - 1) / (within[-1] - within[0])

    async def bench(self, ctx):
        """Offer words by chance, and hold each until it is taken."""
        dut = self.dut
        words, out = dut.i[0].payload.shape(), dut.o.payload.shape()
        rest = [[*map(self.tuple_at, times), {"kind": GateKind.LEAVE}] for times in self.queues]
        rest = [[words.const(word) for word in reversed(some)] for some in rest]
        offered = [False] * len(rest)
        readies = [i.ready for i in dut.i]
        cycle = 0
        while len(self.found) < len(self.expected):
            for n, i in enumerate(dut.i):
                if not offered[n] and rest[n] and self.random.random() >= self.gaps:
                    offered[n] = True
                    ctx.set(i.payload, rest[n][-1])
                    ctx.set(i.valid, 1)
            taking = self.random.random() >= self.stalls
            ctx.set(dut.o.ready, taking)
            *_, valid, bits, ready = await ctx.tick().sample(
                dut.o.valid, Value.cast(dut.o.payload), Cat(readies)
            )
            if valid and taking:
                self.take(out.from_bits(bits), cycle)
            for n, i in enumerate(dut.i):
                if offered[n] and ready >> n & 1:
                    offered[n] = False
                    ctx.set(i.valid, 0)
                    rest[n].pop()
                    if not rest[n] and self.ended is None:
                        self.ended = cycle
            cycle += 1

    def tuple_at(self, time):
        """Return the members of a tuple whose body is the lower half of its time."""
        return {"kind": GateKind.TUPLE, "time": time, "body": time % (1 << BODY_BITS)}

    def take(self, word, cycle):
        """Note a word that leaves."""
        if word.kind == GateKind.TUPLE:
            if word.late or word.body != word.time % (1 << BODY_BITS):
                raise AssertionError(f"a tuple of time {word.time} is late, or has lost its body")
            self.found.append((word.time, word.source))
            self.stamps.append(cycle)
