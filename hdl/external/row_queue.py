# SPDX-License-Identifier: Apache-2.0
"""A queue of rows that are read in the same time as those of a key ring."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.key_column import KeyColumn

__all__ = ["RowQueue"]


class RowQueue(wiring.Component):
    """A FIFO queue in block RAM, without protection against overflow and underflow.

    A row comes as late as from a :class:`hdl.scan.key_ring.KeyRing`, so a scanner reads from either
    one alike.

    Latency: 1 cycle from ``add`` to ``filled``, :attr:`LATENCY` cycles from ``take`` to ``row``.
    Throughput: 1 row in and 1 row out per cycle.

    Parameters
    ----------
    width : int
        Bits of a row.
    depth : int
        Number of rows, a power of two.

    Members
    -------
    add : In(1)
        Append ``last``.
    last : In(width)
    filled : Out(1)
        The queue holds a row; from a register.
    take : In(1)
        Remove the oldest row; only while ``filled``.
    row : Out(width)
    """

    LATENCY = KeyColumn.LATENCY

    def __init__(self, width, *, depth):
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"The depth of a row queue must be a power of two, not {depth!r}")
        self.width = width
        self.depth = depth
        self.latency = self.LATENCY
        super().__init__(
            {
                "add": In(1),
                "last": In(width),
                "filled": Out(1),
                "take": In(1),
                "row": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows = rows = KeyColumn(width=self.width, depth=self.depth)
        head, tail = Signal(range(self.depth)), Signal(range(self.depth))
        level = Signal(range(self.depth + 1))
        after = Signal.like(level)
        m.d.comb += [
            rows.write.eq(self.add),
            rows.place.eq(head),
            rows.row.eq(self.last),
            rows.address.eq(tail),
            self.row.eq(rows.data),
            after.eq(level + self.add - self.take),
        ]
        m.d.sync += [
            head.eq(head + self.add),
            tail.eq(tail + self.take),
            level.eq(after),
            self.filled.eq(after != 0),
        ]
        return m
