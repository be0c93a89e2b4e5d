# SPDX-License-Identifier: Apache-2.0
"""Whole accelerators of joins: ingress, trees, join cores, exits, counters (Figure 11)."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .counters import COUNTER_BITS, ActivityTree, address_bits, count_events
from .failures.core_gate import CoreGate
from .ingress.ingress import Ingress
from .join_core import JoinCore
from .local_reset import reset_tree_within
from .memory.axi4 import memory_members
from .reducing import ReducingTree
from .region import Region
from .streams.registers import StreamRegister
from .trees.combiner import Combiner, DualCombiner
from .trees.distribution import DistributionTree
from .trees.merger import MergerTree
from .trees.order_queue import OrderQueue
from .trees.result_pairing import SideExit
from .verilog.conversion import literal
from .words.inputs import input_word
from .words.results import result_ports, result_word, turns_shape
from .words.values import MatchKind

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

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
    ports : dict of str to Member
        Members of the accelerator.
    ingress : Component
        With ``i``, ``o`` and a latency.
    cores : list of Component
        With ``position``, ``words``, ``reset`` and a latency.
    early : list of str
        Members of a core's word that the tree has in registers of their own.
    gathering : list of Component
        Trees from the cores, with ``i``, ``resets`` and a latency.
    leaving : int
        Cycles from such a tree to a port.
    """

    def __init__(self, parameters, ports, *, ingress, cores, early, gathering, leaving):
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
        parts = (ingress, self.distribution, cores[0], gathering[0])
        self.latency = sum(part.latency for part in parts) + leaving
        super().__init__(ports)

    def elaborate_root(self, m):
        """Lead words from the port through the ingress into the tree."""
        m.submodules.ingress = self.ingress
        m.submodules.distribution = self.distribution
        connect(m, flipped(self.i), self.ingress.i)
        connect(m, self.ingress.o, self.distribution.i)

    def elaborate_core(self, m, n):
        """Place a core; tell it its number."""
        m.submodules[f"core_{n}"] = core = self.cores[n]
        m.d.comb += core.position.eq(literal(n, core.position.shape()))

    def elaborate_resets(self, m, n):
        """Connect the reset of a core to the core and to the tree nodes near it."""
        near = [tree.resets[n] for tree in (self.distribution, *self.gathering)]
        m.d.comb += [reset.eq(self.resets.o[n]) for reset in (self.cores[n].reset, *near)]


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

    #: Depth of the order queue: groups whose stars may be outstanding before the ingress waits.
    ORDER_DEPTH = 64

    def __init__(self, parameters):
        self.gates = [CoreGate(parameters) for _ in range(parameters.cores * parameters.has_gates)]
        self.combiner, self.exits = None, []
        if parameters.engine.result_streams == 2:
            self.exits = [SideExit(parameters, side=side) for side in range(2)]
        else:
            combiner = DualCombiner if parameters.side_by_side else Combiner
            self.combiner = combiner(parameters)
        super().__init__(
            parameters,
            accelerator_ports(parameters),
            ingress=Ingress(parameters),
            cores=[JoinCore(parameters) for _ in range(parameters.cores)],
            early=["kind", *["first"] * parameters.side_by_side, "close", "star"],
            gathering=[MergerTree(parameters) for _ in range(2)],
            leaving=(self.combiner or self.exits[0]).latency,
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_root(m)
        ends = self.elaborate_exits(m) if self.exits else self.elaborate_combiner(m)
        m.submodules.activity = activity = ActivityTree(self.parameters)
        for name, tree, end in zip(
            ("gathering_r", "gathering_s"), self.gathering, ends, strict=True
        ):
            m.submodules[name] = tree
            connect(m, tree.o, end)
        for n, core in enumerate(self.cores):
            self.elaborate_core(m, n)
            if self.parameters.engine.clock_requests:
                m.d.comb += [
                    self.clock_request[n].eq(core.clock_request),
                    self.vacant[n].eq(core.vacant),
                ]
            words, results = self.elaborate_gate(m, n)
            connect(m, self.distribution.o[n], words)
            for side in range(2):
                connect(m, results[side], self.gathering[side].i[n])
                m.d.comb += activity.i[2 * n + side].eq(core.activity[side])
                if hasattr(core, "m_axi"):
                    connect(m, core.m_axi[side], flipped(self.m_axi[2 * n + side]))
        count_events(m, self, activity)
        m.submodules.resets = self.resets
        for n, _ in enumerate(self.cores):
            self.elaborate_resets(m, n)
        return m

    def elaborate_combiner(self, m):
        """Join the results of both sides, in the order in which groups close; return the inputs."""
        m.submodules.order = order = OrderQueue(
            turns_shape(self.parameters),
            depth=self.ORDER_DEPTH,
            per_word=self.parameters.engine.tuples_per_word,
        )
        m.submodules.combiner = combiner = self.combiner
        connect(m, order.o, combiner.order)
        connect(m, combiner.o, flipped(self.o))
        m.d.comb += [
            order.push.eq(self.ingress.closing),
            order.i.eq(self.ingress.closing_sides),
            self.ingress.room.eq(order.room),
        ]
        return combiner.i

    def elaborate_exits(self, m):
        """Let the results of each side leave by its port; return the inputs of the exits.

        Nobody waits for turns, so there is always room for one.
        """
        for name, end in zip(result_ports(self.parameters), self.exits, strict=True):
            m.submodules[f"exit{name[1:]}"] = end
            connect(m, end.o, flipped(getattr(self, name)))
        m.d.comb += self.ingress.room.eq(1)
        return [end.i for end in self.exits]

    def elaborate_gate(self, m, n):
        """Put a gate in front of a core, if cores have gates; return its words and its results."""
        core = self.cores[n]
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

    def elaborate_resets(self, m, n):
        """Reset a core, and its gate if it has one, which also resets the core by itself."""
        gates = self.gates[n : n + 1]
        near = [tree.resets[n] for tree in (self.distribution, *self.gathering)]
        near += [gate.reset for gate in gates]
        m.d.comb += [reset.eq(self.resets.o[n]) for reset in near]
        revived = [gate.core_reset for gate in gates]
        m.d.comb += self.cores[n].reset.eq(reduce(or_, revived, self.resets.o[n]))


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
            leaving=1,
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_root(m)
        (gathering,) = self.gathering
        m.submodules.gathering, m.submodules.resets = gathering, self.resets
        m.submodules.activity = activity = ActivityTree(self.parameters)
        # There is one stream of results, so nobody waits for turns of sides.
        m.d.comb += self.ingress.room.eq(1)
        for n, region in enumerate(self.cores):
            self.elaborate_core(m, n)
            connect(m, self.distribution.o[n], region.words)
            connect(m, region.results, gathering.i[n])
            self.elaborate_resets(m, n)
            m.d.comb += activity.i[n].eq(region.activity)
        self.elaborate_exit(m)
        count_events(m, self, activity)
        return m

    def elaborate_exit(self, m):
        """Put a register behind the root of the tree, and say whose window has overflown."""
        m.submodules.exit = leaving = StreamRegister(result_word(self.parameters), early=["kind"])
        connect(m, leaving.o, flipped(self.o))
        root, result = self.gathering[0].o, leaving.i.payload
        m.d.comb += [
            leaving.i.valid.eq(root.valid),
            root.ready.eq(leaving.i.ready),
            result.kind.eq(root.payload.kind),
        ]
        with m.If(root.payload.kind == MatchKind.VALUE):
            m.d.comb += result.body.value.eq(root.payload.body.value)
        with m.Else():
            told, faults = root.payload.body.punctuation, result.body.punctuation
            m.d.comb += [
                faults.overflow[1].eq(told.overflow),  # tuples of S are stored
                faults.disorder.eq(told.disorder),
                faults.illegal.eq(told.illegal),
            ]
