# SPDX-License-Identifier: Apache-2.0
"""What a core keeps of the panes of its windows, besides the open one."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.deep_column import ColumnBank, DeepColumn
from hdl.streams.delay import delayed

from .pane_tree import cell_layout
from .reductions import delta_reductions, pane_reductions
from .running_windows import delta_layout
from .words import entry_layout

__all__ = ["PaneStore"]


class PaneStore(wiring.Component):
    """Memories of ended panes, by key: one for reductions by delta, one for those by panes.

    By delta, a window needs one pane only, the one that leaves it, so there is one deep memory. By
    panes, it needs all of them at once, so every slot is a memory of its own. The pane that ends
    takes the slot of the one that leaves.

    Latency: :attr:`LATENCY` cycles from ``row`` to ``oldest`` and ``cells``. Throughput: 1 key
    read and 1 key written per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    slot : In(range(parameters.panes))
        Slot of the pane that ends; constant while keys are under way.
    row : In(range(parameters.rows))
        Key whose panes are read.
    oldest : Out(delta_layout(parameters))
        What slot ``slot`` holds.
    cells : Out(cell_layout(parameters)).array(parameters.panes)
        What all slots hold; not there without reductions by panes.
    write : In(1)
        Keep ``entry`` as the pane of key ``place`` in slot ``slot``.
    place : In(range(parameters.rows))
    entry : In(entry_layout(parameters))
    """

    LATENCY = DeepColumn.LATENCY

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = self.LATENCY
        self._tree = bool(pane_reductions(parameters))
        row = range(parameters.rows)
        cells = Out(cell_layout(parameters)).array(parameters.panes)
        super().__init__(
            {
                "slot": In(range(max(2, parameters.panes))),
                "row": In(row),
                "oldest": Out(delta_layout(parameters)),
                "write": In(1),
                "place": In(row),
                "entry": In(entry_layout(parameters)),
                **({"cells": cells} if self._tree else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if delta_reductions(self.parameters):
            self.elaborate_ring(m)
        if self._tree:
            self.elaborate_slots(m)
        return m

    def elaborate_ring(self, m):
        """Keep the partials of delta reductions; those of a key without a tuple are zero."""
        depth = self.parameters.slots * self.parameters.rows
        m.submodules.ring = ring = DeepColumn(width=self.oldest.shape().size, depth=depth)
        slot = self.slot[: (self.parameters.slots - 1).bit_length()]
        kept = Signal(self.oldest.shape(), name="kept")
        with m.If(self.entry.touched):
            m.d.comb += [
                kept[rule.name].eq(self.entry.partial[rule.name])
                for rule in delta_reductions(self.parameters)
            ]
        m.d.comb += [
            ring.address.eq(Cat(self.row, slot)),
            ring.write.eq(self.write),
            ring.place.eq(Cat(self.place, slot)),
            ring.row.eq(kept),
            Value.cast(self.oldest).eq(ring.data),
        ]

    def elaborate_slots(self, m):
        """Keep the partials of all panes side by side."""
        cell = cell_layout(self.parameters)
        kept = Signal(cell, name="kept_cell")
        m.d.comb += kept.touched.eq(self.entry.touched)
        m.d.comb += [
            kept[rule.name].eq(self.entry.partial[rule.name])
            for rule in pane_reductions(self.parameters)
        ]
        slots = [ColumnBank(width=cell.size, depth=self.parameters.rows) for _ in self.cells]
        late = {"row": self.row}
        for cycle in range(self.latency - slots[0].latency):
            late = delayed(m, late, f"late_{cycle}", flags=())
        for n, (slot, data_) in enumerate(zip(slots, self.cells, strict=True)):
            m.submodules[f"slot_{n}"] = slot
            m.d.comb += [
                slot.address.eq(late["row"]),
                slot.write.eq(self.write & (self.slot == n)),
                slot.place.eq(self.place),
                slot.row.eq(kept),
                Value.cast(data_).eq(slot.data),
            ]
