# SPDX-License-Identifier: Apache-2.0
"""Turns rows of match bits into one result word per cycle."""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .layouts import ResultKind, match_layout, node_result
from .streams import StreamRegister

__all__ = ["MatchQueue"]


class MatchQueue(wiring.Component):
    """Queue the rows that have matches, and send each match as a pair, in order of lane and probe.

    After the last row of a pass follow its star and its mark, if it has them. The scan goes on
    while a crowded row is sent, until the queue is so full that the rows in flight would not fit.

    Latency: 3 cycles from ``matches`` to the first word. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    in_flight : int
        Rows that may still come after ``room`` fell.
    depth : int
        Rows that can wait.

    Members
    -------
    matches_valid : In(1)
    matches : In
    room : Out(1)
        From a register.
    results : Out(stream.Signature(node_result(parameters, 0)))
    """

    def __init__(self, parameters, *, in_flight, depth=16):
        if depth <= in_flight:
            raise ValueError(f"A queue of {depth} rows cannot hold {in_flight} rows in flight")
        self.parameters = parameters
        self.in_flight = in_flight
        self.depth = depth
        self.latency = 3
        super().__init__(
            {
                "matches_valid": In(1),
                "matches": In(match_layout(parameters)),
                "room": Out(1, init=1),
                "results": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        layout = match_layout(parameters)
        bits = parameters.lanes * parameters.probes

        m.submodules.queue = queue = fifo.SyncFIFO(width=layout.size, depth=self.depth)
        m.submodules.output = output = StreamRegister(self.results.payload.shape())
        connect(m, output.o, flipped(self.results))
        m.d.comb += [queue.w_data.eq(self.matches), queue.w_en.eq(self.matches_valid)]
        m.d.sync += self.room.eq(queue.w_level < self.depth - self.in_flight)

        entry = Signal(layout)
        todo = Signal(bits + 2)  # pairs, then star, then mark
        loaded = Signal()
        rest = todo & (todo - 1)[: len(todo)]
        done = Signal()
        sent = Signal()
        m.d.comb += [
            sent.eq(output.i.valid & output.i.ready),
            done.eq(~loaded | (todo == 0) | (sent & (rest == 0))),
            queue.r_en.eq(done),
        ]
        base = Signal(parameters.probe_bits)  # probes since the last star, before this group
        with m.If(sent):
            m.d.sync += todo.eq(rest)
        with m.If(done):
            following = layout(queue.r_data)
            last = following.last
            m.d.sync += [
                loaded.eq(queue.r_rdy),
                entry.eq(following),
                todo.eq(Cat(following.matches, last & following.star, last & following.mark)),
            ]
            with m.If(loaded & entry.last):
                m.d.sync += base.eq(Mux(entry.star, 0, base + entry.count))

        index = Signal(range(len(todo)))
        for n in reversed(range(len(todo))):
            with m.If(todo[n]):
                m.d.comb += index.eq(n)
        self.elaborate_word(m, output.i, entry, index, base)
        m.d.comb += output.i.valid.eq(loaded & (todo != 0))
        return m

    def elaborate_word(self, m, word, entry, index, base):
        """Fill in the result word that bit ``index`` of ``entry`` stands for."""
        probes, lanes = self.parameters.probes, self.parameters.lanes
        pair = word.payload.body.pair
        with m.If(index == lanes * probes):
            m.d.comb += word.payload.kind.eq(ResultKind.STAR)
        with m.Elif(index == lanes * probes + 1):
            m.d.comb += word.payload.kind.eq(ResultKind.MARK)
        with m.Else():
            m.d.comb += word.payload.kind.eq(ResultKind.PAIR)
        with m.If(index >= lanes * probes):
            m.d.comb += word.payload.body.punctuation.eq(entry.punctuation)
        with m.Else():
            m.d.comb += pair.row.eq(entry.row)
            with m.Switch(index):
                for lane in range(lanes):
                    for probe in range(probes):
                        with m.Case(lane * probes + probe):
                            m.d.comb += [pair.lane.eq(lane), pair.probe.eq(base + probe)]
