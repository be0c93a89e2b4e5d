# SPDX-License-Identifier: Apache-2.0
"""A memory whose bits flip on the way out, for components with parity."""

from amaranth import *
from amaranth.lib import wiring

from hdl.memory.columns import ParityColumn
from tests.hdl.hostile_column import HostileColumn

__all__ = ["FlippingColumn", "flip_columns"]


class FlippingColumn(wiring.Component):
    """A :class:`HostileColumn` whose data are xored with :attr:`flips`, which a test sets."""

    def __init__(self, *, width, depth, late):
        self.column = HostileColumn(width=width, depth=depth, late=late)
        self.flips = Signal(width)
        super().__init__(self.column.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.column = column = self.column
        m.d.comb += [
            *(
                getattr(column, name).eq(getattr(self, name))
                for name in ("write", "place", "row", "address")
            ),
            self.data.eq(column.data ^ self.flips),
        ]
        return m


def flip_columns(monkeypatch):
    """Let every :class:`ParityColumn` that is elaborated hold a :class:`FlippingColumn`.

    Returns the list that these are appended to.
    """
    columns = []

    def column(self, width):
        columns.append(FlippingColumn(width=width, depth=self.depth, late=self.late))
        return columns[-1]

    monkeypatch.setattr(ParityColumn, "column", column)
    return columns
