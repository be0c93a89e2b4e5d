# SPDX-License-Identifier: Apache-2.0
"""The ring of keys of a region, and the passes over it."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.columns import KeyColumn, ParityColumn, parity_width, widest_word
from hdl.words.prepared import pointer_layout, ring_pointer, span_layout

from .layouts import verified_probe_layout

__all__ = ["KeyRing", "PassTable", "SpanCount", "pass_reading", "ring_block_rams"]


def stored_width(parameters, shape):
    """Return the bits that a memory holds of a key: its own and, with parity, those of parity."""
    size = Shape.cast(shape).width
    return size + (parity_width(size) if parameters.engine.parity else 0)


def lanes_per_column(width, rows):
    """Return how many lanes of keys of ``width`` bits share a memory of so many rows."""
    return max(1, widest_word(rows) // width)


def ring_block_rams(parameters, shape, *, rows, lanes):
    """Return how many block RAMs a :class:`KeyRing` takes."""
    width = stored_width(parameters, shape)
    columns = -(-lanes // lanes_per_column(width, rows))
    return columns * -(-width // widest_word(rows))  # lanes that share a column share its only one


class KeyRing(wiring.Component):
    """Ring buffer of ``rows`` rows of keys: in every cycle, a key may be stored and a row is read.

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
        ``parameters.engine.lanes``.

    With parity, each key has parity bits of its own (at most 32 bits of a key share one), which
    count for how many lanes share a block RAM.

    Members
    -------
    store : In(1)
        Store ``key`` at ``place``.
    place : In
        Lane and row to store to, a :func:`~hdl.words.prepared.ring_pointer`; the wrap bit of
        the row is ignored.
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
        self.lanes = lanes or parameters.engine.lanes
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
                **({"checked": In(1), "wrong": Out(1)} if parameters.engine.parity else {}),
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
        if self.parameters.engine.parity:
            m.d.comb += [
                *(column.checked.eq(self.checked) for column in columns),
                self.wrong.eq(Cat(column.wrong for column in columns).any()),
            ]
        return m

    def column(self, lanes, size, depth):
        """Return the memory of neighbouring lanes, whose keys have parity bits of their own."""
        if self.parameters.engine.parity:
            return ParityColumn(width=lanes * size, depth=depth, part=size)
        return KeyColumn(width=lanes * size, depth=depth)


