# SPDX-License-Identifier: Apache-2.0
"""The trees of a core of aggregates, and between cores."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.streams.registers import delayed
from hdl.trees.merger import OrderedMerger, OrderedMergerTree

from .aggregate_parameters import combined, exceeds, pane_reductions, partial_shape
from .words import ValueKind, value_result

__all__ = ["PaneTree", "ValueMerger", "ValueTree", "cell_layout"]


def cell_layout(parameters):
    """Return the layout of what is kept of a key and a pane for these reductions."""
    partials = {rule.name: partial_shape(parameters, rule) for rule in pane_reductions(parameters)}
    return data.StructLayout({"touched": 1, **partials})


class PaneTree(wiring.Component):
    """Combine the partials of a key's panes, by a tree with a register on each level.

    Latency: :attr:`latency` cycles, ``1 + ceil_log2(panes)``. Throughput: 1 key per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator, with a reduction by panes.

    Members
    -------
    present : In(1)
        A key is at the inputs.
    newest : In(cell_layout(parameters))
        The pane that ends, which takes the place of slot ``slot``.
    cells : In(cell_layout(parameters)).array(parameters.panes)
        What the slots hold.
    slot : In(range(parameters.panes))
        Constant while keys are under way.
    filled : In(range(parameters.panes + 1))
        Slots from this one on hold nothing, but for ``slot``; constant like ``slot``.
    window : Out(cell_layout(parameters))
    exceeded : Out(1)
        A reduction needed more bits than it has.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1 + ceil_log2(parameters.panes)
        cell = cell_layout(parameters)
        super().__init__(
            {
                "present": In(1),
                "newest": In(cell),
                "cells": In(cell).array(parameters.panes),
                "slot": In(range(max(2, parameters.panes))),
                "filled": In(range(parameters.panes + 1)),
                "window": Out(cell),
                "exceeded": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        level = self.elaborate_leaves(m)
        at_level = {"present": self.present}
        for depth in range(self.latency - 1):
            at_level = delayed(m, at_level, f"level_{depth}", flags=("present",))
            pairs = [level[n : n + 2] for n in range(0, len(level), 2)]
            level = [
                self.elaborate_node(m, pair, at_level["present"], f"{depth}_{n}")
                for n, pair in enumerate(pairs)
            ]
        ((window, exceeded),) = level
        m.d.comb += [self.window.eq(window), self.exceeded.eq(exceeded)]
        return m

    def elaborate_leaves(self, m):
        """Put the newest pane in its place, and leave out what the slots do not hold yet."""
        leaves = []
        for n, cell in enumerate(self.cells):
            leaf = Signal(cell.shape(), name=f"leaf_{n}", reset_less=True)
            with m.If(self.present):
                m.d.sync += leaf.eq(cell)
                with m.If(self.slot == n):
                    m.d.sync += leaf.eq(self.newest)
                with m.Elif(self.filled <= n):
                    m.d.sync += leaf.touched.eq(0)
            leaves.append((leaf, Const(0, 1)))
        return leaves

    def elaborate_node(self, m, pair, present, name):
        """Combine two neighbours into a register; a lone one passes."""
        node = Signal(pair[0][0].shape(), name=f"node_{name}", reset_less=True)
        exceeded = Signal(name=f"exceeded_{name}", reset_less=True)
        cells, flags = zip(*pair, strict=True)
        found = Cat(flags).any()
        with m.If(present):
            m.d.sync += [node.eq(cells[0]), exceeded.eq(found)]
            if len(cells) > 1:
                a, b = cells
                m.d.sync += node.touched.eq(a.touched | b.touched)
                for rule in pane_reductions(self.parameters):
                    one, other = a[rule.name], b[rule.name]
                    whole = combined(rule, one, other)
                    m.d.sync += node[rule.name].eq(
                        Mux(a.touched, Mux(b.touched, whole, one), other)
                    )
                    outside = exceeds(whole, partial_shape(self.parameters, rule))
                    found = found | (a.touched & b.touched & outside)
                m.d.sync += exceeded.eq(found)
        return node, exceeded


class ValueMerger(OrderedMerger):
    """Merge the results of cores, window by window: those of port 0, then those of port 1, etc.

    The star or mark that the merger emits tells of an overflow of range at any port, and of its
    key, the one at the lowest of these ports. What the ingress knows of faults is at every port.

    Latency: 2 cycles. Throughput: 1 word per cycle. A star takes 1 cycle, whatever the arity.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    ports : int
        Number of inputs, one to ``parameters.fan_in``.

    Members
    -------
    i : In(stream.Signature(value_result(parameters))).array(ports)
    o : Out(stream.Signature(value_result(parameters)))
    reset : In(1)
        Resets all registers of the merger.
    """

    def __init__(self, parameters, *, ports):
        shape = value_result(parameters)
        super().__init__(
            ports=ports,
            most=parameters.fan_in,
            shape_in=shape,
            shape_out=shape,
            datum=ValueKind.VALUE,
            mark=ValueKind.MARK,
        )

    def elaborate_word(self, m, chosen, words, pair):
        """Choose the value of the lowest port that shows one, or else merge stars or marks."""
        lowest = words[-1]
        for n in reversed(range(self.ports - 1)):
            lowest = Mux(pair[n], words[n], lowest)
        # All stars, and all values between two stars, are of the same window.
        m.d.comb += [
            chosen.kind.eq(Mux(pair.any(), ValueKind.VALUE, words[0].kind)),
            chosen.boundary.eq(words[0].boundary),
        ]
        with m.If(pair.any()):
            value = Signal.like(words[0])
            m.d.comb += [value.eq(lowest), chosen.eq(value)]
        with m.Else():
            faults = [word.body.faults for word in words]
            key = faults[-1].key
            for n in reversed(range(self.ports - 1)):
                key = Mux(faults[n].capacity | faults[n].range, faults[n].key, key)
            m.d.comb += [
                chosen.body.faults.eq(faults[0]),
                chosen.body.faults.range.eq(Cat(fault.range for fault in faults).any()),
                chosen.body.faults.key.eq(key),
            ]


class ValueTree(OrderedMergerTree):
    """Gather the results of all cores: sorted by boundary (Lemma 2), then by core and key.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels; none with a single
    core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in``.

    Members
    -------
    i : In(stream.Signature(value_result(parameters))).array(cores)
    o : Out(stream.Signature(value_result(parameters)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`.
    """

    def shape(self, level):
        """Return the layout of a result, the same at every level."""
        return value_result(self.parameters)

    def merger(self, *, level, ports):
        """Return a merger of values."""
        return ValueMerger(self.parameters, ports=ports)
