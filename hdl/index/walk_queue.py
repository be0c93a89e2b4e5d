# SPDX-License-Identifier: Apache-2.0
"""Queue of walks that have not started yet; a visit may begin one in every bank."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.pointer_queue import PointerQueue

from .layouts import bank_count, walk_layout, walks_layout

__all__ = ["WalkQueue"]


class WalkQueue(wiring.Component):
    """A queue of the walks that visits begin; the walks of one visit leave one after the other.

    Walks leave in the order of their visits, so no walk waits for one of a later group. (With a
    queue for every bank, walks of a group whose matches have no room could block walks of the
    previous group, which have to finish before there is room: a deadlock.)

    A queue of more than :attr:`SHALLOW` visits would be read through multiplexers behind its
    memory. Therefore the next few visits move up into a short queue.

    Latency: 1 cycle, or 2 with the short queue. Throughput: all walks of 1 visit in, and 1 walk
    out, per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    depth : int
        Number of visits whose walks can wait, a power of two.
    in_flight : int
        Visits that may still arrive when ``ready`` falls, including one of the previous cycle.

    Members
    -------
    begin : In(banks)
        Banks in which a walk begins.
    walks : In(walks_layout(parameters))
        One walk per bank.
    ready : Out(1)
        There was room for more than ``in_flight`` visits a cycle ago; from a register.
    filled : Out(1)
        ``first`` is a walk; from a register.
    first : Out(walk_layout(parameters))
    take : In(1)
        The walk ``first`` leaves the queue; only while ``filled``.
    """

    #: Depth of a distributed RAM.
    SHALLOW = 16
    #: Depth of the short queue, and how many of its entries are reserved for visits in flight.
    FRONT, RESERVE = 8, 2

    def __init__(self, parameters, *, depth, in_flight):
        self.parameters = parameters
        self.depth = depth
        self.in_flight = in_flight
        self.latency = 1 if depth <= self.SHALLOW else 2
        super().__init__(
            {
                "begin": In(bank_count(parameters)),
                "walks": In(walks_layout(parameters)),
                "ready": Out(1, init=1),
                "filled": Out(1),
                "first": Out(walk_layout(parameters)),
                "take": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = data.StructLayout({"walks": self.walks.shape(), "both": 1, "second": 1})
        m.submodules.queue = queue = PointerQueue(layout, depth=self.depth)
        m.d.sync += self.ready.eq(queue.level < self.depth - self.in_flight)
        m.d.comb += [queue.add.eq(self.begin.any()), queue.last.walks.eq(self.walks)]
        if len(self.begin) > 1:
            m.d.comb += [
                queue.last.both.eq(self.begin.all()),
                queue.last.second.eq(~self.begin[0]),
            ]
        if self.depth > self.SHALLOW:
            queue = self.elaborate_front(m, queue)
        front = queue.first.walks
        m.d.comb += [
            self.filled.eq(queue.filled),
            *(self.first[name].eq(front[name]) for name in ("probe", "group", "queue")),
        ]
        entry = front.entries[0]
        if len(self.begin) == 1:
            m.d.comb += queue.take.eq(self.take)
        else:
            begun = Signal()  # the first walk of two has left
            second = begun | queue.first.second
            entry = data.View(
                entry.shape(), Mux(second, *(Value.cast(front.entries[n]) for n in (1, 0)))
            )
            m.d.comb += queue.take.eq(self.take & (begun | ~queue.first.both))
            with m.If(self.take):
                m.d.sync += begun.eq(queue.first.both & ~begun)
        m.d.comb += [self.first[name].eq(entry[name]) for name, _ in entry.shape()]
        return m

    def elaborate_front(self, m, queue):
        """Move visits up into a short queue, and return that queue."""
        m.submodules.front = front = PointerQueue(
            queue.shape, depth=self.FRONT, reserve=self.RESERVE
        )
        m.d.comb += [
            front.add.eq(queue.filled & front.room),
            front.last.eq(queue.first),
            queue.take.eq(front.add),
        ]
        return front
