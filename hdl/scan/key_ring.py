# SPDX-License-Identifier: Apache-2.0
"""Key memory of a region, in rows of one key per lane."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.block_ram import widest_word
from hdl.memory.key_column import KeyColumn
from hdl.memory.parity_column import ParityColumn, parity_width
from hdl.words.spans import ring_pointer

__all__ = ["KeyRing", "ring_block_rams"]


def stored_width(parameters, shape):
    """Return the bits that a memory holds of a key: its own and, with parity, those of parity."""
    size = Shape.cast(shape).width
    return size + (parity_width(size) if parameters.parity else 0)


def lanes_per_column(width, rows):
    """Return how many lanes of keys of ``width`` bits share a memory of so many rows."""
    return max(1, widest_word(rows) // width)


def ring_block_rams(parameters, shape, *, rows, lanes):
    """Return how many block RAMs a :class:`KeyRing` takes."""
    width = stored_width(parameters, shape)
    columns = -(-lanes // lanes_per_column(width, rows))
    return columns * -(-width // widest_word(rows))  # lanes that share a column share its only one


class KeyRing(wiring.Component):
    """A ring of ``rows`` rows of keys: in every cycle, a key may be stored and a row is read.

    Lanes of narrow keys share a block RAM: a column consists of as many lanes as fit into its
    width. A store writes the whole row of its column. It writes the lanes below its own with the
    keys that they already hold, which were the last ones stored, and the lanes above with anything,
    as they are stored next. This has two consequences. Keys must be stored lane by lane and row by
    row. A row may only be written when it holds no key of the window, other than those of the
    current round.

    A row that is written while it is read may return anything in the written column. If that column
    may hold other lanes of the window, the ring is ``shared``, and ``written`` flags that the row
    at ``address`` is not valid.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``keys``. Throughput: 1 row read and 1 key
    stored per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    shape : shape-like
        Shape of what is stored of a key.
    rows, lanes : int or None
        Number of rows, a power of two, and of lanes; by default ``parameters.ring_rows`` and
        ``parameters.lanes``.

    With parity, each key has parity bits of its own (at most 32 bits of a key share one), which
    count for how many lanes share a block RAM.

    Members
    -------
    store : In(1)
        Store ``key`` at ``place``.
    place : In
        Lane and row to store to, a :func:`~hdl.words.spans.ring_pointer`; the wrap bit of the row
        is ignored.
    key : In
    address : In
        Row to read, without wrap bit.
    keys : Out
    written : Out(1)
        The row at ``address`` is stored to in this cycle; only if :attr:`shared`.
    checked : In(1)
        The row at ``address`` counts; only with parity.
    wrong : Out(1)
        A row that counted holds a flipped bit, a cycle after its ``keys``; only with parity.
    """

    LATENCY = KeyColumn.LATENCY

    def __init__(self, parameters, shape, *, rows=None, lanes=None):
        self.parameters = parameters
        self.rows = rows or parameters.ring_rows
        self.lanes = lanes or parameters.lanes
        self.latency = self.LATENCY
        #: Lanes per column.
        self.share = lanes_per_column(stored_width(parameters, shape), self.rows)
        #: Whether any two lanes share a column.
        self.shared = min(self.share, self.lanes) > 1
        super().__init__(
            {
                "store": In(1),
                "place": In(ring_pointer(self.lanes, self.rows)),
                "key": In(shape),
                "address": In(range(self.rows)),
                "keys": Out(data.ArrayLayout(shape, self.lanes)),
                **({"written": Out(1)} if self.shared else {}),
                **({"checked": In(1), "wrong": Out(1)} if parameters.parity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, depth = self.lanes, self.rows
        key, keys = Value.cast(self.key), Value.cast(self.keys)
        share = self.share
        columns = []
        if self.shared:
            row = self.place.row[: len(self.address)]
            m.d.comb += self.written.eq(self.store & (row == self.address))
        for n, first in enumerate(range(0, lanes, share)):
            members = range(first, min(first + share, lanes))
            column = self.column(len(members), len(key), depth)
            m.submodules[f"column_{n}"] = column
            columns.append(column)
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
        if self.parameters.parity:
            m.d.comb += [
                *(column.checked.eq(self.checked) for column in columns),
                self.wrong.eq(Cat(column.wrong for column in columns).any()),
            ]
        return m

    def column(self, lanes, size, depth):
        """Return the memory of neighbouring lanes, whose keys have parity bits of their own."""
        if self.parameters.parity:
            return ParityColumn(width=lanes * size, depth=depth, part=size)
        return KeyColumn(width=lanes * size, depth=depth)
