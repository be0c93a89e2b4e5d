# SPDX-License-Identifier: Apache-2.0
"""A whole accelerator whose cores are a chain."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hdl.accelerator_ports import accelerator_ports
from hdl.counted_events import count_events
from hdl.counters import ActivityTree
from hdl.ingress.ingress import Ingress
from hdl.local_reset import reset_tree_within

from .chain import Chain
from .coordinator import Coordinator
from .gathering import FreeMergerTree
from .results_exit import ResultsExit

__all__ = ["ChainAccelerator"]


class ChainAccelerator(wiring.Component):
    """A handshake join, or a low-latency handshake join, with the ports of SplitJoin.

    The ingress is that of SplitJoin: the same legal words, order of time and prepared tuples. A
    :class:`Coordinator` sends tuples into the chain from both ends, and expires them. Results come
    in no order and without stars; a mark follows all results of the tuples before it.

    Latency: see ``docs/decisions/0017-baselines.md``. Throughput: of alternating tuples, one of
    each side per ``max(rows, 1)`` cycles, ``rows`` those of the fullest segment, and what the
    coordinator takes if that is more.

    Parameters
    ----------
    parameters : JoinParameters
        Of a chain.

    Members
    -------
    See :class:`hdl.accelerator.Accelerator`.
    """

    def __init__(self, parameters):
        if not parameters.is_chain:
            raise ValueError(f"Architecture {parameters.architecture!r} is no chain of cores")
        self.parameters = parameters
        self.ingress = Ingress(parameters)
        self.coordinator = Coordinator(parameters)
        self.resets = reset_tree_within(self.ingress.latency, cores=parameters.cores)
        self.chain = Chain(parameters)
        self.gathering = FreeMergerTree(parameters)
        self.exit = ResultsExit(parameters)
        super().__init__(accelerator_ports(parameters))

    def visiting_latency(self, hops, row=0):
        """Return the cycles from a tuple to its match with one that is kept ``hops`` cores on.

        That is so in the low-latency handshake join while it is idle. In the handshake join a tuple
        is sent on only when others come: there it is half of a window's tuples.

        Parameters
        ----------
        hops : int
            Cores that the tuple passes before.
        row : int
            Rows that are compared before.
        """
        link = 2
        return (
            self.ingress.latency
            + self.coordinator.latency
            + link * (1 + hops)
            + self.chain.latency
            + row
            + self.gathering.latency
            + self.exit.latency
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = ingress = self.ingress
        m.submodules.coordinator = coordinator = self.coordinator
        m.submodules.chain = chain = self.chain
        m.submodules.gathering = gathering = self.gathering
        m.submodules.exit = exit_ = self.exit
        m.submodules.resets = resets = self.resets
        m.submodules.activity = activity = ActivityTree(self.parameters)
        connect(m, flipped(self.i), ingress.i)
        connect(m, ingress.o, coordinator.i)
        connect(m, coordinator.marks, exit_.marks)
        connect(m, gathering.o, exit_.i)
        connect(m, exit_.o, flipped(self.o))
        m.d.comb += [
            ingress.room.eq(1),  # there are no stars that would have to be remembered
            coordinator.taken.eq(chain.taken),
            coordinator.settled.eq(exit_.settled),
        ]
        for side in range(2):
            connect(m, coordinator.lanes[side], chain.lanes[side])
        for n in range(2 * self.parameters.cores):
            connect(m, chain.results[n], gathering.i[n])
            m.d.comb += activity.i[n].eq(chain.activity[n])
        for n in range(self.parameters.cores):
            m.d.comb += [chain.resets[n].eq(resets.o[n]), gathering.resets[n].eq(resets.o[n])]
        count_events(m, self, activity)
        return m
