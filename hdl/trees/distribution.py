# SPDX-License-Identifier: Apache-2.0
"""The distribution tree: every word to every core, in order (SplitJoin section 4, Algorithm 1)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister
from hdl.tree import leaf_beside, tree_levels

__all__ = ["DistributionNode", "DistributionTree"]


class DistributionNode(wiring.Component):
    """One inner node of the tree: a register at the input, and one register per child behind it.

    A word moves from the input register into the registers of all children in the same cycle. Each
    of these registers holds two words, so one child may be that far ahead of another.

    Nodes are far from each other. So every signal between two nodes runs from register to register,
    and whether a word moves inside a node depends on registers of this node alone. No register
    drives more than one child.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the word.
    fan_out : int
        Number of children, at least one.
    early : sequence of str
        Fields of the word that come directly from a register. The word is a structure if there are
        any.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape)).array(fan_out)
    reset : In(1)
        Resets all registers of the node.
    """

    def __init__(self, shape, *, fan_out, early=()):
        if fan_out < 1:
            raise ValueError(f"Fan-out must be at least one, not {fan_out!r}")
        self.shape = shape
        self.fan_out = fan_out
        self.early = early
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)).array(fan_out),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.input = arriving = StreamRegister(self.shape)
        connect(m, flipped(self.i), arriving.i)
        words = arriving.o
        registers = [StreamRegister(self.shape, early=self.early) for _ in self.o]
        m.d.comb += words.ready.eq(Cat(register.i.ready for register in registers).all())
        for n, (register, o) in enumerate(zip(registers, self.o, strict=True)):
            m.submodules[f"child_{n}"] = register
            connect(m, register.o, flipped(o))
            m.d.comb += [
                register.i.payload.eq(words.payload),
                register.i.valid.eq(words.valid & words.ready),
            ]
        return reset_nearby(m, platform, reset=self.reset)


class DistributionTree(wiring.Component):
    """Broadcast every word to each of :py:`leaves` outputs through a tree of arity :py:`fan_out`.

    Words reach every leaf in the order in which they entered. All leaves are equally deep. A leaf
    may run ahead of slow neighbours by the words that the nodes hold.

    A single leaf needs no node. There is one register in front of it.

    Latency: 2 cycles for each of the ``len(tree_levels(leaves, fan_out))`` levels; 1 to a single
    leaf. Throughput: 1 word per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the word.
    leaves : int
        Number of outputs, at least one. It need not be a power of the arity.
    fan_out : int
        Largest number of children of a node (the seed's *b*).
    early : sequence of str
        Fields of the word that leaves receive directly from a register.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape)).array(leaves)
    resets : In(1).array(leaves)
        One reset per leaf, from a :class:`hdl.local_reset.ResetTree`. A node takes the reset of a
        leaf near it.
    """

    def __init__(self, shape, *, leaves, fan_out, early=()):
        if leaves < 1:
            raise ValueError(f"A tree needs at least one leaf, not {leaves!r}")
        if fan_out < 2:
            raise ValueError(f"Fan-out must be at least two, not {fan_out!r}")
        self.shape = shape
        self.leaves = leaves
        self.fan_out = fan_out
        self.early = early
        self.latency = 2 * len(tree_levels(leaves, fan_out)) if leaves > 1 else 1
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)).array(leaves),
                "resets": In(1).array(leaves),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.leaves > 1:
            self.elaborate_nodes(m)
            return m
        m.submodules.only = register = StreamRegister(self.shape, early=self.early)
        connect(m, flipped(self.i), register.i)
        connect(m, register.o, flipped(self.o[0]))
        return reset_nearby(m, platform, reset=self.resets[0])

    def elaborate_nodes(self, m):
        """Build the tree level by level, from the leaves to the root."""
        children = [flipped(o) for o in self.o]
        for level, count in enumerate(tree_levels(self.leaves, self.fan_out)):
            parents = []
            for n in range(count):
                group = children[n * self.fan_out : (n + 1) * self.fan_out]
                node = DistributionNode(
                    self.shape,
                    fan_out=len(group),
                    early=() if level else self.early,
                )
                m.submodules[f"node_{level}_{n}"] = node
                nearest = leaf_beside(level, n, arity=self.fan_out, leaves=self.leaves)
                m.d.comb += node.reset.eq(self.resets[nearest])
                for o, child in zip(node.o, group, strict=True):
                    connect(m, o, child)
                parents.append(node.i)
            children = parents
        (root,) = children
        connect(m, flipped(self.i), root)
