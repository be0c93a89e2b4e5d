# SPDX-License-Identifier: Apache-2.0
"""Pipelines without back-pressure, and the queue at the end of such a pipeline.

A steady stream is an Amaranth stream whose ``ready`` is always high: a payload is transferred in
the cycle in which it is valid. A pipeline stage is one register that nothing stalls, so a pipeline
can have as many stages as the clock period demands. Back-pressure acts in front of the first stage:
the producer must not send more payloads than the queue behind the last stage has room for.
"""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .pointer_queue import PointerQueue

__all__ = ["SteadyQueue", "SteadyRegister", "steady"]


def steady(shape):
    """Return the signature of a stream that is always ready."""
    return stream.Signature(shape, always_ready=True)


class SteadyRegister(wiring.Component):
    """One stage of a steady pipeline.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    gated : bool
        Whether the payload register is only loaded with valid payloads. On the chip this is a clock
        enable. In simulation, an idle stage then costs nothing.

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
    """The end of a steady pipeline: a queue whose output may be stalled.

    ``room`` is high while the queue has a place for one more payload besides all payloads that are
    under way in the pipeline. A producer that sends only while ``room`` is high never overflows the
    queue. A stall leaves no gap in the output either: the queue holds as many payloads as the
    output can take before the next ones arrive through the pipeline.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    stages : int
        Cycles from the check of ``room`` by the producer to the payload at ``i``: the latency of
        the pipeline.

    Members
    -------
    i : In(steady(shape))
    o : Out(stream.Signature(shape))
    room : Out(1)
        From a register.
    """

    def __init__(self, shape, *, stages):
        self.shape = shape
        self.stages = stages
        # Places for the payloads that are under way when `room` falls. As many again leave the
        # queue before the first payload arrives that was sent after `room` rose.
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
