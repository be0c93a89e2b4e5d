# SPDX-License-Identifier: Apache-2.0
"""The result gathering tree of one region side (SplitJoin section 5, Algorithm 5)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from .layouts import ResultKind, node_result, tree_levels
from .streams import StreamRegister

__all__ = ["Merger", "MergerTree"]


class Merger(wiring.Component):
    """Merge punctuated result streams into one.

    In order, it takes port 0 up to its star or mark, then port 1, …; when all ports show one, it
    emits a single star or mark that carries the errors of all. Ports that show theirs wait, so no
    port has to be remembered. A mark may declare the order of ports *free* until the next mark:
    then any port with a pair is served, lowest first, and only stars and marks are waited for.
    Every pair gets the digit of the port that it came through.

    A word waits for no later input word than the one that closed its group, so a tree of mergers
    in order cannot deadlock (``docs/decisions``).

    Latency: 1 cycle. Throughput: 1 word per cycle; a star takes 1 cycle, whatever the arity.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    level : int
        Mergers between this one and the regions, zero for their neighbours.
    ports : int
        Number of inputs, one to ``parameters.fan_in``.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, level))).array(ports)
    o : Out(stream.Signature(node_result(parameters, level + 1)))
    """

    def __init__(self, parameters, *, level, ports):
        if not 1 <= ports <= parameters.fan_in:
            raise ValueError(f"A merger has 1 to {parameters.fan_in} ports, not {ports!r}")
        self.ports = ports
        self.latency = 1
        self._digit_bits = ceil_log2(parameters.fan_in)
        self._shape_in = node_result(parameters, level)
        self._shape_out = node_result(parameters, level + 1)
        super().__init__(
            {
                "i": In(stream.Signature(self._shape_in)).array(ports),
                "o": Out(stream.Signature(self._shape_out)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self._shape_out)
        connect(m, output.o, flipped(self.o))

        free = Signal()
        pair = Signal(self.ports)  # ports that show a pair
        stop = Signal(self.ports)  # ports that show a star or mark
        for n, i in enumerate(self.i):
            is_pair = i.payload.kind == ResultKind.PAIR
            m.d.comb += [pair[n].eq(i.valid & is_pair), stop[n].eq(i.valid & ~is_pair)]

        with m.If(stop.all()):
            first = self.i[0].payload
            merged = output.i.payload.body.punctuation
            m.d.comb += [
                output.i.valid.eq(1),
                output.i.payload.kind.eq(first.kind),
                merged.eq(first.body.punctuation),
                merged.overflow.eq(Cat(i.payload.body.punctuation.overflow for i in self.i).any()),
                *(i.ready.eq(output.i.ready) for i in self.i),
            ]
            with m.If(output.i.ready & (first.kind == ResultKind.MARK)):
                m.d.sync += free.eq(first.body.punctuation.free)
        with m.Else():
            blocked = Const(0)  # a port before this one has the right of way
            for n, i in enumerate(self.i):
                body = output.i.payload.body.pair
                with m.If(pair[n] & ~blocked):
                    m.d.comb += [
                        output.i.valid.eq(1),
                        output.i.payload.kind.eq(ResultKind.PAIR),
                        body.eq(i.payload.body.pair),
                        body.core.eq(Cat(i.payload.body.pair.core, Const(n, self._digit_bits))),
                        i.ready.eq(output.i.ready),
                    ]
                blocked |= Mux(free, pair[n], ~stop[n])
        return m


class MergerTree(wiring.Component):
    """Gather the results of all regions of one side, in the order of the cores.

    Latency: ``len(tree_levels(cores, fan_in))`` cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; ``cores`` inputs, arity ``fan_in`` (the seed's *c*).

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, latency)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = len(tree_levels(parameters.cores, parameters.fan_in))
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, 0))).array(parameters.cores),
                "o": Out(stream.Signature(node_result(parameters, self.latency))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        fan_in = self.parameters.fan_in
        children = [flipped(i) for i in self.i]
        for level, count in enumerate(tree_levels(self.parameters.cores, fan_in)):
            parents = []
            for n in range(count):
                group = children[n * fan_in : (n + 1) * fan_in]
                merger = Merger(self.parameters, level=level, ports=len(group))
                m.submodules[f"merger_{level}_{n}"] = merger
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))
        return m
