# SPDX-License-Identifier: Apache-2.0
"""Keeps the matches of groups apart, and sends them group by group, with their stars."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.layouts import ResultKind, node_result, pointer_layout
from hdl.streams import StreamRegister

from .layouts import GROUPS, closed_layout, found_layout, probe_shape

__all__ = ["GroupResults"]


class GroupResults(wiring.Component):
    """Send the matches of a group, then its star and its mark; then those of the next group.

    Groups overlap: while the walks of one end, those of the next are under way already. A group is
    complete when all its walks were begun and have ended. All matches wait in one memory, of which
    every group number has a part; only the part of the oldest group is read.

    Latency: 2 cycles from a match to its word; 4 from the end of the last walk to the star.
    Throughput: 1 word per cycle; a group without star and mark takes 1 cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    in_flight : int
        Matches that may come after ``room`` fell.

    Members
    -------
    take : In(GROUPS)
        A group begins, with this number.
    group : In(closed_layout(parameters))
    free : Out(GROUPS)
        Numbers that are not in use.
    begun : In(GROUPS)
        A walk of this group begins, or may begin …
    dropped : In(GROUPS)
        … and after all does not.
    ended : In(GROUPS)
        A walk has ended.
    started : In(GROUPS)
        No more walks of this group begin.
    found_valid : In(1)
        ``found`` is a match of the group with the number ``found_group``.
    found_group : In(range(GROUPS))
    found : In(found_layout(parameters))
    room : Out(GROUPS)
    idle : Out(1)
        No number is in use.
    oldest : Out
        From this row on the ring must be kept, unless ``idle``.
    release : Out(1)
        A group has been sent, with all of its ``released`` probes.
    released : Out
    results : Out(stream.Signature(node_result(parameters, 0)))
    """

    #: Matches that can wait, of every group; a power of two.
    DEPTH = 32
    #: Walks of one group that can be under way: all that are queued, looked up, or in the circle.
    WALKS = 64

    def __init__(self, parameters, *, in_flight):
        self.parameters = parameters
        self.in_flight = in_flight
        self.latency = 2
        super().__init__(
            {
                "take": In(GROUPS),
                "group": In(closed_layout(parameters)),
                "free": Out(GROUPS, init=(1 << GROUPS) - 1),
                "begun": In(GROUPS),
                "dropped": In(GROUPS),
                "ended": In(GROUPS),
                "started": In(GROUPS),
                "found_valid": In(1),
                "found_group": In(range(GROUPS)),
                "found": In(found_layout(parameters)),
                "room": Out(GROUPS),
                "idle": Out(1, init=1),
                "oldest": Out(pointer_layout(parameters)["row"].shape),
                "release": Out(1),
                "released": Out(range(parameters.probes + 1)),
                "results": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.results.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.results))
        turn = Signal(range(GROUPS))  # the group that is sent
        done = Signal()
        group = self.elaborate_groups(m, turn)
        complete = self.elaborate_walks(m, done << turn)
        found, waiting, take = self.elaborate_matches(m, turn, done)

        word, ending = output.i, group.ending
        #: What makes the probe's place its number since the last star.
        origin = Signal(probe_shape(self.parameters))  # place of the group's first probe
        base = Signal(self.parameters.probe_bits)  # probes since the last star, before this group
        starred = Signal()  # the group's star is sent, its mark is not
        star = ending.star & ~starred
        both = star & ending.mark
        ended = ~waiting & complete.bit_select(turn, 1)
        m.d.comb += [
            word.valid.eq(waiting | (ended & (star | ending.mark))),
            take.eq(waiting & word.ready),
            done.eq(ended & (word.ready | ~word.valid) & ~both),
            self.oldest.eq(group.first),
            self.release.eq(done),
            self.released.eq(ending.count),
        ]
        with m.If(waiting):
            m.d.comb += [
                word.payload.kind.eq(ResultKind.PAIR),
                word.payload.body.pair.probe.eq(base + (found.probe - origin)[: len(origin)]),
                word.payload.body.pair.row.eq(found.place),
            ]
        with m.Else():
            m.d.comb += [
                word.payload.kind.eq(Mux(star, ResultKind.STAR, ResultKind.MARK)),
                word.payload.body.punctuation.eq(ending.punctuation),
            ]
        with m.If(ended & word.ready):
            m.d.sync += starred.eq(both)
        with m.If(done):
            m.d.sync += [
                turn.eq(turn + 1),
                origin.eq(origin + ending.count),
                base.eq(Mux(ending.star, 0, base + ending.count)),
            ]
        return m

    def elaborate_groups(self, m, turn):
        """Keep what is known of every group; return the one that is sent."""
        layout = closed_layout(self.parameters)
        m.submodules.groups = groups = memory.Memory(shape=layout, depth=GROUPS, init=[])
        write, read = groups.write_port(), groups.read_port(domain="comb")
        number = Signal(range(GROUPS))  # of the next group; they come in turn
        m.d.comb += [
            write.addr.eq(number),
            write.data.eq(self.group),
            write.en.eq(self.take.any()),
            read.addr.eq(turn),
        ]
        m.d.sync += number.eq(number + self.take.any())
        return read.data

    def elaborate_walks(self, m, sent):
        """Count the walks of every group; return which groups are complete."""
        complete = Signal(GROUPS)
        free = (self.free & ~self.take) | sent
        m.d.sync += [self.free.eq(free), self.idle.eq(free.all())]
        for n in range(GROUPS):
            walks = Signal(range(self.WALKS), name=f"walks_{n}")
            m.d.sync += [
                walks.eq(walks + self.begun[n] - self.dropped[n] - self.ended[n]),
                complete[n].eq(self.started[n] & ~self.free[n] & ~self.begun[n] & (walks == 0)),
            ]
        return complete

    def elaborate_matches(self, m, turn, done):
        """Keep matches; return the next one of the group that is sent, and a signal to take it."""
        layout = found_layout(self.parameters)
        bits = ceil_log2(self.DEPTH)
        m.submodules.matches = matches = memory.Memory(shape=layout, depth=GROUPS << bits, init=[])
        write, read = matches.write_port(), matches.read_port(domain="comb")
        heads = [Signal(bits + 1, name=f"head_{n}") for n in range(GROUPS)]  # with wrap bit
        tail = Signal(bits + 1)  # of the group that is sent; the others are at zero
        take = Signal()
        head = Array(heads)[turn]
        m.d.comb += [
            write.addr.eq(Cat(Array(heads)[self.found_group][:bits], self.found_group)),
            write.data.eq(self.found),
            write.en.eq(self.found_valid),
            read.addr.eq(Cat(tail[:bits], turn)),
        ]
        for n, own in enumerate(heads):
            with m.If(self.found_valid & (self.found_group == n)):
                m.d.sync += own.eq(own + 1)
            with m.If(done & (turn == n)):
                m.d.sync += own.eq(0)
            level = (own - Mux(turn == n, tail, 0))[: len(tail)]
            m.d.sync += self.room[n].eq(level < self.DEPTH - self.in_flight)
        with m.If(take):
            m.d.sync += tail.eq(tail + 1)
        with m.If(done):
            m.d.sync += tail.eq(0)
        return read.data, head != tail, take
