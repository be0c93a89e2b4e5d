# SPDX-License-Identifier: Apache-2.0
"""A memory that keeps parity bits beside its rows, and tells when a bit has flipped."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.delay import delayed

from .key_column import KeyColumn

__all__ = ["PART_BITS", "ParityColumn", "parity_of", "parity_width", "stored_column"]

#: Most bits that share a parity bit: those of a block RAM's widest word without its four parity
#: bits.
PART_BITS = 32


def parity_width(width, part=PART_BITS):
    """Return the number of parity bits of a row of ``width`` bits in parts of ``part`` bits."""
    return -(-width // min(part, PART_BITS))


def parity_of(row, part=PART_BITS):
    """Return the parity bits of a row, one for each part of ``part`` bits.

    A part and its parity bit hold an even number of ones, so a memory of zeros is right.
    """
    part = min(part, PART_BITS)
    return Cat(row[first : first + part].xor() for first in range(0, len(row), part))


def stored_column(parameters, *, width, depth, late=False):
    """Return a memory of stored tuples: with parity if the accelerator has it.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    width, depth, late
        Those of a :class:`hdl.memory.key_column.KeyColumn`.
    """
    kind = ParityColumn if parameters.parity else KeyColumn
    return kind(width=width, depth=depth, late=late)


class ParityColumn(wiring.Component):
    """A :class:`hdl.memory.key_column.KeyColumn` that checks the parity of the rows that are read.

    Every part of a row has a parity bit beside it. An odd number of bits that have flipped in a
    part and its parity bit is noticed; an even number is not. A read counts if it is ``checked``
    and the row is not written in the cycle in which it is read, as such a read may show anything.
    The memory begins with zeros, whose parity is right: a row that was never written counts, too.

    Latency: that of the memory to ``data``, and 1 cycle more to ``wrong``. Throughput: 1 row read
    and 1 row written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row without parity; number of rows, a power of two.
    late : bool
        As of the ``KeyColumn``.
    part : int
        Bits of a part; at most :data:`PART_BITS` share a parity bit.

    Members
    -------
    write, place, row, address, data
        Those of the ``KeyColumn``.
    checked : In(1)
        The row at ``address`` counts.
    wrong : Out(1)
        A row that counted has a part with a wrong parity; from a register, :attr:`told_after`
        cycles after its ``address``.
    """

    def __init__(self, *, width, depth, late=False, part=PART_BITS):
        self.width = width
        self.depth = depth
        self.late = late
        self.part = part
        self.latency = KeyColumn.LATENCY
        self.told_after = self.latency + 1
        super().__init__(
            {
                "write": In(1),
                "place": In(range(depth)),
                "row": In(width),
                "address": In(range(depth)),
                "data": Out(width),
                "checked": In(1),
                "wrong": Out(1),
            }
        )

    def column(self, width):
        """Return the memory of rows and parity bits."""
        return KeyColumn(width=width, depth=self.depth, late=self.late, zeroed=True)

    def elaborate(self, platform):
        m = Module()
        bits = parity_width(self.width, self.part)
        m.submodules.rows = rows = self.column(self.width + bits)
        m.d.comb += [
            rows.write.eq(self.write),
            rows.place.eq(self.place),
            rows.row.eq(Cat(self.row, parity_of(self.row, self.part))),
            rows.address.eq(self.address),
            self.data.eq(rows.data[: self.width]),
        ]
        written = {"write": self.write, "place": self.place}
        if self.late:
            written = delayed(m, written, "near", flags=("write",))
        counts = self.checked & ~(written["write"] & (written["place"] == self.address))
        for cycle in range(self.latency):
            counts = delayed(m, {"counts": counts}, f"read_{cycle}", flags=("counts",))["counts"]
        agrees = parity_of(rows.data[: self.width], self.part) == rows.data[self.width :]
        m.d.sync += self.wrong.eq(counts & ~agrees)
        return m
