# SPDX-License-Identifier: Apache-2.0
"""Match queues, one per group, which share one memory; they are read in turn."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.key_column import KeyColumn

from .layouts import found_layout, group_count

__all__ = ["MatchQueues"]


class MatchQueues(wiring.Component):
    """Keep matches in as many queues as there are groups, and read one queue after the other.

    A match may arrive for any queue that has not been left since it was last read. Matches are
    taken from the current queue; ``leaves`` advances to the next one, and from the last queue to
    the first.

    Latency: 2 cycles from a match until it is ``waiting``; :attr:`READING` from ``take`` to
    ``first``. Throughput: 1 match in and 1 match out per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    in_flight : int
        Matches that may still arrive after ``room`` fell.

    Members
    -------
    The number of ``queues`` is that of :func:`hdl.index.layouts.group_count`.

    found_valid : In(1)
        ``found`` is a match for the queue ``found_queue``.
    found_queue : In(range(queues))
    found : In(found_layout(parameters))
    room : Out(queues)
        For each queue: ``in_flight`` more matches can be taken; valid 2 cycles after the last
        match.
    waiting : Out(1)
        The current queue holds a match.
    take : In(1)
        Take a match; only while ``waiting``.
    first : Out(found_layout(parameters))
        The match taken :attr:`READING` cycles ago.
    leaves : In(1)
        Leave the current queue, which is empty and has served its last group; not together with
        ``take``.
    """

    #: Total number of entries, and the least number per queue, which takes precedence; powers of
    #: two.
    MATCHES = 512
    LEAST = 32
    READING = KeyColumn.LATENCY

    def __init__(self, parameters, *, in_flight):
        self.in_flight = in_flight
        self.queues = queues = group_count(parameters)
        self.depth = max(self.LEAST, self.MATCHES // queues)
        self.latency = 2
        layout = found_layout(parameters)
        super().__init__(
            {
                "found_valid": In(1),
                "found_queue": In(range(queues)),
                "found": In(layout),
                "room": Out(queues),
                "waiting": Out(1),
                "take": In(1),
                "first": Out(layout),
                "leaves": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = ceil_log2(self.depth)
        m.submodules.matches = matches = KeyColumn(
            width=self.found.shape().size, depth=self.depth * self.queues, late=True
        )
        heads = [Signal(bits + 1, name=f"head_{n}") for n in range(self.queues)]  # with a wrap bit
        tail = Signal(bits + 1)  # of the current queue; the others are zero
        turn, following = Signal(range(self.queues)), Signal(range(self.queues), init=1)
        # The memory is written a cycle late, so the current queue is readable up to its write
        # pointer of a cycle ago.
        written = Signal(bits + 1)
        m.d.comb += [
            matches.place.eq(Cat(Array(heads)[self.found_queue][:bits], self.found_queue)),
            matches.row.eq(self.found),
            matches.write.eq(self.found_valid),
            matches.address.eq(Cat(tail[:bits], turn)),
            self.first.eq(matches.data),
            self.waiting.eq(written != tail),
        ]
        m.d.sync += written.eq(Mux(self.leaves, Array(heads)[following], Array(heads)[turn]))
        for n, head in enumerate(heads):
            with m.If(self.found_valid & (self.found_queue == n)):
                m.d.sync += head.eq(head + 1)
            with m.If(self.leaves & (turn == n)):
                m.d.sync += head.eq(0)
            level = Signal(bits + 1, name=f"level_{n}")
            m.d.sync += [
                level.eq(head - Mux(turn == n, tail, 0)),
                self.room[n].eq(level < self.depth - self.in_flight),
            ]
        with m.If(self.leaves):
            m.d.sync += [tail.eq(0), turn.eq(following), following.eq(following + 1)]
        with m.Elif(self.take):
            m.d.sync += tail.eq(tail + 1)
        return m
