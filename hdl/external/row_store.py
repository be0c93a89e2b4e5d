# SPDX-License-Identifier: Apache-2.0
"""Row store: the keys of a region in external memory, seen as the rows of passes."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.memory.axi4 import memory_port
from hdl.memory.key_column import KeyColumn
from hdl.scan.key_ring import KeyRing
from hdl.words.prepared import stored_layout
from hdl.words.spans import pointer_layout

from .layouts import COPIES, pass_layout, row_bits, row_pointer
from .pass_splitter import PassSplitter
from .read_master import ReadMaster, read_members
from .row_queue import RowQueue
from .row_selector import RowSelector, row_source
from .write_batcher import WriteBatcher, write_members

__all__ = ["RowStore"]

#: Places for copied rows.
COPIED_ROWS = 2 * COPIES
#: Rows that may be stored from the decision that a row is copied until it has been read, and from
#: the time when stores have to wait until they do.
MARGIN = COPIES + 8


class RowStore(wiring.Component):
    """Store keys row by row in external memory, and read the rows of passes ahead of the scan.

    The ``recent_rows`` last rows are kept on the chip as well. A row of a pass is read from memory
    if the response to its write has come; otherwise it is taken from the recent rows, in which it
    is then sure to be. So a probe sees every key that was stored before it. ``crowded`` rises
    before a row that is not written yet would leave the recent ones.

    Rows of a pass are requested as soon as the pass is known, while the pass before is scanned.
    :class:`hdl.external.read_master.ReadMaster` says how many can be outstanding.

    Latency: for a pass whose rows are in memory, :attr:`latency` cycles and the latency of the
    memory from ``passes`` to ``filled``. Throughput: that of the :class:`ReadMaster`, at most 1 row
    per cycle; 1 key stored per cycle, as far as the memory takes the writes.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    store, place, key : In
        Store ``key`` at ``place``, as in a :class:`hdl.scan.key_ring.KeyRing`.
    passes : In(stream.Signature(pass_layout(parameters)))
        The rows of the next pass.
    o : Out(row_source(parameters))
        Rows of the passes, one after the other.
    crowded : Out(1)
        Stores have to wait; from a register.
    busy : Out(1)
        A write is under way or about to begin; from a register, a cycle after the store.
    restart : In(1)
        Begin again with row 0, with nothing written; only while no pass is under way, and not
        ``busy``.
    wrong : Out(1)
        The memory has answered with an error; from a register.
    axi : Out(memory_port(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._reads = ReadMaster(parameters)
        # A burst is decided, requested, answered, queued and chosen.
        self.latency = 4
        super().__init__(
            {
                "store": In(1),
                "place": In(pointer_layout(parameters)),
                "key": In(stored_layout(parameters)),
                "passes": In(stream.Signature(pass_layout(parameters))),
                "o": Out(row_source(parameters)),
                "crowded": Out(1),
                "busy": Out(1),
                "restart": In(1),
                "wrong": Out(1),
                "axi": Out(memory_port(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reads = reads = self._reads
        m.submodules.writes = writes = ResetInserter(self.restart)(WriteBatcher(self.parameters))
        for side, members in ((reads, read_members), (writes, write_members)):
            for name, member in members(memory_port(self.parameters)).items():
                inner, outer = getattr(side.axi, name), getattr(self.axi, name)
                m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
        self.elaborate_writing(m, writes)
        self.elaborate_reading(m, reads, writes.written)
        m.d.sync += self.wrong.eq(reads.wrong | writes.wrong)
        return m

    def recent(self, m, name):
        """Return a memory of the recent rows."""
        m.submodules[name] = ring = KeyRing(
            self.parameters, self.key.shape(), rows=self.parameters.recent_rows
        )
        m.d.comb += [
            ring.store.eq(self.store),
            ring.place.lane.eq(self.place.lane),
            ring.place.row.eq(self.place.row),
            ring.key.eq(self.key),
        ]
        return ring

    def elaborate_writing(self, m, writes):
        """Write complete rows, and hold stores up while too many are unwritten."""
        ring = self.recent(m, "unwritten")
        head = Signal(row_pointer(self.parameters))  # all rows before are complete
        m.d.comb += [
            writes.head.eq(head),
            ring.address.eq(writes.address),
            writes.row.eq(ring.keys),
        ]
        with m.If(self.restart):
            m.d.sync += head.eq(0)
        with m.Elif(self.store):
            completes = self.place.lane == self.parameters.lanes - 1
            m.d.sync += head.eq(self.place.row + completes)
        pending = (head - writes.written)[: len(head)]
        stored = Signal()
        m.d.sync += [
            stored.eq(self.store),
            self.busy.eq(self.store | stored | writes.busy),
            self.crowded.eq(pending >= self.parameters.recent_rows - MARGIN),
        ]

    def elaborate_reading(self, m, reads, written):
        """Read and copy the rows of passes, and put them in order."""
        ring = self.recent(m, "recent")
        splitter = PassSplitter(self.parameters)
        most = reads.depth // self.parameters.memory_burst + COPIED_ROWS
        selector = RowSelector(self.parameters, runs=1 << ceil_log2(most))
        copies = RowQueue(row_bits(self.parameters), depth=COPIED_ROWS)
        m.submodules.splitter, m.submodules.selector, m.submodules.copies = (
            splitter, selector, copies,
        )  # fmt: skip
        connect(m, flipped(self.passes), splitter.passes)
        connect(m, splitter.bursts, reads.bursts)
        connect(m, selector.o, flipped(self.o))
        under_way = Signal(KeyColumn.LATENCY)  # rows that are on their way to the queue of copies
        held = Signal(range(COPIED_ROWS + 1))  # copied rows, with those under way
        m.d.comb += [
            splitter.written.eq(written),
            ring.address.eq(splitter.address),
            splitter.blocked.eq(ring.written if ring.shared else 0),
            splitter.room.eq(held <= COPIED_ROWS - COPIES),
            splitter.run_room.eq(selector.run_room),
            selector.run.eq(splitter.run),
            selector.rows.eq(splitter.rows),
            copies.add.eq(under_way[-1]),
            copies.last.eq(ring.keys),
        ]
        for source, rows in ((reads, selector.read), (copies, selector.copied)):
            m.d.comb += [
                rows.filled.eq(source.filled),
                rows.row.eq(source.row),
                source.take.eq(rows.take),
            ]
        m.d.sync += [
            under_way.eq(Cat(splitter.copy, under_way)),
            held.eq(held + splitter.copy - copies.take),
        ]
