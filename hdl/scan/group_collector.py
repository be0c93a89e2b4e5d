# SPDX-License-Identifier: Apache-2.0
"""Group collector: gathers the probes that share one pass over the sub-window."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.words.spans import ending_layout, pointer_layout, span_layout

from .layouts import group_layout

__all__ = ["GroupCollector"]


class GroupCollector(wiring.Component):
    """Collect the probes of the open group, and the first and last row of its pass.

    The probes themselves wait in the slots of the scanner; ``add_to`` selects the slot. The ingress
    closes groups, not the collector, so that all cores close the same ones. A closed group waits at
    ``group``. The collector is not ``ready`` until the group is taken, and for ``hold`` cycles, the
    first of which is that of the transfer. So the scanner can still use the contents of the slots.

    Latency: 1 cycle. Throughput: 1 probe per cycle within a group, and ``hold`` cycles between two
    groups.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    hold : int
        Cycles after the transfer of a group in which the slots stay unchanged, at least one.

    Members
    -------
    ready, soon : Out(1)
        A probe, or the end of a group, can be taken: in this cycle (``ready``), in the next one
        (``soon``).
    add : In(1)
        Take a probe that sees ``span``; only while ``ready``.
    span : In
    second, stop : In
        The row after the first row of ``span``, and the row after its last.
    add_to : Out(probes)
        Slot that takes the probe; one-hot.
    close : In(1)
        The group ends, including the probe of this cycle if there is one; only while ``ready``.
    ending : In
        What follows the closing group; its ``count`` is ignored.
    group : Out(stream.Signature(group_layout(parameters)))
    count : Out
        Number of probes collected.
    """

    def __init__(self, parameters, *, hold):
        if hold < 1:
            raise ValueError(f"A group must be held for at least one cycle, not {hold!r}")
        self.parameters = parameters
        self.hold = hold
        self.latency = 1
        super().__init__(
            {
                "ready": Out(1, init=1),
                "soon": Out(1),
                "add": In(1),
                "span": In(span_layout(parameters)),
                "second": In(pointer_layout(parameters)["row"].shape),
                "stop": In(pointer_layout(parameters)["row"].shape),
                "add_to": Out(parameters.probes),
                "close": In(1),
                "ending": In(ending_layout(parameters)),
                "group": Out(stream.Signature(group_layout(parameters))),
                "count": Out(range(parameters.probes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        group = Signal(group_layout(self.parameters), reset_less=True)
        slot = Signal(self.parameters.probes, init=1)  # the next slot, one-hot
        held = Signal(self.hold - 1)
        closed = Signal()
        transfer = self.group.valid & self.group.ready
        # A probe changes its slot a cycle after it is added, so adding may resume in the last cycle
        # of the hold.
        holding = Cat(transfer, held)[: self.hold - 1]
        m.d.sync += [
            held.eq(holding),
            self.ready.eq(self.soon),
        ]
        m.d.comb += [
            self.soon.eq(~((closed & ~transfer) | self.close | (holding != 0))),
            self.add_to.eq(slot & self.add.replicate(self.parameters.probes)),
            self.group.valid.eq(closed),
            self.group.payload.eq(group),
        ]
        with m.If(self.add):
            m.d.sync += [
                # The pass ends where the span of the last probe ends, as spans never move back.
                group.stop.eq(self.stop),
                group.newest_tail.eq(self.span.tail.row),
                self.count.eq(self.count + 1),
                slot.eq(slot.rotate_left(1)),
            ]
        # A group without probes has a first row, too: the ring is kept from there on for the probes
        # that follow, however long the pass of this group has to wait.
        with m.If((self.add | self.close) & (self.count == 0)):
            m.d.sync += [
                group.first.eq(self.span.tail.row),
                group.second.eq(self.second),
                group.oldest_head.eq(self.span.head.row),
            ]
            if self.parameters.rounds:
                m.d.sync += [
                    group.tail_lane.eq(self.span.tail.lane),
                    group.head_lane.eq(self.span.head.lane),
                ]
        with m.If(self.close):
            m.d.sync += [
                closed.eq(1),
                group.ending.eq(self.ending),
                group.ending.count.eq(self.count + self.add),
            ]
        with m.If(transfer):
            m.d.sync += [closed.eq(0), self.count.eq(0), slot.eq(1)]
        return m
