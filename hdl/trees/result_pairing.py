# SPDX-License-Identifier: Apache-2.0
"""Results of a side on their way out, and pairs of them."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.local_reset import reset_nearby
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.tree import tree_levels
from hdl.words.results import ResultKind, node_result, result_layout, result_word

__all__ = ["ResultPairing", "SideExit", "elaborate_side_result", "row_layout"]


def elaborate_side_result(m, parameters, word, result, side):
    """Convert a word of a gathering tree to a result of its side.

    Parameters
    ----------
    m : Module
        Receives the statements.
    parameters : JoinParameters
        Parameters of the accelerator.
    word : View of node_result(parameters, levels)
        Word at the root of the tree.
    result : View of result_layout(parameters)
        Result that is assigned.
    side : int
        Side of the probes: 0 for R, 1 for S.
    """
    m.d.comb += [
        result.kind.eq(word.kind),
        result.side.eq(side * (word.kind != ResultKind.MARK)),
    ]
    with m.If(word.kind == ResultKind.PAIR):
        m.d.comb += result.body.pair.eq(word.body.pair)
    with m.Else():
        flags, own = word.body.punctuation, result.body.punctuation
        m.d.comb += [
            own.overflow[1 - side].eq(flags.overflow),  # of the side that is probed
            own.disorder.eq(flags.disorder),
            own.illegal.eq(flags.illegal),
        ]
        if parameters.engine.rounds:
            m.d.comb += own.inner.eq(flags.inner & (word.kind == ResultKind.STAR))
        if parameters.has_gates:
            m.d.comb += [own.failed.eq(flags.failed), own.failed_core.eq(flags.failed_core)]
        if parameters.engine.parity:
            m.d.comb += own.failed_parity.eq(flags.failed_parity)


#: Flags by which the combiner decides; all are zero while there is no row.
FLAGS = ("result", "lone", "ends", "star", "mark")


def row_layout(parameters):
    """Return the layout of a row: one or two results of one side, and flags.

    ``result``: the row holds a result other than a mark.
    ``lone``: the row holds exactly one result, and it is not a mark.
    ``ends``: the last result of the row is a star, and not that of a round.
    ``star``: such a star is the only result of the row.
    ``mark``: ``one`` is a mark.
    ``free``: the mark declares that order is free from here on.
    """
    result = result_layout(parameters)
    return data.StructLayout(
        {"one": result, "two": result, "free": 1, **{flag: unsigned(1) for flag in FLAGS}}
    )


class ResultPairing(wiring.Component):
    """Put the results of one side into rows of two while they wait.

    A star ends its row, even one of a round. A mark has a row of its own. A result that need not
    wait leaves at once, in a row of its own. Stalls decide which results share a row, but do not
    change their order.

    Latency: 1 cycle. Throughput: 1 result per cycle in, 1 row per cycle out. Up to twice
    :attr:`depth` waiting results leave at two per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    side : int
        Side of the probes: 0 for R, 1 for S.

    Attributes
    ----------
    depth : int
        Number of rows that can wait. A full group with one result for every probe fits, and there
        are at least :attr:`LEAST_DEPTH`. While a group waits here, regions work on the next ones.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels)))
    o : Out(stream.Signature(row_layout(parameters)))
        The flags come directly from registers.
    """

    #: Least number of rows that can wait: the depth of a distributed RAM of an ECP5.
    LEAST_DEPTH = 16
    #: Rows that still fit when the queue reports that it has no room.
    RESERVE = 2

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self.latency = 1
        self.depth = max(self.LEAST_DEPTH, 1 << ceil_log2(parameters.engine.probes) >> 1)
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
        joins = Signal()  # the arriving result shares a row with the held one
        passes = Signal()  # the output takes the held result, as no row waits before it
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
        """Convert a word of the gathering tree to a result of this side."""
        word = self.i.payload
        m.d.comb += arriving.free.eq(word.body.punctuation.free)
        elaborate_side_result(m, self.parameters, word, arriving.result, self.side)

    def elaborate_row(self, m, row, first, second, double, valid):
        """Put one or two results into a row; its flags are zero unless it is ``valid``."""
        kind = first.result.kind
        last = Mux(double, self.is_star(second), self.is_star(first.result))
        is_result = valid & (kind != ResultKind.MARK)
        m.d.comb += [
            row.one.eq(first.result),
            row.two.eq(second),
            row.free.eq(first.free),
            row.result.eq(is_result),
            row.lone.eq(is_result & ~double),
            row.ends.eq(valid & last),
            row.star.eq(valid & self.is_star(first.result)),
            row.mark.eq(valid & (kind == ResultKind.MARK)),
        ]
        with m.If(~double):
            m.d.comb += row.two.kind.eq(ResultKind.NONE)

    def is_star(self, result):
        """Return whether a result is a star, and not that of a round."""
        star = result.kind == ResultKind.STAR
        return star & ~result.body.punctuation.inner if self.parameters.engine.rounds else star


class SideExit(wiring.Component):
    """Emit the results of one side's probes, whatever the other side does.

    It does for one side what a :class:`hdl.trees.combiner.Combiner` does for both: it flags every
    result with its side, and a star or mark reports an overflow of the window that the side reads.
    The sequence of results is that of the gathering tree, so it does not depend on stalls while
    results are in order. With two results per word, results that wait share words
    (:class:`hdl.trees.result_pairing.ResultPairing`).

    The output has a register, because the tree that ends here is far from the port.

    Latency: 1 cycle. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    side : int
        Side of the probes: 0 for R, 1 for S.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, levels)))
        Results of the side's probes.
    o : Out(stream.Signature(result_word(parameters)))
    """

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self.latency = 1
        levels = len(tree_levels(parameters.cores, parameters.fan_in))
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, levels))),
                "o": Out(stream.Signature(result_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.parameters.side_by_side:
            self.elaborate_rows(m)
        else:
            self.elaborate_results(m)
        return reset_nearby(m, platform)

    def elaborate_results(self, m):
        """Put a register behind the converted results."""
        m.submodules.output = output = StreamRegister(result_layout(self.parameters))
        connect(m, output.o, flipped(self.o))
        m.d.comb += [
            output.i.valid.eq(self.i.valid),
            self.i.ready.eq(output.i.ready),
        ]
        elaborate_side_result(m, self.parameters, self.i.payload, output.i.payload, self.side)

    def elaborate_rows(self, m):
        """Emit the rows of the pairing, which come from its register, as words."""
        m.submodules.pairing = pairing = ResultPairing(self.parameters, side=self.side)
        connect(m, flipped(self.i), pairing.i)
        row = pairing.o
        m.d.comb += [
            self.o.valid.eq(row.valid),
            self.o.payload.one.eq(row.payload.one),
            self.o.payload.two.eq(row.payload.two),
            row.ready.eq(self.o.ready),
        ]
