# SPDX-License-Identifier: Apache-2.0
"""The whole accelerator: ingress, trees, join cores, combiner, counters (Figure 11)."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from .accelerator_ports import accelerator_ports
from .counters import ActivityTree, count_events
from .failures.core_gate import CoreGate
from .ingress.ingress import Ingress
from .join_core import JoinCore
from .local_reset import reset_tree_within
from .result_ports import result_ports
from .trees.combiner import Combiner, DualCombiner
from .trees.distribution import DistributionTree
from .trees.merger import MergerTree
from .trees.order_queue import OrderQueue
from .trees.result_pairing import SideExit
from .verilog.conversion import literal
from .words.prepared import region_word
from .words.results import turns_shape

__all__ = ["Accelerator"]


class Accelerator(wiring.Component):
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
        With two result streams: ``o_r`` and ``o_s`` instead (:mod:`hdl.result_ports`). A port whose
        words are not taken stops the other one after some time.
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
        self.parameters = parameters
        self.ingress = Ingress(parameters)
        self.resets = reset_tree_within(self.ingress.latency, cores=parameters.cores)
        self.distribution = DistributionTree(
            region_word(parameters),
            leaves=parameters.cores,
            fan_out=parameters.fan_out,
            early=["kind", *["first"] * parameters.side_by_side, "close", "star"],
        )
        self.cores = [JoinCore(parameters) for _ in range(parameters.cores)]
        self.gates = [CoreGate(parameters) for _ in self.cores if parameters.has_gates]
        self.gathering = [MergerTree(parameters) for _ in range(2)]
        self.combiner, self.exits = None, []
        if parameters.result_streams == 2:
            self.exits = [SideExit(parameters, side=side) for side in range(2)]
        else:
            combiner = DualCombiner if parameters.side_by_side else Combiner
            self.combiner = combiner(parameters)
        self.latency = (
            self.ingress.latency
            + self.distribution.latency
            + self.cores[0].latency
            + self.gathering[0].latency
            + (self.combiner or self.exits[0]).latency
        )
        super().__init__(accelerator_ports(parameters))

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = ingress = self.ingress
        m.submodules.distribution = distribution = self.distribution
        connect(m, flipped(self.i), ingress.i)
        connect(m, ingress.o, distribution.i)
        ends = self.elaborate_exits(m) if self.exits else self.elaborate_combiner(m)
        m.submodules.activity = activity = ActivityTree(self.parameters)
        for name, tree, end in zip(
            ("gathering_r", "gathering_s"), self.gathering, ends, strict=True
        ):
            m.submodules[name] = tree
            connect(m, tree.o, end)
        for n, core in enumerate(self.cores):
            m.submodules[f"core_{n}"] = core
            m.d.comb += core.position.eq(literal(n, core.position.shape()))
            if self.parameters.clock_requests:
                m.d.comb += [
                    self.clock_request[n].eq(core.clock_request),
                    self.vacant[n].eq(core.vacant),
                ]
            words, results = self.elaborate_gate(m, n)
            connect(m, distribution.o[n], words)
            for side in range(2):
                connect(m, results[side], self.gathering[side].i[n])
                m.d.comb += activity.i[2 * n + side].eq(core.activity[side])
                if self.parameters.is_external:
                    connect(m, core.m_axi[side], flipped(self.m_axi[2 * n + side]))
        count_events(m, self, activity)
        self.elaborate_reset(m)
        return m

    def elaborate_combiner(self, m):
        """Join the results of both sides, in the order in which groups close; return the inputs."""
        m.submodules.order = order = OrderQueue(
            turns_shape(self.parameters),
            depth=self.ORDER_DEPTH,
            per_word=self.parameters.tuples_per_word,
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
        if self.parameters.parity:
            # The left region, which probes with R, stores tuples of S.
            m.d.comb += gate.wrong.eq(Cat(core.activity[1].wrong, core.activity[0].wrong))
        return gate.words, gate.results

    def elaborate_reset(self, m):
        """Connect the reset of each core to the core and to the tree nodes near it."""
        m.submodules.resets = resets = self.resets
        for n, core in enumerate(self.cores):
            near = [tree.resets[n] for tree in (self.distribution, *self.gathering)]
            near += [gate.reset for gate in self.gates[n : n + 1]]
            m.d.comb += [reset.eq(resets.o[n]) for reset in near]
            revived = [gate.core_reset for gate in self.gates[n : n + 1]]
            m.d.comb += core.reset.eq(reduce(or_, revived, resets.o[n]))
