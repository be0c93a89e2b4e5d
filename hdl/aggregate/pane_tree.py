# SPDX-License-Identifier: Apache-2.0
"""Windows by panes: the partials of all panes of a window, combined anew for every window."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.streams.delay import delayed

from .reductions import combined, exceeds, pane_reductions, partial_shape

__all__ = ["PaneTree", "cell_layout"]


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
