# SPDX-License-Identifier: Apache-2.0
"""A whole join aggregate: ingress, trees, and cores that store S and probe with R."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from .accelerator_ports import accelerator_ports
from .counters import ActivityTree, count_events
from .ingress.ingress import Ingress
from .local_reset import reset_tree_within
from .matches.reducing_merger import ReducingTree
from .region import Region
from .streams.registers import StreamRegister
from .trees.distribution import DistributionTree
from .verilog.conversion import literal
from .words.cells import MatchKind
from .words.prepared import region_word
from .words.results import result_word

__all__ = ["JoinAggregateAccelerator"]


class JoinAggregateAccelerator(wiring.Component):
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
        self.parameters = parameters
        self.ingress = Ingress(parameters)
        self.resets = reset_tree_within(self.ingress.latency, cores=parameters.cores)
        self.distribution = DistributionTree(
            region_word(parameters),
            leaves=parameters.cores,
            fan_out=parameters.fan_out,
            early=["kind", "close", "star"],
        )
        self.regions = [Region(parameters, probe_side=0) for _ in range(parameters.cores)]
        self.gathering = ReducingTree(parameters)
        self.latency = (
            self.ingress.latency
            + self.distribution.latency
            + self.regions[0].latency
            + self.gathering.latency
            + 1
        )
        super().__init__(accelerator_ports(parameters))

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = ingress = self.ingress
        m.submodules.distribution = distribution = self.distribution
        m.submodules.gathering = gathering = self.gathering
        m.submodules.resets = resets = self.resets
        m.submodules.activity = activity = ActivityTree(self.parameters)
        connect(m, flipped(self.i), ingress.i)
        connect(m, ingress.o, distribution.i)
        # There is one stream of results, so nobody waits for turns of sides.
        m.d.comb += ingress.room.eq(1)
        for n, region in enumerate(self.regions):
            m.submodules[f"core_{n}"] = region
            connect(m, distribution.o[n], region.words)
            connect(m, region.results, gathering.i[n])
            m.d.comb += [
                region.position.eq(literal(n, region.position.shape())),
                region.reset.eq(resets.o[n]),
                distribution.resets[n].eq(resets.o[n]),
                gathering.resets[n].eq(resets.o[n]),
                activity.i[n].eq(region.activity),
            ]
        self.elaborate_exit(m)
        count_events(m, self, activity)
        return m

    def elaborate_exit(self, m):
        """Put a register behind the root of the tree, and say whose window has overflown."""
        m.submodules.exit = leaving = StreamRegister(result_word(self.parameters), early=["kind"])
        connect(m, leaving.o, flipped(self.o))
        root, result = self.gathering.o, leaving.i.payload
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
