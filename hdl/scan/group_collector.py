# SPDX-License-Identifier: Apache-2.0
"""Collects probes into the group that shares one pass over the sub-window."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.words.spans import ending_layout, pointer_layout, span_layout

from .layouts import group_layout

__all__ = ["GroupCollector"]


class GroupCollector(wiring.Component):
    """Collect the probes of the open group, and where its pass begins and ends.

    The probes themselves wait in the slots of the scanner; ``add_to`` says in which. Groups are not
    closed here but by the ingress, so that all cores close the same ones. A closed group waits at
    ``group``; until it is taken, and for ``hold`` cycles from then on, the collector is not
    ``ready``, so that the scanner can still use what the slots hold.

    Latency: 1 cycle. Throughput: 1 probe per cycle inside a group, and ``hold`` cycles between two
    groups.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    hold : int
        Cycles, at least one.

    Members
    -------
    ready, soon : Out(1)
        A probe, or the end of a group, can be taken: in this cycle, in the next one.
    add : In(1)
        Take a probe that sees ``span``; only while ``ready``.
    span : In
    second, stop : In
        The row after the first one of ``span``, and after the last one.
    add_to : Out(probes)
        The slot that it goes to.
    close : In(1)
        The group ends, with the probe of this cycle if there is one; only while ``ready``.
    ending : In
        What follows the closing group; its ``count`` is ignored.
    group : Out(stream.Signature(group_layout(parameters)))
    count : Out
        Probes held.
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
        slot = Signal(self.parameters.probes, init=1)  # the next one, one-hot
        held = Signal(self.hold - 1)
        closed = Signal()
        transfer = self.group.valid & self.group.ready
        # A probe that is added shows in the cycle after it; before that, nothing may be added.
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
                # A group ends where its last probe ends, as spans never move back.
                group.stop.eq(self.stop),
                group.newest_tail.eq(self.span.tail.row),
                self.count.eq(self.count + 1),
                slot.eq(slot.rotate_left(1)),
            ]
        # A group without probes has a first row too: from there on the ring is kept for those that
        # follow, however long its pass has to wait.
        with m.If((self.add | self.close) & (self.count == 0)):
            m.d.sync += [
                group.first.eq(self.span.tail.row),
                group.second.eq(self.second),
                group.oldest_head.eq(self.span.head.row),
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
