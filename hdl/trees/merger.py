# SPDX-License-Identifier: Apache-2.0
"""The result gathering tree of one region side (SplitJoin section 5, Algorithm 5)."""

from amaranth import *
from amaranth.lib.wiring import connect
from amaranth.utils import ceil_log2

from hdl.words.results import ResultKind, node_result, pair_layout

from .ordered_merger import OrderedMerger, OrderedMergerTree
from .round_aligner import RoundAligner

__all__ = ["Merger", "MergerTree"]


class Merger(OrderedMerger):
    """Merge the results of regions.

    The star or mark that the merger emits has the faults of all ports.

    A mark may declare the order of ports *free* until the next mark. Then the merger serves any
    port that shows a pair, the lowest first. It still waits for a star or mark from all ports. It
    does the same while results come in rounds, because then a
    :class:`hdl.trees.round_aligner.RoundAligner` in front of it keeps the order.

    Every pair gets a digit, the number of the port through which it came. If cores have gates, so
    does the failed core of a star or mark; of several, the one at the lowest port.

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
        self.parameters = parameters
        self._digit_bits = ceil_log2(parameters.fan_in)
        super().__init__(
            ports=ports,
            most=parameters.fan_in,
            shape_in=node_result(parameters, level),
            shape_out=node_result(parameters, level + 1),
            datum=ResultKind.PAIR,
            mark=ResultKind.MARK,
        )

    def elaborate_order(self, m, free, marked, words):
        """Let ports go in any order from a mark on that says so."""
        punctuation = words[0].body.punctuation
        inner = punctuation.inner if self.parameters.rounds else 0
        with m.If(marked):
            m.d.sync += free.eq(punctuation.free | inner)

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


class MergerTree(OrderedMergerTree):
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
        super().__init__(parameters, level_latency=2 * (1 + parameters.rounds))

    def shape(self, level):
        """Return the layout of a result after ``level`` mergers."""
        return node_result(self.parameters, level)

    def merger(self, *, level, ports):
        """Return a merger of results."""
        return Merger(self.parameters, level=level, ports=ports)

    def elaborate_before(self, m, place, group, reset, *, level):
        """With rounds, put an aligner in front of a merger."""
        if not self.parameters.rounds:
            return group
        aligner = RoundAligner(self.parameters, level=level, ports=len(group))
        m.submodules[f"aligner_{place}"] = aligner
        m.d.comb += aligner.reset.eq(reset)
        for i, child in zip(aligner.i, group, strict=True):
            connect(m, child, i)
        return aligner.o
