# SPDX-License-Identifier: Apache-2.0
"""One core of the handshake join, with what it is told of its neighbours and what happens in it."""

from collections import deque
from itertools import pairwise

from bench.handshake.chain import HandshakeCore
from bench.handshake.layouts import LaneKind
from tests.bench.handshake.core_bench import CoreBench

__all__ = ["FlowBench"]

R, S = 0, 1


class FlowBench(CoreBench):
    """A core whose neighbours hold as many tuples as ``held`` says.

    Attributes
    ----------
    held : list of int
        Tuples of R that the left neighbour holds, and tuples of S that the right one does.
    most : int
        Stands for no neighbour.
    cycles : list of tuple of int
        What the core says in every cycle: which lanes' words were taken in the one before, and how
        many tuples of R and of S it held then.
    """

    def __init__(self, parameters, **others):
        super().__init__(HandshakeCore(parameters), **others)
        self.most = (1 << len(self.dut.held_i[0])) - 1
        self.held, self.cycles = [self.most] * 2, []
        self.bench.simulator.add_testbench(self.record, background=True)

    async def record(self, ctx):
        """Say what neighbours hold, and note what happens."""
        said = [self.dut.taken, *self.dut.held_o]
        while True:
            for side in (R, S):
                ctx.set(self.dut.held_i[side], self.held[side])
            *_, taken, r, s = await ctx.tick().sample(*said)
            self.cycles.append((taken, r, s))

    @property
    def is_empty(self):
        """Whether all tuples have left."""
        return not any(self.cycles[-1])

    def happened(self, lanes):
        """Return what was taken, and which tuples were sent on, in order; one thing in a cycle."""
        lanes = [deque(lane) for lane in lanes]
        for (taken, *held), (_, *later) in pairwise(self.cycles):
            left = [now - then for now, then in zip(held, later, strict=True)]
            if taken:
                lane = taken >> 1
                word = lanes[lane].popleft()
                left[lane] += word["kind"] == LaneKind.TUPLE
                left[1 - lane] -= word["kind"] == LaneKind.EXPIRE
                yield lane, word
            assert sum(left) + bool(taken) <= 1
            assert min(left) == 0
            for side in (R, S):
                if left[side]:
                    yield side, None
        assert not any(lanes)
