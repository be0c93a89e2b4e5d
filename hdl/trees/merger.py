# SPDX-License-Identifier: Apache-2.0
"""The result gathering tree of one region side (SplitJoin section 5, Algorithm 5)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.tree import leaf_beside, tree_levels
from hdl.words.results import ResultKind, node_result, pair_layout

__all__ = ["Merger", "MergerTree"]


def port_flags(port):
    """Return what a merger wants to know of the word at a port, if there is one."""
    kind = port.payload.kind
    return {
        "pair": port.valid & (kind == ResultKind.PAIR),
        "stop": port.valid & (kind != ResultKind.PAIR),
        "mark": port.valid & (kind == ResultKind.MARK),
    }


class Merger(wiring.Component):
    """Merge punctuated result streams into one.

    In order, it takes port 0 up to its star or mark, then port 1, …; when all ports show one, it
    emits a single star or mark that carries the errors of all. Ports that show theirs wait, so no
    port has to be remembered. A mark may declare the order of ports *free* until the next mark:
    then any port with a pair is served, lowest first, and only stars and marks are waited for.
    Every pair gets the digit of the port that it came through.

    Registers stand at the inputs and at the output: so what is decided here depends on, and
    changes, only registers that are near; nothing is decided on the way to the next merger.

    A word waits for no later input word than the one that closed its group, so a tree of mergers
    in order cannot deadlock (``docs/decisions``).

    Latency: 2 cycles. Throughput: 1 word per cycle; a star takes 1
    cycle, whatever the arity.

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
    reset : In(1)
        Of all registers.
    """

    def __init__(self, parameters, *, level, ports):
        if not 1 <= ports <= parameters.fan_in:
            raise ValueError(f"A merger has 1 to {parameters.fan_in} ports, not {ports!r}")
        self.parameters = parameters
        self.ports = ports
        self.latency = 2
        self._digit_bits = ceil_log2(parameters.fan_in)
        self._shape_in = node_result(parameters, level)
        self._shape_out = node_result(parameters, level + 1)
        super().__init__(
            {
                "i": In(stream.Signature(self._shape_in)).array(ports),
                "o": Out(stream.Signature(self._shape_out)),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_merging(m)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_merging(self, m):
        """Serve the ports from registers to a register."""
        m.submodules.output = output = StreamRegister(self._shape_out, early=["kind"])
        connect(m, output.o, flipped(self.o))
        inputs = [
            flagged_register(m, f"port_{n}", i, flags=port_flags) for n, i in enumerate(self.i)
        ]
        pair = Signal(self.ports)  # ports that show a pair
        stop = Signal(self.ports)  # ports that show a star or mark
        m.d.comb += [
            pair.eq(Cat(i.payload.pair for i in inputs)),
            stop.eq(Cat(i.payload.stop for i in inputs)),
        ]
        free = Signal()
        served = self.elaborate_turn(m, pair, stop, free)
        m.d.comb += [
            output.i.valid.eq(served.any() | stop.all()),
            *(i.ready.eq(output.i.ready & (served[n] | stop.all())) for n, i in enumerate(inputs)),
        ]
        words = [i.payload.word for i in inputs]
        self.elaborate_word(m, output.i.payload, words, pair)
        with m.If(stop.all() & output.i.ready & inputs[0].payload.mark):
            m.d.sync += free.eq(words[0].body.punctuation.free)

    def elaborate_turn(self, m, pair, stop, free):
        """Return which port's pair is served: the lowest that no port before it keeps waiting."""
        served = Signal(self.ports)
        blocked = Const(0)  # a port before this one has the right of way
        for n in range(self.ports):
            m.d.comb += served[n].eq(pair[n] & ~blocked)
            blocked |= Mux(free, pair[n], ~stop[n])
        return served

    def elaborate_word(self, m, chosen, words, pair):
        """Choose the lowest pair, or merge the stars or marks.

        The lowest port with a pair is the one to serve, if any is. What is not valid may be
        anything: so which port is chosen does not depend on whether it may be served.
        """
        pairs = [self.with_digit(m, word.body.pair, n) for n, word in enumerate(words)]
        lowest = pairs[-1]
        for n in reversed(range(self.ports - 1)):
            lowest = Mux(pair[n], pairs[n], lowest)
        m.d.comb += chosen.kind.eq(Mux(pair.any(), ResultKind.PAIR, words[0].kind))
        with m.If(pair.any()):
            m.d.comb += chosen.body.pair.eq(lowest)
        with m.Else():
            m.d.comb += [
                chosen.body.punctuation.eq(words[0].body.punctuation),
                chosen.body.punctuation.overflow.eq(
                    Cat(word.body.punctuation.overflow for word in words).any()
                ),
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

    The results of a single core pass as they are: there is nothing to merge.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels; none with a single
    core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; ``cores`` inputs, arity ``fan_in`` (the seed's *c*).

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, levels)))
    resets : In(1).array(cores)
        Of a :class:`hdl.local_reset.ResetTree`.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.levels = len(tree_levels(parameters.cores, parameters.fan_in))
        self.latency = 2 * self.levels if parameters.cores > 1 else 0
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, 0))).array(parameters.cores),
                "o": Out(stream.Signature(node_result(parameters, self.levels))),
                "resets": In(1).array(parameters.cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.parameters.cores > 1:
            self.elaborate_mergers(m)
            return m
        (i,) = self.i
        m.d.comb += [
            self.o.valid.eq(i.valid),
            i.ready.eq(self.o.ready),
            # The digit of the only port, above all other bits, is zero.
            Value.cast(self.o.payload).eq(Value.cast(i.payload)),
        ]
        return m

    def elaborate_mergers(self, m):
        """Connect mergers from the regions to the root."""
        cores, fan_in = self.parameters.cores, self.parameters.fan_in
        children = [flipped(i) for i in self.i]
        for level, count in enumerate(tree_levels(cores, fan_in)):
            parents = []
            for n in range(count):
                group = children[n * fan_in : (n + 1) * fan_in]
                merger = Merger(self.parameters, level=level, ports=len(group))
                m.submodules[f"merger_{level}_{n}"] = merger
                nearest = leaf_beside(level, n, arity=fan_in, leaves=cores)
                m.d.comb += merger.reset.eq(self.resets[nearest])
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))
