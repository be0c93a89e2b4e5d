# SPDX-License-Identifier: Apache-2.0
"""The result gathering tree of one region side (SplitJoin section 5, Algorithm 5)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from .layouts import ResultKind, node_result, pair_layout, tree_levels
from .local_reset import local_reset
from .streams import input_registers

__all__ = ["Merger", "MergerTree"]


class Merger(wiring.Component):
    """Merge punctuated result streams into one.

    In order, it takes port 0 up to its star or mark, then port 1, …; when all ports show one, it
    emits a single star or mark that carries the errors of all. Ports that show theirs wait, so no
    port has to be remembered. A mark may declare the order of ports *free* until the next mark:
    then any port with a pair is served, lowest first, and only stars and marks are waited for.
    Every pair gets the digit of the port that it came through.

    Registers stand at the inputs: so what is decided here depends on registers that are near, and
    crosses the distance to the next merger only once, as data or as ``ready``.

    A word waits for no later input word than the one that closed its group, so a tree of mergers
    in order cannot deadlock (``docs/decisions``).

    Latency: 1 cycle, none if not ``pipelined``. Throughput: 1 word per cycle; a star takes 1 cycle,
    whatever the arity.

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
        self.parameters = parameters
        self.ports = ports
        self.latency = int(parameters.pipelined)
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
        pipelined = self.parameters.pipelined
        if self.ports == 1 and not pipelined:
            self.elaborate_passage(m)
            return m
        inputs = input_registers(m, "port", self.i, pipelined=pipelined, early=["kind"])
        free = Signal()
        pair = Signal(self.ports)  # ports that show a pair
        stop = Signal(self.ports)  # ports that show a star or mark
        for n, i in enumerate(inputs):
            is_pair = i.payload.kind == ResultKind.PAIR
            m.d.comb += [pair[n].eq(i.valid & is_pair), stop[n].eq(i.valid & ~is_pair)]

        # The lowest port with a pair is the one to serve, if any is. What is not valid may be
        # anything: so which port is chosen does not depend on whether it may be served.
        chosen = self.o.payload
        served = Signal(self.ports)
        blocked = Const(0)  # a port before this one has the right of way
        for n in range(self.ports):
            m.d.comb += served[n].eq(pair[n] & ~blocked)
            blocked |= Mux(free, pair[n], ~stop[n])
        pairs = [self.with_digit(m, i.payload.body.pair, n) for n, i in enumerate(inputs)]
        m.d.comb += [
            self.o.valid.eq(served.any() | stop.all()),
            chosen.kind.eq(Mux(pair.any(), ResultKind.PAIR, inputs[0].payload.kind)),
            *(i.ready.eq(self.o.ready & (served[n] | stop.all())) for n, i in enumerate(inputs)),
        ]
        lowest = pairs[-1]
        for n in reversed(range(self.ports - 1)):
            lowest = Mux(pair[n], pairs[n], lowest)
        first = inputs[0].payload.body.punctuation
        with m.If(pair.any()):
            m.d.comb += chosen.body.pair.eq(lowest)
        with m.Else():
            m.d.comb += [
                chosen.body.punctuation.eq(first),
                chosen.body.punctuation.overflow.eq(
                    Cat(i.payload.body.punctuation.overflow for i in inputs).any()
                ),
            ]
        with m.If(stop.all() & self.o.ready & (inputs[0].payload.kind == ResultKind.MARK)):
            m.d.sync += free.eq(first.free)
        return m

    def elaborate_passage(self, m):
        """Pass everything on: the digit of the only port, above all other bits, is zero."""
        (i,) = self.i
        m.d.comb += [
            self.o.valid.eq(i.valid),
            i.ready.eq(self.o.ready),
            Value.cast(self.o.payload).eq(Value.cast(i.payload)),
        ]

    def with_digit(self, m, pair, port):
        """Return the pair at ``port`` with the digit of the port."""
        extended = Signal(pair_layout(self.parameters, len(pair.core) + self._digit_bits))
        m.d.comb += [
            extended.eq(pair),
            extended.core.eq(Cat(pair.core, Const(port, self._digit_bits))),
        ]
        return extended


class MergerTree(wiring.Component):
    """Gather the results of all regions of one side, in the order of the cores.

    Latency: ``levels``, which are ``len(tree_levels(cores, fan_in))``, or 0 cycles if not
    ``pipelined``. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; ``cores`` inputs, arity ``fan_in`` (the seed's *c*).

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, levels)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.levels = len(tree_levels(parameters.cores, parameters.fan_in))
        self.latency = self.levels * parameters.pipelined
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, 0))).array(parameters.cores),
                "o": Out(stream.Signature(node_result(parameters, self.levels))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        fan_in = self.parameters.fan_in
        local = local_reset(m)
        children = [flipped(i) for i in self.i]
        for level, count in enumerate(tree_levels(self.parameters.cores, fan_in)):
            parents = []
            for n in range(count):
                group = children[n * fan_in : (n + 1) * fan_in]
                merger = Merger(self.parameters, level=level, ports=len(group))
                m.submodules[f"merger_{level}_{n}"] = local(merger)
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))
        return m
