# SPDX-License-Identifier: Apache-2.0
"""Reset that reaches the registers of a component through registers of the component's own."""

from amaranth import *
from amaranth.hdl import Fragment
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .tree import tree_levels

__all__ = ["LEAST_CYCLES", "STAGES", "ResetNode", "ResetTree", "reset_nearby", "reset_tree_within"]

#: Clock cycles that reset takes on its way into a component: two to get there, and one from which
#: it spreads.
STAGES = 3

#: Clock cycles that a reset of an accelerator must last at the least; see :func:`reset_nearby`.
LEAST_CYCLES = 16


def reset_nearby(m, platform, *, reset=None):
    """Return the module ``m`` with a reset of its own, which follows :data:`STAGES` cycles later.

    The ``elaborate`` of a component returns the result of this function.

    One reset net to all registers of a chip would be the slowest net of the chip. So a component
    that is far from others, or has many registers, has registers of its own for reset.

    Components enter and leave reset at different times, up to :attr:`ResetTree.latency` cycles
    apart. Therefore reset must last at least :data:`LEAST_CYCLES` cycles: all components are then
    in reset together for some cycles, and no earlier state survives. The ingress takes no word
    while it is in reset itself. A word takes longer through the tree than reset does, so it reaches
    no component that is still in reset.

    Parameters
    ----------
    m : Module
    platform
        The argument of ``elaborate``.
    reset : Value or None
        Source of the reset; if None, the reset of the domain ``sync``.
    """
    m.domains.local = local = ClockDomain(local=True)
    stages = Signal(STAGES, reset_less=True, name="reset_stages")
    source = ResetSignal("outside") if reset is None else reset
    m.d.outside += stages.eq(Cat(source, stages))
    m.d.comb += [local.clk.eq(ClockSignal("outside")), local.rst.eq(stages[-1])]
    return DomainRenamer({"sync": "local", "outside": "sync"})(Fragment.get(m, platform))


class ResetNode(wiring.Component):
    """One register of a :class:`ResetTree`.

    It is a component of its own because synthesis would merge equal registers of one module.

    Latency: 1 cycle. Throughput: 1 bit per cycle.

    Members
    -------
    i, o : In(1), Out(1)
    """

    def __init__(self):
        self.latency = 1
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self, platform):
        m = Module()
        reset = Signal(reset_less=True)
        m.d.sync += reset.eq(self.i)
        m.d.comb += self.o.eq(reset)
        return m


class ResetTree(wiring.Component):
    """Lead the reset of ``sync`` to every core. Every :attr:`ARITY` neighbours share a register.

    Latency: :attr:`latency` cycles: one per level above the leaves, and one for each leaf itself.
    Throughput: 1 bit per cycle.

    Parameters
    ----------
    leaves : int
        Number of outputs, at least one.

    Members
    -------
    o : Out(1).array(leaves)
    """

    #: Number of neighbours that share a register.
    ARITY = 4

    def __init__(self, leaves):
        self.leaves = leaves
        self.latency = len(tree_levels(leaves, self.ARITY)) + 1
        super().__init__({"o": Out(1).array(leaves)})

    def elaborate(self, platform):
        m = Module()
        children = list(self.o)
        counts = [self.leaves, *tree_levels(self.leaves, self.ARITY)]
        for level, count in enumerate(counts):
            parents = []
            arity = self.ARITY if level else 1
            for n in range(count):
                m.submodules[f"node_{level}_{n}"] = node = ResetNode()
                m.d.comb += [i.eq(node.o) for i in children[n * arity : (n + 1) * arity]]
                parents.append(node.i)
            children = parents
        (root,) = children
        m.d.comb += root.eq(ResetSignal())
        return m


def reset_tree_within(latency, *, cores):
    """Return the :class:`ResetTree` of an accelerator, if reset reaches the cores before any word.

    Parameters
    ----------
    latency : int
        Cycles from the input of the accelerator to its cores, at the least.
    cores : int
        Number of cores.

    Raises
    ------
    ValueError
        If reset would reach the cores later than a word can.
    """
    tree = ResetTree(cores)
    if tree.latency > latency:
        raise ValueError(
            f"Reset takes {tree.latency} cycles to {cores} cores, and a word "
            f"could be there after {latency}: take fewer cores"
        )
    return tree
