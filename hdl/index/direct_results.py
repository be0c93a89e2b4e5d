# SPDX-License-Identifier: Apache-2.0
"""Sends matches as they come, and the stars and marks of their groups."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.pointer_queue import PointerQueue
from hdl.words.results import ResultKind, node_result
from hdl.words.spans import pointer_layout

from .layouts import closed_layout, direct_found_layout, probe_shape

__all__ = ["DirectResults"]


class DirectResults(wiring.Component):
    """Send the matches of a group, then its star and its mark; then those of the next group.

    Latency: 1 cycle from a match to its word. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    in_flight : int
        Matches that may come after ``room`` fell.

    Members
    -------
    take : In(1)
        A group begins.
    group : In(closed_layout(parameters))
    free : Out(1)
        It may.
    match : In(1)
        ``found`` is a match of the oldest group.
    found : In(direct_found_layout(parameters))
    drained : In(1)
        The oldest group has no more matches.
    finished : Out(1)
        Its star and mark are sent.
    room : Out(1)
        For as many matches as may be in flight; from a register.
    idle : Out(1)
        There is no group.
    oldest : Out
        From this row on the ring must be kept, unless ``idle``.
    release : Out(1)
        A group has been sent, with all of its ``released`` probes.
    released : Out
    results : Out(stream.Signature(node_result(parameters, 0)))
    """

    #: Groups that can be under way, a power of two.
    GROUPS = 4
    #: Words that can wait at the output, a power of two: the matches of some large groups, for both
    #: regions of a core want to send theirs at once.
    OUTPUT = 256

    def __init__(self, parameters, *, in_flight):
        self.parameters = parameters
        self.in_flight = in_flight
        self.latency = 1
        super().__init__(
            {
                "take": In(1),
                "group": In(closed_layout(parameters)),
                "free": Out(1),
                "match": In(1),
                "found": In(direct_found_layout(parameters)),
                "drained": In(1),
                "finished": Out(1),
                "room": Out(1),
                "idle": Out(1),
                "oldest": Out(pointer_layout(parameters)["row"].shape),
                "release": Out(1),
                "released": Out(range(parameters.probes + 1)),
                "results": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = self.results.payload.shape()
        m.submodules.groups = groups = PointerQueue(
            closed_layout(self.parameters), depth=self.GROUPS
        )
        m.submodules.output = output = PointerQueue(layout, depth=self.OUTPUT)
        ending = groups.first.ending
        starred = Signal()  # the group's star is sent; its mark follows
        star = ending.star & ~starred
        ends = self.drained & self.room
        m.d.comb += [
            groups.add.eq(self.take),
            groups.last.eq(self.group),
            groups.take.eq(self.finished),
            self.free.eq(groups.level < self.GROUPS),
            self.idle.eq(~groups.filled),
            self.oldest.eq(groups.first.first),
            self.finished.eq(ends & ~(star & ending.mark)),
            self.release.eq(self.finished),
            self.released.eq(ending.count),
            output.add.eq(self.match | (ends & (star | ending.mark))),
            output.take.eq(output.filled & self.results.ready),
            self.results.valid.eq(output.filled),
            self.results.payload.eq(output.first),
        ]
        # Stars and marks are as many cycles late as matches, and there may be one more of them.
        m.d.sync += self.room.eq(output.level < self.OUTPUT - self.in_flight - 1)
        # What makes the probe's place its number since the last star.
        origin = Signal(probe_shape(self.parameters))  # place of the group's first probe
        base = Signal(self.parameters.probe_bits)  # probes since the last star, before this group
        with m.If(ends):
            m.d.sync += starred.eq(star & ending.mark)
        with m.If(self.finished):
            m.d.sync += [
                origin.eq(origin + ending.count),
                base.eq(Mux(ending.star, 0, base + ending.count)),
            ]
        word = output.last
        with m.If(self.match):
            m.d.comb += [
                word.kind.eq(ResultKind.PAIR),
                word.body.pair.probe.eq(base + (self.found.probe - origin)[: len(origin)]),
                word.body.pair.row.eq(self.found.place),
            ]
        with m.Else():
            m.d.comb += [
                word.kind.eq(Mux(star, ResultKind.STAR, ResultKind.MARK)),
                word.body.punctuation.eq(ending.punctuation),
            ]
        return m
