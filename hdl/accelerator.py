# SPDX-License-Identifier: Apache-2.0
"""Whole accelerators of joins: ingress, trees, join cores, exits, counters (Figure 11)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .counters import COUNTER_BITS, JoinCounting, address_bits
from .exits import CombinedExit, SeparateExits, ValuesExit
from .failures.core_gate import CoreGate
from .ingress.ingress import Ingress
from .join_core import JoinCore
from .local_reset import reset_tree_within
from .memory.axi4 import memory_members
from .reducing import ReducingTree
from .region import Region
from .trees.distribution import DistributionTree
from .trees.merger import MergerTree
from .verilog.conversion import literal
from .words.inputs import input_word
from .words.results import result_ports, result_word

__all__ = ["Accelerator", "JoinAggregateAccelerator", "Top", "accelerator_ports"]


def accelerator_ports(parameters):
    """Return the members of an accelerator, of whatever architecture.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """
    results = Out(stream.Signature(result_word(parameters)))
    return {
        "i": In(stream.Signature(input_word(parameters))),
        **dict.fromkeys(result_ports(parameters), results),
        "counter_addr": In(address_bits(parameters)),
        "counter_data": Out(COUNTER_BITS),
        **memory_members(parameters, 2 * parameters.cores),
        **dict.fromkeys(
            ["clock_request", "vacant"] * parameters.engine.clock_requests, Out(parameters.cores)
        ),
    }


class Top(wiring.Component):
    """A whole accelerator: an ingress, a tree down to the cores, trees back, and an exit.

    Every kind of accelerator is a set of these parts; ports, counters and resets are wired here.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
    ports : dict of str to Member
        Members of the accelerator.
    ingress : Component
        With ``i``, ``o`` and a latency.
    cores : list of Component
        With ``position``, ``words``, ``results``, ``reset`` and a latency.
    early : list of str
        Members of a core's word that the tree has in registers of their own.
    gathering : list of Component
        Trees from the cores, with ``i``, ``o``, ``resets`` and a latency: one, or one for each
        side, whose results then are an array at a core.
    leaving : Exit
        From the trees to the ports.
    counting : Counting
        What counts the events.
    """

    def __init__(self, parameters, ports, *, ingress, cores, early, gathering, leaving, counting):
        self.parameters = parameters
        self.ingress = ingress
        self.cores = cores
        self.resets = reset_tree_within(ingress.latency, cores=parameters.cores)
        self.distribution = DistributionTree(
            ingress.o.payload.shape(),
            leaves=parameters.cores,
            fan_out=parameters.fan_out,
            early=early,
        )
        self.gathering = gathering
        self.leaving = leaving
        self.counting = counting
        parts = (ingress, self.distribution, cores[0], gathering[0], leaving)
        self.latency = sum(part.latency for part in parts)
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = self.ingress
        m.submodules.distribution = self.distribution
        connect(m, flipped(self.i), self.ingress.i)
        connect(m, self.ingress.o, self.distribution.i)
        self.leaving.place(m, self)
        self.counting.place(m)
        trees = self.gathering
        for suffix, tree in zip(["_r", "_s"] if len(trees) > 1 else [""], trees, strict=True):
            m.submodules[f"gathering{suffix}"] = tree
        for n, core in enumerate(self.cores):
            m.submodules[f"core_{n}"] = core
            m.d.comb += core.position.eq(literal(n, core.position.shape()))
            words, results = self.elaborate_core(m, n)
            connect(m, self.distribution.o[n], words)
            for tree, result in zip(trees, self.by_tree(results), strict=True):
                connect(m, result, tree.i[n])
        self.counting.count(m, self)
        m.submodules.resets = self.resets
        for n, _ in enumerate(self.cores):
            near = [tree.resets[n] for tree in (self.distribution, *trees)]
            m.d.comb += [reset.eq(self.resets.o[n]) for reset in near]
            self.elaborate_reset(m, n)
        return m

    def by_tree(self, members):
        """Return what a core has for each tree: an array of it, if there are several trees."""
        return members if len(self.gathering) > 1 else [members]

    @property
    def activity(self):
        """What each region reports, those of a core side by side."""
        return [one for core in self.cores for one in self.by_tree(core.activity)]

    def elaborate_core(self, m, n):
        """Connect what only such a core has; return the words that it takes and its results."""
        del m
        return self.cores[n].words, self.cores[n].results

    def elaborate_reset(self, m, n):
        """Connect the reset of a core."""
        m.d.comb += self.cores[n].reset.eq(self.resets.o[n])


class Accelerator(Top):
    """A complete SplitJoin accelerator: a stream of words in, a stream of results out.

    Input words and results are those of ``docs/architecture.md``, section 2. Every input goes
    directly to a register, and every output comes directly from one. With ``failure_cycles``, every
    core has a gate (:class:`hdl.failures.core_gate.CoreGate`), which takes no cycle. With two
    ``result_streams``, the results of each side's probes leave by a port of their own, and there is
    no combiner.

    Latency: :attr:`latency` cycles, plus the rows that a probe's window covers in a region. This is
    the time from a tuple that closes its group to its star, when the accelerator is idle (the
    seed's equation 5: distribution, scan, gathering). Throughput: a group of ``probes`` tuples of a
    side per ``max(probes + 2, rows)`` cycles, both sides at once; ``rows`` is
    ``ceil(window / (cores * lanes))``, and one more where the window begins inside a row.

    Parameters
    ----------
    parameters : JoinParameters
        What to build.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(result_word(parameters)))
        With two result streams: ``o_r`` and ``o_s`` instead (:mod:`hdl.words.results`). A port
        whose words are not taken stops the other one after some time.
    counter_addr : In(4), In(5) with parity or external memory
        Address of a counter, see :func:`hdl.counters.counters_of`.
    counter_data : Out(48)
        Value of that counter, two cycles later.
    m_axi : Out(memory_port(parameters)).array(2 * cores)
        External memories, if windows are kept there: ``m_axi[2 * n]`` is that of the left region of
        core ``n``, which stores tuples of S, and the next one that of its right region. A reset of
        the accelerator forgets transactions that are under way, so it must also reach the memory.
    clock_request, vacant : Out(cores)
        For each core, whether it needs the next clock edge, and whether it holds no tuple; only
        with ``clock_requests`` (:class:`~hdl.join_core.JoinCore`).
    """

    def __init__(self, parameters):
        self.gates = [CoreGate(parameters) for _ in range(parameters.cores * parameters.has_gates)]
        separate = parameters.engine.result_streams == 2
        super().__init__(
            parameters,
            accelerator_ports(parameters),
            ingress=Ingress(parameters),
            cores=[JoinCore(parameters) for _ in range(parameters.cores)],
            early=["kind", *["first"] * parameters.side_by_side, "close", "star"],
            gathering=[MergerTree(parameters) for _ in range(2)],
            leaving=(SeparateExits if separate else CombinedExit)(parameters),
            counting=JoinCounting(parameters),
        )

    def elaborate_core(self, m, n):
        """Put a gate in front of a core, if cores have gates; connect its memories, its clock."""
        core = self.cores[n]
        if self.parameters.engine.clock_requests:
            m.d.comb += [
                self.clock_request[n].eq(core.clock_request),
                self.vacant[n].eq(core.vacant),
            ]
        if hasattr(core, "m_axi"):
            for side in range(2):
                connect(m, core.m_axi[side], flipped(self.m_axi[2 * n + side]))
        if not self.gates:
            return core.words, core.results
        m.submodules[f"gate_{n}"] = gate = self.gates[n]
        connect(m, gate.core_words, core.words)
        m.d.comb += gate.position.eq(literal(n, gate.position.shape()))
        for side in range(2):
            connect(m, core.results[side], gate.core_results[side])
        if self.parameters.engine.parity:
            # The left region, which probes with R, stores tuples of S.
            m.d.comb += gate.wrong.eq(Cat(core.activity[1].wrong, core.activity[0].wrong))
        return gate.words, gate.results

    def elaborate_reset(self, m, n):
        """Reset a core, and its gate if it has one, which also resets the core by itself."""
        if not self.gates:
            super().elaborate_reset(m, n)
            return
        gate, reset = self.gates[n], self.resets.o[n]
        m.d.comb += [gate.reset.eq(reset), self.cores[n].reset.eq(reset | gate.core_reset)]


class JoinAggregateAccelerator(Top):
    """Count, sum, least and greatest value of the matches of each tuple of R, in one word.

    A tuple of S goes into its window and causes no result. A tuple of R probes that window and is
    not stored. The result is one VALUE for each tuple of R, in the order of arrival, also for one
    without a match. Stars follow as PRECISION says; with PRECISION 0 there are none, and the order
    of values does not depend on it.

    A core is the left region of a join core. Ingress, windows and scan are those of
    :class:`hdl.accelerator.Accelerator`.

    Latency: :attr:`latency` cycles, plus the rows that a probe's window covers in a region, from a
    tuple that closes its group to the first value of the group, when the accelerator is idle.
    Throughput: a group of ``probes`` tuples of R per ``max(probes + 2, rows)`` cycles, where
    ``rows`` is ``ceil(window / (cores * lanes))`` and one more where the window begins inside a
    row, as long as a group has no more lanes with matches than that in any core.

    Parameters
    ----------
    parameters : JoinParameters
        What to build; with ``value_bits``.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(result_word(parameters)))
    counter_addr : In(4)
        Address of a counter, see :func:`hdl.counters.counters_of`.
    counter_data : Out(48)
        Value of that counter, two cycles later.
    """

    def __init__(self, parameters):
        super().__init__(
            parameters,
            accelerator_ports(parameters),
            ingress=Ingress(parameters),
            cores=[Region(parameters, probe_side=0) for _ in range(parameters.cores)],
            early=["kind", "close", "star"],
            gathering=[ReducingTree(parameters)],
            leaving=ValuesExit(parameters),
            counting=JoinCounting(parameters),
        )
