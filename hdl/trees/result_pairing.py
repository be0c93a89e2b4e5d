# SPDX-License-Identifier: Apache-2.0
"""The results of one side, two at a time where two wait."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.streams.pointer_queue import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.tree import tree_levels
from hdl.words.results import ResultKind, node_result, result_layout

__all__ = ["ResultPairing", "row_layout"]

#: What the combiner decides by; zero while there is no row.
FLAGS = ("result", "lone", "ends", "star", "mark")


def row_layout(parameters):
    """One or two results of one side.

    ``result``: there is a result, which is no mark. ``lone``: … and no other one beside it.
    ``ends``: the last result is a star. ``star``: … and the only one. ``mark``: ``one`` is a mark.
    ``free``: it says that order is free from here on.
    """
    result = result_layout(parameters)
    return data.StructLayout(
        {"one": result, "two": result, "free": 1, **{flag: unsigned(1) for flag in FLAGS}}
    )


class ResultPairing(wiring.Component):
    """Gather the results of one side while they wait, two in a row.

    A row ends with a star. A mark has a row of its own. Results that do not have to wait leave one
    at a time, at once: which of them share a row depends on stalls, their order does not.

    Latency: 1 cycle. Throughput: 1 result per cycle in, 1 row per cycle out, so that up to twice
    :attr:`depth` waiting results leave at two per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    side : int
        Side of the probes: 0 for R, 1 for S.

    Attributes
    ----------
    depth : int
        Rows that can wait: those of a full group with one result for every probe, and
        :attr:`LEAST_DEPTH` at the least. While a group waits here, regions work on the next ones.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels)))
    o : Out(stream.Signature(row_layout(parameters)))
        The flags come straight out of registers.
    """

    #: Rows that can wait at the least: what a distributed RAM of an ECP5 holds.
    LEAST_DEPTH = 16
    #: Rows that may still come when the queue says that it has no room.
    RESERVE = 2

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self.latency = 1
        self.depth = max(self.LEAST_DEPTH, 1 << ceil_log2(parameters.probes) >> 1)
        levels = len(tree_levels(parameters.cores, parameters.fan_in))
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, levels))),
                "o": Out(stream.Signature(row_layout(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row = row_layout(self.parameters)
        result = data.StructLayout({"result": result_layout(self.parameters), "free": 1})
        m.submodules.queue = queue = PointerQueue(row, depth=self.depth, reserve=self.RESERVE)
        m.submodules.output = output = StreamRegister(row, early=FLAGS)
        connect(m, output.o, flipped(self.o))

        arriving = Signal(result)
        self.elaborate_result(m, arriving)
        accept = self.i.valid & self.i.ready
        held, holds = Signal(result, reset_less=True), Signal()
        joins = Signal()  # what arrives shares a row with what is held
        passes = Signal()  # nothing waits before what is held
        m.d.comb += [
            self.i.ready.eq(queue.room),
            joins.eq(
                accept
                & (arriving.result.kind != ResultKind.MARK)
                & (held.result.kind == ResultKind.PAIR)
            ),
            passes.eq(output.i.ready & ~queue.filled),
            queue.add.eq(accept & holds & ~passes),
            queue.take.eq(output.i.ready & queue.filled),
        ]
        with m.If(accept):
            m.d.sync += [held.eq(arriving), holds.eq(Mux(holds, ~joins, ~passes))]
        with m.Elif(passes):
            m.d.sync += holds.eq(0)

        alone = Signal(row)
        self.elaborate_row(m, queue.last, held, arriving.result, joins, Const(1))
        self.elaborate_row(m, alone, arriving, arriving.result, Const(0), accept)
        m.d.comb += [
            output.i.valid.eq(queue.filled | holds | accept),
            output.i.payload.eq(Mux(queue.filled, queue.first, Mux(holds, queue.last, alone))),
        ]
        return m

    def elaborate_result(self, m, arriving):
        """Turn a word of the gathering tree into a result of this side."""
        word, result = self.i.payload, arriving.result
        m.d.comb += [
            result.kind.eq(word.kind),
            result.side.eq(self.side * (word.kind != ResultKind.MARK)),
            arriving.free.eq(word.body.punctuation.free),
        ]
        with m.If(word.kind == ResultKind.PAIR):
            m.d.comb += result.body.pair.eq(word.body.pair)
        with m.Else():
            flags, own = word.body.punctuation, result.body.punctuation
            m.d.comb += [
                own.overflow[1 - self.side].eq(flags.overflow),  # the side that is probed
                own.disorder.eq(flags.disorder),
                own.illegal.eq(flags.illegal),
            ]

    def elaborate_row(self, m, row, first, second, double, valid):
        """Put one result into a row, or two, with the flags, which are zero unless it is valid."""
        kind = first.result.kind
        last = Mux(double, second.kind, kind)
        is_result = valid & (kind != ResultKind.MARK)
        m.d.comb += [
            row.one.eq(first.result),
            row.two.eq(second),
            row.free.eq(first.free),
            row.result.eq(is_result),
            row.lone.eq(is_result & ~double),
            row.ends.eq(valid & (last == ResultKind.STAR)),
            row.star.eq(valid & (kind == ResultKind.STAR)),
            row.mark.eq(valid & (kind == ResultKind.MARK)),
        ]
        with m.If(~double):
            m.d.comb += row.two.kind.eq(ResultKind.NONE)
