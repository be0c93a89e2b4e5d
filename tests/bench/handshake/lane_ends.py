# SPDX-License-Identifier: Apache-2.0
"""What stands in for a chain at both of its ends, in tests of the coordinator."""

from collections import deque

from amaranth.hdl import Value

from bench.handshake.layouts import LaneKind, lane_word

__all__ = ["LaneEnds"]

#: Words that the register at the input of a core holds.
ROOM = 2


class LaneEnds:
    """Both ends of a chain: they take words of the lanes, and say that fences have settled.

    Attributes
    ----------
    words : list of two lists
        The words of each lane.
    log : list
        Number of words taken of R's and of S's lane, and settled fences, at each transfer, by lane.
    """

    def __init__(self, bench, dut, parameters, *, delay):
        self.bench, self.dut, self.delay = bench, dut, delay
        self.layout = lane_word(parameters)
        self.words, self.stamps, self.log = [[], []], [[], []], [[], []]
        self.taken, self.settled, self.fences = [0, 0], 0, [0, 0]
        self.waiting = [deque(), deque()]
        bench.simulator.add_testbench(self.run, background=True)

    async def run(self, ctx):
        """Take words, cycle by cycle."""
        due = None
        lanes = self.dut.lanes
        while True:
            ready = [len(self.waiting[n]) < ROOM and not self.bench.pauses() for n in range(2)]
            pulse = 0
            for n, waiting in enumerate(self.waiting):
                ctx.set(lanes[n].ready, ready[n])
                if waiting and waiting[0][0] <= self.bench.cycle:
                    _, is_fence = waiting.popleft()
                    pulse |= 1 << n
                    self.fences[n] += is_fence
            settle = due is not None and due <= self.bench.cycle
            ctx.set(self.dut.taken, pulse)
            ctx.set(self.dut.settled, settle)
            before = (*self.taken, self.settled)
            values = [v for lane in lanes for v in (lane.valid, Value.cast(lane.payload))]
            *_, valid_r, r, valid_s, s = await ctx.tick().sample(*values)
            for n, (valid, word) in enumerate(((valid_r, r), (valid_s, s))):
                self.taken[n] += pulse >> n & 1
                if valid and ready[n]:
                    self.words[n].append(word)
                    self.log[n].append(before)
                    self.stamps[n].append(self.bench.cycle - 1)
                    is_fence = self.layout.from_bits(word).kind == LaneKind.FENCE
                    self.waiting[n].append((self.bench.cycle - 1 + self.delay(), is_fence))
            if settle:
                self.settled, due = self.settled + 1, None
            elif due is None and min(self.fences) > self.settled:
                due = self.bench.cycle + 3 + self.delay()
