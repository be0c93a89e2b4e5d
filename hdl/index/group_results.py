# SPDX-License-Identifier: Apache-2.0
"""Keeps the matches of groups apart, and sends them group by group, with their stars."""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.layouts import ResultKind, node_result, pointer_layout
from hdl.streams import StreamRegister

from .layouts import GROUPS, closed_layout, found_layout

__all__ = ["GroupResults"]


class GroupResults(wiring.Component):
    """Send the matches of a group, then its star and its mark; then those of the next group.

    Groups overlap: while the walks of one end, those of the next are under way already. A group is
    complete when all its walks were started and have ended.

    Latency: 3 cycles from a match to its word, or from the end of the last walk to the star.
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
    sent : In(GROUPS)
        A walk of this group begins, or may begin …
    dropped : In(GROUPS)
        … and after all does not.
    ended : In(GROUPS)
        A walk has ended.
    started : In(GROUPS)
        No more walks of this group begin.
    found_valid : In(GROUPS)
    found : In(found_layout(parameters))
    room : Out(GROUPS)
    idle : Out(1)
        No number is in use.
    oldest : Out
        From this row on the ring must be kept, unless ``idle``.
    results : Out(stream.Signature(node_result(parameters, 0)))
    """

    #: Matches that can wait, of every group.
    DEPTH = 32
    #: Walks of one group that can be under way: all that are queued, looked up, or in the circle.
    WALKS = 64

    def __init__(self, parameters, *, in_flight):
        self.parameters = parameters
        self.in_flight = in_flight
        self.latency = 3
        super().__init__(
            {
                "take": In(GROUPS),
                "group": In(closed_layout(parameters)),
                "free": Out(GROUPS, init=(1 << GROUPS) - 1),
                "sent": In(GROUPS),
                "dropped": In(GROUPS),
                "ended": In(GROUPS),
                "started": In(GROUPS),
                "found_valid": In(GROUPS),
                "found": In(found_layout(parameters)),
                "room": Out(GROUPS),
                "idle": Out(1),
                "oldest": Out(pointer_layout(parameters)["row"].shape),
                "results": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.results.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.results))
        turn = Signal(range(GROUPS))  # the group that is sent
        base = Signal(self.parameters.probe_bits)  # probes since the last star, before this group
        queues, groups, complete = [], [], Signal(GROUPS)
        for n in range(GROUPS):
            queue, group = self.elaborate_group(m, n, complete)
            queues.append(queue)
            groups.append(group)
        waiting = Array(queue.r_rdy for queue in queues)[turn]
        found = Signal(found_layout(self.parameters))
        group = Signal(closed_layout(self.parameters))
        m.d.comb += [
            found.eq(Array(queue.r_data for queue in queues)[turn]),
            group.eq(Array(groups)[turn]),
            self.idle.eq(self.free.all()),
            # Numbers come in turn, so the one that is sent is the oldest.
            self.oldest.eq(group.first),
        ]
        word = output.i
        starred = Signal()  # the group's star is sent, its mark is not
        ending = group.ending
        star = ending.star & ~starred
        done = Signal()
        release = Signal(GROUPS)
        m.d.comb += release.eq(done << turn)
        m.d.sync += self.free.eq((self.free & ~self.take) | release)
        with m.If(waiting):
            m.d.comb += [
                word.valid.eq(1),
                word.payload.kind.eq(ResultKind.PAIR),
                word.payload.body.pair.probe.eq(base + found.probe),
                word.payload.body.pair.row.eq(found.place),
            ]
            for n, queue in enumerate(queues):
                m.d.comb += queue.r_en.eq(word.ready & (turn == n))
        with m.Else():
            m.d.comb += [
                word.payload.kind.eq(Mux(star, ResultKind.STAR, ResultKind.MARK)),
                word.payload.body.punctuation.eq(ending.punctuation),
            ]
            with m.If(complete.bit_select(turn, 1)):
                m.d.comb += [
                    word.valid.eq(star | ending.mark),
                    done.eq((word.ready & ~(star & ending.mark)) | ~word.valid),
                ]
                with m.If(word.ready):
                    m.d.sync += starred.eq(star & ending.mark)
        with m.If(done):
            m.d.sync += [turn.eq(turn + 1), base.eq(Mux(ending.star, 0, base + ending.count))]
        return m

    def elaborate_group(self, m, n, complete):
        """Keep the matches of one group, and count the walks that are under way."""
        queue = fifo.SyncFIFO(width=self.found.shape().size, depth=self.DEPTH)
        m.submodules[f"queue_{n}"] = queue
        group = Signal(closed_layout(self.parameters), name=f"group_{n}", reset_less=True)
        walks = Signal(range(self.WALKS), name=f"walks_{n}")
        m.d.comb += [queue.w_en.eq(self.found_valid[n]), queue.w_data.eq(self.found)]
        m.d.sync += [
            self.room[n].eq(queue.w_level < self.DEPTH - self.in_flight),
            walks.eq(walks + self.sent[n] - self.dropped[n] - self.ended[n]),
            complete[n].eq(self.started[n] & ~self.free[n] & ~self.sent[n] & (walks == 0)),
        ]
        with m.If(self.take[n]):
            m.d.sync += group.eq(self.group)
        return queue, group
