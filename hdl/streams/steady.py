# SPDX-License-Identifier: Apache-2.0
"""Pipelines that never stop, and the queue that lets them.

A steady stream is an Amaranth stream that is always ready: what is valid in a cycle is taken in it.
So a stage is one register, which nothing stops, and there may be as many stages as the clock
wants. Somebody has to stop before the first stage for what the queue behind the last one has no
room for.
"""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .pointer_queue import PointerQueue

__all__ = ["SteadyQueue", "SteadyRegister", "steady"]


def steady(shape):
    """Return the signature of a stream that never stops."""
    return stream.Signature(shape, always_ready=True)


class SteadyRegister(wiring.Component):
    """One stage of a steady pipeline.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    gated : bool
        Whether the payload only changes when a valid one comes. That is a clock enable on the chip,
        and spares the simulator a stage that nothing passes.

    Members
    -------
    i : In(steady(shape))
    o : Out(steady(shape))
    """

    def __init__(self, shape, *, gated=False):
        self.shape = shape
        self.gated = gated
        self.latency = 1
        super().__init__({"i": In(steady(shape)), "o": Out(steady(shape))})

    def elaborate(self, platform):
        m = Module()
        payload = Signal(self.shape, reset_less=True, name="held")
        valid = Signal(name="holds")
        load = payload.eq(self.i.payload)
        if self.gated:
            with m.If(self.i.valid):
                m.d.sync += load
        else:
            m.d.sync += load
        m.d.sync += valid.eq(self.i.valid)
        m.d.comb += [self.o.payload.eq(payload), self.o.valid.eq(valid)]
        return m


class SteadyQueue(wiring.Component):
    """The end of a steady pipeline: a stream that may be stopped.

    ``room`` says, out of a register, whether there is a place for one more payload after all that
    are under way. Whoever looks at it where the pipeline begins can neither lose a payload nor
    keep one waiting: after a stop, as many are here as reach the output until the next ones come.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    stages : int
        Cycles from ``room`` being looked at to ``i``: the latency of the pipeline.

    Members
    -------
    i : In(steady(shape))
    o : Out(stream.Signature(shape))
    room : Out(1)
    """

    def __init__(self, shape, *, stages):
        self.shape = shape
        self.stages = stages
        # Those that are under way when `room` goes down; and as many again, which leave before the
        # first one comes after `room` went up.
        self.depth = 1 << ceil_log2(2 * stages + 4)
        self.latency = 1
        super().__init__(
            {"i": In(steady(shape)), "o": Out(stream.Signature(shape)), "room": Out(1, init=1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = PointerQueue(
            self.shape, depth=self.depth, reserve=self.stages + 1
        )
        m.d.comb += [
            queue.add.eq(self.i.valid),
            queue.last.eq(self.i.payload),
            queue.take.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(queue.filled),
            self.o.payload.eq(queue.first),
            self.room.eq(queue.room),
        ]
        return m
