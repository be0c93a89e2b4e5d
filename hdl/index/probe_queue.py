# SPDX-License-Identifier: Apache-2.0
"""Probes wait here until their group is closed."""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.layouts import ending_layout, pointer_layout

from .layouts import closed_layout, waiting_layout

__all__ = ["ProbeQueue"]


class ProbeQueue(wiring.Component):
    """Queue probes one by one, and groups as they close.

    Results of a group wait for no later word than the one that closes it (see
    :class:`hdl.merger.Merger`); so no probe sets out before. There is room for a whole group and
    more, so an open one never fills the queue.

    Latency: 1 cycle. Throughput: 1 probe per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    ready : Out(1)
        There is room for a probe, or the end of a group, two cycles ahead.
    add : In(1)
        Take ``probe``.
    probe : In(waiting_layout(parameters))
    tail : In
        The row of its span's tail, with wrap bit.
    close : In(1)
        The group ends, with the probe of this cycle if there is one.
    ending : In
        What follows it; its ``count`` is ignored.
    groups : Out(stream.Signature(closed_layout(parameters)))
    probes : Out(stream.Signature(waiting_layout(parameters)))
        Those of closed groups are to be taken only.
    oldest : Out
        From this row on the ring must be kept for the probes here: the ``tail`` of the first one.
    """

    #: Groups that can wait.
    DEPTH = 8
    #: Probes and ends of groups that may come after ``ready`` fell.
    IN_FLIGHT = 3

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        row = pointer_layout(parameters)["row"].shape
        super().__init__(
            {
                "ready": Out(1, init=1),
                "add": In(1),
                "probe": In(waiting_layout(parameters)),
                "tail": In(row),
                "close": In(1),
                "ending": In(ending_layout(parameters)),
                "groups": Out(stream.Signature(closed_layout(parameters))),
                "probes": Out(stream.Signature(waiting_layout(parameters))),
                "oldest": Out(row),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = 1 << ceil_log2(2 * self.parameters.probes + 2 * self.IN_FLIGHT)
        probes = fifo.SyncFIFO(width=self.probe.shape().size, depth=depth)
        groups = fifo.SyncFIFO(width=closed_layout(self.parameters).size, depth=self.DEPTH)
        for name, queue, output in (
            ("probe_fifo", probes, self.probes),
            ("group_fifo", groups, self.groups),
        ):
            m.submodules[name] = queue
            m.d.comb += [
                output.valid.eq(queue.r_rdy),
                output.payload.eq(queue.r_data),
                queue.r_en.eq(output.ready),
            ]

        count = Signal(range(self.parameters.probes + 1))
        first = Signal.like(self.tail, reset_less=True)  # of the open group
        begins = self.add & (count == 0)
        closing = Signal(closed_layout(self.parameters))
        m.d.comb += [
            probes.w_en.eq(self.add),
            probes.w_data.eq(self.probe),
            closing.ending.eq(self.ending),
            closing.ending.count.eq(count + self.add),
            closing.first.eq(Mux(count == 0, self.tail, first)),
            groups.w_en.eq(self.close),
            groups.w_data.eq(closing),
            self.oldest.eq(
                Mux(
                    groups.r_rdy,
                    self.groups.payload.first,
                    Mux(count == 0, self.tail, first),
                )
            ),
        ]
        m.d.sync += self.ready.eq(
            (probes.w_level < depth - self.IN_FLIGHT)
            & (groups.w_level < self.DEPTH - self.IN_FLIGHT)
        )
        with m.If(begins):
            m.d.sync += first.eq(self.tail)
        with m.If(self.close):
            m.d.sync += count.eq(0)
        with m.Elif(self.add):
            m.d.sync += count.eq(count + 1)
        return m
