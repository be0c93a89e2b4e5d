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

from .round_aligner import RoundAligner

__all__ = ["Merger", "MergerTree"]


def port_flags(port):
    """Return the flags of a port's word that a merger decides by; zero while it is invalid."""
    kind = port.payload.kind
    return {
        "pair": port.valid & (kind == ResultKind.PAIR),
        "stop": port.valid & (kind != ResultKind.PAIR),
        "mark": port.valid & (kind == ResultKind.MARK),
    }


class Merger(wiring.Component):
    """Merge punctuated result streams into one.

    In order, the merger serves port 0 up to its star or mark, then port 1, and so on. A port that
    shows its star or mark waits. When all ports show one, the merger takes them together and emits
    a single star or mark with the faults of all. The ports themselves show which one is next, so
    the merger need not remember it.

    A mark may declare the order of ports *free* until the next mark. Then the merger serves any
    port that shows a pair, the lowest first. It still waits for a star or mark from all ports. It
    does the same while results come in rounds, because then a
    :class:`hdl.trees.round_aligner.RoundAligner` in front of it keeps the order.

    Every pair gets a digit, the number of the port through which it came. If cores have gates, so
    does the failed core of a star or mark; of several, the one at the lowest port.

    There are registers at the inputs and at the output. So a decision depends on, and changes,
    nearby registers only, and there is no logic on the way to the next merger.

    A word waits for no input word later than the one that closed its group, so a tree of mergers in
    order cannot deadlock (``docs/decisions``).

    Latency: 2 cycles. Throughput: 1 word per cycle. A star takes 1 cycle, whatever the arity.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    level : int
        Number of mergers between this one and the regions; zero beside the regions.
    ports : int
        Number of inputs, one to ``parameters.fan_in``.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, level))).array(ports)
    o : Out(stream.Signature(node_result(parameters, level + 1)))
    reset : In(1)
        Resets all registers of the merger.
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
        """Connect the input registers to the output register, as the ports take turns."""
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
            punctuation = words[0].body.punctuation
            inner = punctuation.inner if self.parameters.rounds else 0
            m.d.sync += free.eq(punctuation.free | inner)

    def elaborate_turn(self, m, pair, stop, free):
        """Return which port's pair is served: the lowest one that no port before it blocks."""
        served = Signal(self.ports)
        blocked = Const(0)  # a port before this one goes first
        for n in range(self.ports):
            m.d.comb += served[n].eq(pair[n] & ~blocked)
            blocked |= Mux(free, pair[n], ~stop[n])
        return served

    def elaborate_word(self, m, chosen, words, pair):
        """Choose the pair of the lowest port that shows one, or else merge the stars or marks.

        If any pair is served, it is this one. If none is served, the output is invalid and its
        payload may be anything. So the choice of the port does not depend on whether the port is
        served.
        """
        pairs = [self.with_digit(m, word.body.pair, n) for n, word in enumerate(words)]
        lowest = pairs[-1]
        for n in reversed(range(self.ports - 1)):
            lowest = Mux(pair[n], pairs[n], lowest)
        m.d.comb += chosen.kind.eq(Mux(pair.any(), ResultKind.PAIR, words[0].kind))
        if self.parameters.rounds:  # all stars are of the same round
            number = words[-1].round
            for n in reversed(range(self.ports - 1)):
                number = Mux(pair[n], words[n].round, number)
            m.d.comb += chosen.round.eq(number)
        with m.If(pair.any()):
            m.d.comb += chosen.body.pair.eq(lowest)
        with m.Else():
            m.d.comb += [
                chosen.body.punctuation.eq(words[0].body.punctuation),
                chosen.body.punctuation.overflow.eq(
                    Cat(word.body.punctuation.overflow for word in words).any()
                ),
            ]
            if self.parameters.has_gates:
                self.elaborate_failed(m, chosen.body.punctuation, words)

    def elaborate_failed(self, m, chosen, words):
        """Name the first core whose results are missing, by a digit for the port."""
        stops = [word.body.punctuation for word in words]
        bits = len(stops[0].failed_core)
        first, cause = Const(0, bits + self._digit_bits), Const(0, 2)
        for n, stop in reversed(list(enumerate(stops))):
            core = Cat(stop.failed_core, Const(n, self._digit_bits))
            first = Mux(stop.failed, core, first)
            if self.parameters.parity:
                cause = Mux(stop.failed, stop.failed_parity, cause)
        if self.parameters.parity:
            m.d.comb += chosen.failed_parity.eq(cause)
        m.d.comb += [
            chosen.failed.eq(Cat(stop.failed for stop in stops).any()),
            chosen.failed_core.eq(first),
        ]

    def with_digit(self, m, pair, port):
        """Return the pair at ``port`` with the digit of the port added to its core number."""
        extended = Signal(pair_layout(self.parameters, len(pair.core) + self._digit_bits))
        m.d.comb += [
            extended.eq(pair),
            extended.core.eq(Cat(pair.core, Const(port, self._digit_bits))),
        ]
        return extended


class MergerTree(wiring.Component):
    """Gather the results of all regions of one side, in the order of the cores.

    With a single core, there is nothing to merge, and its results pass unchanged.

    With rounds, there is a :class:`hdl.trees.round_aligner.RoundAligner` in front of each merger.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels, 4 with rounds;
    none with a single core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in`` (the seed's *c*).

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, levels)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`. A merger takes the reset of a
        core near it.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.levels = len(tree_levels(parameters.cores, parameters.fan_in))
        self.latency = 2 * self.levels * (1 + parameters.rounds) if parameters.cores > 1 else 0
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
            # The digit of the only port is zero, and above all other bits.
            Value.cast(self.o.payload).eq(Value.cast(i.payload)),
        ]
        return m

    def elaborate_mergers(self, m):
        """Build the tree level by level, from the regions to the root."""
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
                if self.parameters.rounds:
                    aligner = RoundAligner(self.parameters, level=level, ports=len(group))
                    m.submodules[f"aligner_{level}_{n}"] = aligner
                    m.d.comb += aligner.reset.eq(self.resets[nearest])
                    for i, child in zip(aligner.i, group, strict=True):
                        connect(m, child, i)
                    group = aligner.o
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))