class SpanCount(wiring.Component):
    """Count how many keys of their windows the probes of a pass are compared with.

    The digest scan has no mask that tells which lanes of a row lie inside which span. So the sizes
    of the spans are summed as probes are added, and the sum is paid out row by row: as many
    comparisons as a row can have, until none are left. The total at the end of the pass is the
    same.

    Latency: 1 cycle from ``add`` to ``begin``, and :attr:`latency` cycles from ``step`` to
    ``comparisons``: 1, and 2 more if the number of lanes is not a power of two, which takes a
    multiplication. Throughput: 1 probe and 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    add : In(1)
        A probe that sees ``span`` joins the next pass.
    span : In
    begin : In(1)
        The next pass begins.
    step : In(1)
        A row of the pass is read.
    comparisons : Out
        Comparisons attributed to the row that was read :attr:`latency` cycles ago.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.most = parameters.engine.lanes * parameters.engine.probes
        self.latency = 1 if parameters.engine.lanes.bit_count() == 1 else 3
        super().__init__(
            {
                "add": In(1),
                "span": In(span_layout(parameters)),
                "begin": In(1),
                "step": In(1),
                "comparisons": Out(range(self.most + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, rows = self.parameters.engine.lanes, self.parameters.ring_rows
        size = Signal(ceil_log2(lanes * rows) + 1, reset_less=True)
        # The size comes late, so everything else does.
        late = self.latency - 1
        added, begin, step = (
            delayed(m, value, late) for value in (self.add, self.begin, self.step)
        )
        was_added = Signal(name="added")
        m.d.sync += was_added.eq(added)
        self.elaborate_size(m, size)
        collected = Signal(range(lanes * rows * self.parameters.engine.probes + 1))
        total = Signal.like(collected)
        left = Signal.like(collected)
        full = Signal()  # at least as many are left as a row can have
        after = Signal.like(left)
        m.d.comb += [
            total.eq(collected + Mux(was_added, size, 0)),
            full.eq(left >= self.most),
            after.eq(Mux(step, Mux(full, left - self.most, 0), left)),
        ]
        with m.If(begin):
            m.d.sync += [left.eq(total), collected.eq(0)]
        with m.Else():
            m.d.sync += [left.eq(after), collected.eq(total)]
        m.d.sync += self.comparisons.eq(Mux(step, Mux(full, self.most, left), 0))
        return m

    def elaborate_size(self, m, size):
        """Compute the number of keys in ``span``, in :attr:`latency` cycles."""
        lanes, tail, head = self.parameters.engine.lanes, self.span.tail, self.span.head
        apart = (head.row - tail.row)[: len(head.row)]
        if self.latency == 1:
            m.d.sync += size.eq(apart * lanes + head.lane - tail.lane)
            return
        rows_apart = Signal.like(apart, reset_less=True)
        keys_apart = Signal(len(apart) + len(head.lane), reset_less=True)
        ahead = Signal(signed(len(head.lane) + 1), reset_less=True)  # lanes, of the head
        m.d.sync += [
            rows_apart.eq(apart),
            ahead.eq(head.lane - tail.lane),
            keys_apart.eq(rows_apart * lanes),
            size.eq(keys_apart + delayed(m, ahead, 1)),
        ]


def delayed(m, value, cycles):
    """Return ``value`` a number of cycles later."""
    for _ in range(cycles):
        later = Signal.like(value)
        m.d.sync += later.eq(value)
        value = later
    return value


def pass_reading(parameters):
    """Return the signature through which a table of passes is read, as seen from the table.

    ``first`` : Out
        First row of the pass that is read; undefined until the pass has begun.
    ``count`` : Out
        Number of its probes; undefined until the pass has begun.
    ``number`` : In
        Index of the probe to read.
    ``probe`` : Out(verified_probe_layout(parameters))
        That probe, after the latency of the table.
    ``following`` : In(1)
        From the next cycle on, the next pass is read. Only if the current one has begun.
    ``ended`` : In(1)
        The oldest pass is verified: all its probes have been read out of the table.
    """
    return wiring.Signature(
        {
            "first": Out(pointer_layout(parameters)["row"].shape),
            "count": Out(range(parameters.engine.probes + 1)),
            "number": In(ceil_log2(parameters.engine.probes)),
            "probe": Out(verified_probe_layout(parameters)),
            "following": In(1),
            "ended": In(1),
        }
    )


class PassTable(wiring.Component):
    """Keep key and span of every probe until its pass is verified.

    Passes are verified in the order in which they begin, so the table is a ring of passes. It
    holds, from old to new: the passes from the oldest one to the one that is being read, whose
    probes may still be on their way out of the table; the passes that began after it; and the group
    that is being collected.

    Latency: 1 cycle from writing to reading, :attr:`latency` from ``reading.number`` to
    ``reading.probe``. Throughput: 1 probe written and 1 read, 1 pass begun and 1 ended, per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.
    delay : int
        Cycles by which reading is delayed, so that a probe arrives together with the key.

    Members
    -------
    add : In(1)
        Write ``probe``, which has this ``number`` in the group that is being collected.
    number : In
    probe : In(verified_probe_layout(parameters))
    began : In(1)
        The pass of the collected group begins: it has ``count`` probes, and its first row is
        ``first``. Probes added from the next cycle on belong to the next group. Only while there is
        ``room``.
    first, count : In
    room : Out(1)
        Fewer than ``PASSES - 1`` passes are pending. From a register: a pass that begins counts
        from the next cycle on, and one that ends is still counted in the next cycle.
    pending : Out(1)
        A pass has begun and has not ended.
    oldest : Out
        First row of the oldest pending pass; only while ``pending``.
    reading : Out(pass_reading(parameters))
    """

    #: Number of passes: the depth of a distributed RAM, and close to the number of rows that can
    #: wait in a match queue.
    PASSES = 16

    def __init__(self, parameters, *, delay):
        self.parameters = parameters
        self.delay = delay
        self.latency = delay + KeyColumn.LATENCY
        row = pointer_layout(parameters)["row"].shape
        count = range(parameters.engine.probes + 1)
        super().__init__(
            {
                "add": In(1),
                "number": In(ceil_log2(parameters.engine.probes)),
                "probe": In(verified_probe_layout(parameters)),
                "began": In(1),
                "first": In(row),
                "count": In(count),
                "room": Out(1, init=1),
                "pending": Out(1),
                "oldest": Out(row),
                "reading": Out(pass_reading(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        reading = self.reading
        collecting, read, oldest = (
            Signal(range(self.PASSES), name=name) for name in ("collecting", "read", "oldest")
        )
        under_way = (collecting - oldest)[: len(oldest)]
        m.d.comb += self.pending.eq(under_way != 0)
        m.d.sync += [
            collecting.eq(collecting + self.began),
            read.eq(read + reading.following),
            oldest.eq(oldest + reading.ended),
            # A pass that ends in this cycle makes room in the cycle after the next. Both cases are
            # computed before it is known whether a pass begins.
            self.room.eq(Mux(self.began, under_way < self.PASSES - 2, under_way < self.PASSES - 1)),
        ]
        self.elaborate_probes(m, collecting, read)

        ends = data.StructLayout({"first": self.first.shape(), "count": self.count.shape()})
        m.submodules.ends = passes = memory.Memory(shape=ends, depth=self.PASSES, init=[])
        write = passes.write_port()
        of_oldest, of_read = (passes.read_port(domain="comb") for _ in range(2))
        m.d.comb += [
            write.addr.eq(collecting),
            write.en.eq(self.began),
            write.data.first.eq(self.first),
            write.data.count.eq(self.count),
            of_oldest.addr.eq(oldest),
            self.oldest.eq(of_oldest.data.first),
            of_read.addr.eq(read),
            reading.first.eq(of_read.data.first),
            reading.count.eq(of_read.data.count),
        ]
        return m

    def elaborate_probes(self, m, collecting, read):
        """Write a probe of the group being collected; read one of the pass being read."""
        address = Cat(self.reading.number, read)
        for cycle in range(self.delay):
            later = Signal.like(address, name=f"address_{cycle + 1}", reset_less=True)
            m.d.sync += later.eq(address)
            address = later
        m.submodules.probes = probes = KeyColumn(
            width=len(Value.cast(self.probe)), depth=1 << len(address)
        )
        m.d.comb += [
            probes.write.eq(self.add),
            probes.place.eq(Cat(self.number, collecting)),
            probes.row.eq(self.probe),
            probes.address.eq(address),
            Value.cast(self.reading.probe).eq(probes.data),
        ]
