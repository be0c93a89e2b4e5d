# SPDX-License-Identifier: Apache-2.0
"""Collects probes into the group that shares one pass over the sub-window."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import criterion_layout, group_layout, pointer_layout, span_layout

__all__ = ["GroupCollector"]


class GroupCollector(wiring.Component):
    """Hold the probes of the open group, each with the span of the window that it met.

    Groups are not closed here but by the ingress, so that all cores close the same ones. A closed
    group waits at ``group``; until it is taken, the collector is not ``ready``.

    Contract beyond the stream rules: the payload of ``group`` stays for ``hold`` more cycles after
    its transfer, which lets the scanner keep the old probes for the key rows still on their way.

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
    ready : Out(1)
        A probe, or the end of a group, can be taken.
    add : In(1)
        Take a probe, ``criterion`` and ``span``; only while ``ready``.
    criterion : In
    span : In
    close : In(1)
        The group ends, with the probe of this cycle if there is one; only while ``ready``.
    ending : In
        ``star``, ``mark`` and ``punctuation`` of the closing group; the rest is ignored.
    group : Out(stream.Signature(group_layout(parameters)))
    waiting : Out(1)
        At least one probe is held.
    oldest : Out
        Where the first of them needs the ring from.
    """

    def __init__(self, parameters, *, hold):
        if hold < 1:
            raise ValueError(f"A group must be held for at least one cycle, not {hold!r}")
        self.parameters = parameters
        self.hold = hold
        self.latency = 1
        super().__init__(
            {
                "ready": Out(1),
                "add": In(1),
                "criterion": In(criterion_layout(parameters)),
                "span": In(span_layout(parameters)),
                "close": In(1),
                "ending": In(group_layout(parameters)),
                "group": Out(stream.Signature(group_layout(parameters))),
                "waiting": Out(1),
                "oldest": Out(pointer_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        group = Signal(group_layout(self.parameters), init={"short": 1})
        closed = Signal()
        count = Signal.like(group.count)
        # A probe that is added shows in the cycle after it; before that, nothing may be added.
        held = Signal(self.hold - 1)
        transfer = self.group.valid & self.group.ready
        m.d.sync += held.eq(Cat(transfer, held))
        m.d.comb += [
            self.ready.eq(~closed & ~held.any()),
            self.waiting.eq(count != 0),
            self.oldest.eq(group.slots[0].span.tail),
            self.group.valid.eq(closed),
            self.group.payload.eq(group),
        ]
        # A group ends where its last probe ends, as spans never move back.
        stop = (self.span.head.row + (self.span.head.lane != 0))[: len(group.stop)]
        first = Mux(count == 0, self.span.tail.row, self.oldest.row)
        with m.If(self.add):
            m.d.sync += [group.stop.eq(stop), group.short.eq((stop - first)[: len(stop)] <= 1)]
            for n, slot in enumerate(group.slots):
                with m.If(count == n):
                    m.d.sync += [slot.criterion.eq(self.criterion), slot.span.eq(self.span)]
            m.d.sync += count.eq(count + 1)
        with m.If(self.close):
            m.d.sync += [
                closed.eq(1),
                group.count.eq(count + self.add),
                group.star.eq(self.ending.star),
                group.mark.eq(self.ending.mark),
                group.punctuation.eq(self.ending.punctuation),
            ]
        with m.If(transfer):
            m.d.sync += [closed.eq(0), count.eq(0), group.short.eq(1)]
        return m
