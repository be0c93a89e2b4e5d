# SPDX-License-Identifier: Apache-2.0
"""A whole aggregate accelerator: ingress, trees and cores."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hdl.local_reset import reset_tree_within
from hdl.streams.registers import StreamRegister
from hdl.trees.distribution import DistributionTree
from hdl.verilog.literal import literal

from .aggregate_counters import AggregateCounters
from .aggregate_ingress import AggregateIngress
from .aggregate_ports import aggregate_ports
from .core import AggregateCore
from .value_merger import ValueTree
from .words import CoreKind, ValueKind, core_word, value_result

__all__ = ["AggregateAccelerator"]


class AggregateAccelerator(wiring.Component):
    """Windowed aggregates by key: tuples in, the reductions of every window out.

    The input is sorted by time, up to the length of a pane. Every tuple is sent once, to all cores.
    A window leaves when the watermark, of a tuple or of a WATERMARK word, has reached its right
    boundary: the values of its keys, by core and key, and then a star. Windows leave in the order
    of their boundaries.

    Latency: :attr:`latency` cycles from the tuple that ends a pane to the value of the first key of
    its window, when the accelerator is idle. Throughput: 1 tuple per cycle, for panes of at least
    ``core_keys + overhead`` tuples and windows of no more results than that; 2 cycles more per
    pane.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(aggregate_word(parameters)))
    o : Out(stream.Signature(value_result(parameters)))
    counter_addr : In(ADDRESS_BITS)
        Address of a counter of :data:`hdl.aggregate.aggregate_counters.AGGREGATE_COUNTERS`.
    counter_data : Out(COUNTER_BITS)
        Value of that counter, two cycles later.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.ingress = AggregateIngress(parameters)
        self.distribution = DistributionTree(
            core_word(parameters),
            leaves=parameters.cores,
            fan_out=parameters.fan_out,
            early=["kind"],
        )
        self.cores = [AggregateCore(parameters) for _ in range(parameters.cores)]
        self.gathering = ValueTree(parameters)
        self.resets = reset_tree_within(self.ingress.latency, cores=parameters.cores)
        self.latency = (
            self.ingress.latency
            + self.distribution.latency
            + self.cores[0].latency
            + self.gathering.latency
            + 1
        )
        super().__init__(aggregate_ports(parameters))

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = ingress = self.ingress
        m.submodules.distribution = distribution = self.distribution
        m.submodules.gathering = gathering = self.gathering
        m.submodules.resets = resets = self.resets
        m.submodules.exit = leaving = StreamRegister(value_result(self.parameters), early=["kind"])
        connect(m, flipped(self.i), ingress.i)
        connect(m, ingress.o, distribution.i)
        connect(m, gathering.o, leaving.i)
        connect(m, leaving.o, flipped(self.o))
        for n, core in enumerate(self.cores):
            m.submodules[f"core_{n}"] = core
            connect(m, distribution.o[n], core.words)
            connect(m, core.results, gathering.i[n])
            m.d.comb += [
                core.position.eq(literal(n, core.position.shape())),
                core.reset.eq(resets.o[n]),
                distribution.resets[n].eq(resets.o[n]),
                gathering.resets[n].eq(resets.o[n]),
            ]
        self.elaborate_counters(m)
        return m

    def elaborate_counters(self, m):
        """Count what passes the ports, and what the ingress sends to the cores."""
        m.submodules.counters = counters = AggregateCounters()
        i, o, sent = self.i, self.o, self.ingress.o
        leaves = o.valid & o.ready
        m.d.comb += [
            counters.events.eq(
                Cat(
                    *(
                        sent.valid & sent.ready & (sent.payload.kind == kind)
                        for kind in (CoreKind.TUPLE, CoreKind.CLOSE)
                    ),
                    *(leaves & (o.payload.kind == kind) for kind in ValueKind),
                    i.valid & i.ready,
                    i.valid & ~i.ready,
                    leaves,
                    o.valid & ~o.ready,
                )
            ),
            counters.address.eq(self.counter_addr),
            self.counter_data.eq(counters.data),
        ]
