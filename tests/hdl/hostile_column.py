# SPDX-License-Identifier: Apache-2.0
"""A memory at its worst: a row that is written while it is read shows what it never held."""

from amaranth import *
from amaranth.lib import wiring

from hdl.memory.key_column import KeyColumn

__all__ = ["HostileColumn"]


class HostileColumn(wiring.Component):
    """A :class:`hdl.memory.key_column.KeyColumn` that turns all bits of such rows over."""

    LATENCY = KeyColumn.LATENCY

    def __init__(self, *, width, depth):
        self.column = KeyColumn(width=width, depth=depth)
        self.latency = self.column.latency
        super().__init__(self.column.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.column = column = self.column
        hit = self.write & (self.place == self.address)
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
