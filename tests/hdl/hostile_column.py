# SPDX-License-Identifier: Apache-2.0
"""A memory at its worst: a row that is written while it is read shows what it never held."""

from amaranth import *
from amaranth.lib import wiring

from hdl.memory.columns import KeyColumn

__all__ = ["HostileColumn"]


class HostileColumn(wiring.Component):
    """A :class:`hdl.memory.columns.KeyColumn` that turns all bits of such rows over."""

    LATENCY = KeyColumn.LATENCY

    def __init__(self, *, width, depth, late=False):
        self.column = KeyColumn(width=width, depth=depth, late=late)
        self.latency = self.column.latency
        super().__init__(self.column.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.column = column = self.column
        write, place = self.write, self.place
        if self.column.late:
            write, place = Signal.like(self.write), Signal.like(self.place)
            m.d.sync += [write.eq(self.write), place.eq(self.place)]
        hit = write & (place == self.address)
        for cycle in range(self.latency):
            later = Signal(name=f"hit_{cycle + 1}")
            m.d.sync += later.eq(hit)
            hit = later
        m.d.comb += [
            column.write.eq(self.write),
            column.place.eq(self.place),
            column.row.eq(self.row),
            column.address.eq(self.address),
            self.data.eq(column.data ^ hit.replicate(len(self.data))),
        ]
        return m
