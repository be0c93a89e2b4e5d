# SPDX-License-Identifier: Apache-2.0
"""A memory that is read through an output register, built of block RAMs or inferred."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.streams.delay import delayed
from hdl.verilog.zeroed import ZEROED

from .block_ram import BlockRAM, LateBlockRAM, fits, widest_word

__all__ = ["KeyColumn"]


class KeyColumn(wiring.Component):
    """A memory that is read through its output register, and can be written in every cycle.

    A row that is read in the cycle in which it is written may show any value.

    On an ECP5, a memory whose rows :func:`fit <hdl.memory.block_ram.fits>` into a block RAM is
    built of block RAM primitives with their output registers in use. Synthesis does not infer these
    output registers, and they are worth a quarter of the clock frequency. Any other memory is
    inferred, with a register behind it. Both variants behave the same.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``data``, 1 cycle from writing a row to
    reading it (2 if ``late``). Throughput: 1 row read and 1 row written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; number of rows, a power of two.
    late : bool
        Rows are written a cycle late, from registers beside each block RAM. This is for memories of
        so many block RAMs that they are far from each other.
    zeroed : bool
        Rows are zero before they are written; otherwise they may be anything.

    Members
    -------
    write : In(1)
        Write ``row`` at ``place``.
    place : In(range(depth))
    row : In(width)
    address : In(range(depth))
        Row to read.
    data : Out(width)
    """

    LATENCY = 2

    def __init__(self, *, width, depth, late=False, zeroed=False):
        self.width = width
        self.depth = depth
        self.late = late
        self.zeroed = zeroed
        self.latency = self.LATENCY
        super().__init__(
            {
                "write": In(1),
                "place": In(range(depth)),
                "row": In(width),
                "address": In(range(depth)),
                "data": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if is_ecp5(platform) and fits(self.depth):
            word = widest_word(self.depth)
            for n, first in enumerate(range(0, self.width, word)):
                bits = slice(first, min(first + word, self.width))
                if self.late:
                    block = LateBlockRAM(depth=self.depth, width=bits.stop - bits.start)
                else:
                    block = BlockRAM(depth=self.depth)
                m.submodules[f"block_{n}"] = block
                m.d.comb += [
                    block.write.eq(self.write),
                    block.place.eq(self.place),
                    block.row.eq(self.row[bits]),
                    block.address.eq(self.address),
                    self.data[bits].eq(block.data),
                ]
            return m
        rows = memory.Memory(shape=unsigned(self.width), depth=self.depth, init=[])
        m.submodules[ZEROED if self.zeroed else "memory"] = rows
        write, read = rows.write_port(), rows.read_port()
        written = {"write": self.write, "place": self.place, "row": self.row}
        if self.late:
            written = delayed(m, written, "near", flags=("write",))
        m.d.comb += [
            write.en.eq(written["write"]),
            write.addr.eq(written["place"]),
            write.data.eq(written["row"]),
            read.addr.eq(self.address),
        ]
        output = Signal(self.width, reset_less=True)
        m.d.sync += output.eq(read.data)
        m.d.comb += self.data.eq(output)
        return m
