# SPDX-License-Identifier: Apache-2.0
"""The memory of a region: keys in rows of one key per lane."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .block_ram import BlockRAM, fits, widest_word
from .ecp5 import is_ecp5
from .layouts import pointer_layout, row_layout, stored_layout

__all__ = ["KeyColumn", "KeyRing"]


class KeyColumn(wiring.Component):
    """A memory that is read through its output register and may be written in every cycle.

    A row that is written while it is read may show any value. On an ECP5 the memory is built of
    block RAMs with their own output registers, which no synthesis infers and which are worth a
    quarter of the clock; elsewhere it is inferred, with a register behind it. Both behave the same.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``data``. Throughput: 1 row read and 1
    row written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; rows, a power of two.

    Members
    -------
    write : In(1)
    place : In(range(depth))
    row : In(width)
    address : In(range(depth))
    data : Out(width)
    """

    LATENCY = 2

    def __init__(self, *, width, depth):
        self.width = width
        self.depth = depth
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
                m.submodules[f"block_{n}"] = block = BlockRAM(depth=self.depth)
                m.d.comb += [
                    block.write.eq(self.write),
                    block.place.eq(self.place),
                    block.row.eq(self.row[bits]),
                    block.address.eq(self.address),
                    self.data[bits].eq(block.data),
                ]
            return m
        m.submodules.memory = rows = memory.Memory(
            shape=unsigned(self.width), depth=self.depth, init=[]
        )
        write, read = rows.write_port(), rows.read_port()
        m.d.comb += [
            write.addr.eq(self.place),
            write.en.eq(self.write),
            write.data.eq(self.row),
            read.addr.eq(self.address),
        ]
        output = Signal(self.width, reset_less=True)
        m.d.sync += output.eq(read.data)
        m.d.comb += self.data.eq(output)
        return m


class KeyRing(wiring.Component):
    """``ring_rows`` rows of keys: in every cycle a key may be stored and a row is read.

    Lanes of narrow keys share a block RAM: as many as fit into its width form a column. A store
    writes the whole row of its column: lanes before its own as they are, for they were the last to
    be stored, lanes after it with anything, for they are stored next. So keys must be
    stored lane by lane, row by row, and no row may be written that still holds a key of the
    window. A row that is written while it is read may show anything in the written column.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``keys``. Throughput: 1 row and 1 store per
    cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    store : In(1)
    place : In
        Where to store; the wrap bit of the row is ignored.
    key : In
    address : In
        Row to read, without wrap bit.
    keys : Out
    """

    LATENCY = KeyColumn.LATENCY

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = self.LATENCY
        super().__init__(
            {
                "store": In(1),
                "place": In(pointer_layout(parameters)),
                "key": In(stored_layout(parameters)),
                "address": In(range(parameters.ring_rows)),
                "keys": Out(row_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, depth = self.parameters.lanes, self.parameters.ring_rows
        key, keys = Value.cast(self.key), Value.cast(self.keys)
        share = max(1, widest_word(depth) // len(key))  # lanes of a column
        for n, first in enumerate(range(0, lanes, share)):
            members = range(first, min(first + share, lanes))
            column = KeyColumn(width=len(members) * len(key), depth=depth)
            m.submodules[f"column_{n}"] = column
            mine = self.store
            if first > 0:
                mine &= self.place.lane >= first
            if members[-1] < lanes - 1:
                mine &= self.place.lane <= members[-1]
            m.d.comb += [
                column.write.eq(mine),
                column.place.eq(self.place.row),
                column.address.eq(self.address),
                keys[first * len(key) : (members[-1] + 1) * len(key)].eq(column.data),
            ]
            row = []
            for lane in members[:-1]:
                earlier = Signal(len(key), reset_less=True, name=f"lane_{lane}")
                with m.If(self.store & (self.place.lane == lane)):
                    m.d.sync += earlier.eq(key)
                row.append(Mux(self.place.lane == lane, key, earlier))
            m.d.comb += column.row.eq(Cat(row, key))
        return m
