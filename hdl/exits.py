# SPDX-License-Identifier: Apache-2.0
"""Exits of accelerators: how results get from the roots of the gathering trees to the ports."""

from abc import ABC, abstractmethod

from amaranth import *
from amaranth.lib.wiring import connect, flipped

from .streams.registers import StreamRegister
from .trees.combiner import Combiner, DualCombiner
from .trees.order_queue import OrderQueue
from .trees.result_pairing import SideExit
from .words.results import result_ports, result_word, turns_shape
from .words.values import MatchKind

__all__ = ["CombinedExit", "Exit", "RegisteredExit", "SeparateExits", "ValuesExit"]


class Exit(ABC):
    """The end of the way of results: what stands between the gathering trees and the ports.

    Its components stand in the accelerator's own module.

    Attributes
    ----------
    latency : int
        Cycles from the root of a tree to a port.
    """

    @abstractmethod
    def place(self, m, accelerator):
        """Add the components to the module of an accelerator; connect them to trees and ports.

        Parameters
        ----------
        m : Module
        accelerator : hdl.accelerator.Top
        """


class CombinedExit(Exit):
    """The results of both sides leave by one port, in the order in which groups close.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """

    #: Depth of the order queue: groups whose stars may be outstanding before the ingress waits.
    ORDER_DEPTH = 64

    def __init__(self, parameters):
        self.order = OrderQueue(
            turns_shape(parameters),
            depth=self.ORDER_DEPTH,
            per_word=parameters.engine.tuples_per_word,
        )
        self.combiner = (DualCombiner if parameters.side_by_side else Combiner)(parameters)
        self.latency = self.combiner.latency

    def place(self, m, accelerator):
        """See :meth:`Exit.place`."""
        m.submodules.order = order = self.order
        m.submodules.combiner = combiner = self.combiner
        ingress = accelerator.ingress
        connect(m, order.o, combiner.order)
        connect(m, combiner.o, flipped(accelerator.o))
        m.d.comb += [
            order.push.eq(ingress.closing),
            order.i.eq(ingress.closing_sides),
            ingress.room.eq(order.room),
        ]
        for tree, end in zip(accelerator.gathering, combiner.i, strict=True):
            connect(m, tree.o, end)


class SeparateExits(Exit):
    """The results of each side leave by a port of their own.

    Nobody waits for turns, so there is always room for one.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """

    def __init__(self, parameters):
        ports = result_ports(parameters)
        self.exits = {name: SideExit(parameters, side=n) for n, name in enumerate(ports)}
        self.latency = self.exits[ports[0]].latency

    def place(self, m, accelerator):
        """See :meth:`Exit.place`."""
        trees = accelerator.gathering
        for (name, end), tree in zip(self.exits.items(), trees, strict=True):
            m.submodules[f"exit{name[1:]}"] = end
            connect(m, end.o, flipped(getattr(accelerator, name)))
            connect(m, tree.o, end.i)
        m.d.comb += accelerator.ingress.room.eq(1)


class RegisteredExit(Exit):
    """The results of the only tree leave through a register.

    Parameters
    ----------
    shape : shape-like
        Shape of a result, with a kind.
    """

    def __init__(self, shape):
        self.register = StreamRegister(shape, early=["kind"])
        self.latency = 1

    def place(self, m, accelerator):
        """See :meth:`Exit.place`."""
        (tree,) = accelerator.gathering
        m.submodules.exit = self.register
        connect(m, self.register.o, flipped(accelerator.o))
        self.elaborate_result(m, tree.o)

    def elaborate_result(self, m, root):
        """Lead the results of the tree into the register."""
        connect(m, root, self.register.i)


class ValuesExit(RegisteredExit):
    """The values of a join aggregate leave by one port; a fault says whose window has overflown.

    There is one stream of results, so nobody waits for turns of sides.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """

    def __init__(self, parameters):
        super().__init__(result_word(parameters))

    def place(self, m, accelerator):
        """See :meth:`Exit.place`."""
        m.d.comb += accelerator.ingress.room.eq(1)
        super().place(m, accelerator)

    def elaborate_result(self, m, root):
        """Give a value as it is, and the faults of the side that is stored."""
        i = self.register.i
        result, shown = i.payload, root.payload
        m.d.comb += [
            i.valid.eq(root.valid),
            root.ready.eq(i.ready),
            result.kind.eq(shown.kind),
        ]
        with m.If(shown.kind == MatchKind.VALUE):
            m.d.comb += result.body.value.eq(shown.body.value)
        with m.Else():
            told, faults = shown.body.punctuation, result.body.punctuation
            m.d.comb += [
                faults.overflow[1].eq(told.overflow),  # tuples of S are stored
                faults.disorder.eq(told.disorder),
                faults.illegal.eq(told.illegal),
            ]
