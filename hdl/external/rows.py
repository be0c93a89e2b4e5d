# SPDX-License-Identifier: Apache-2.0
"""Rows of windows in external memory, on their way in and out."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.memory.axi4 import OKAY, memory_port
from hdl.memory.columns import KeyColumn
from hdl.memory.read_ahead import ReadAhead
from hdl.scan.ring import KeyRing
from hdl.streams.registers import StreamRegister
from hdl.words.prepared import pointer_layout, stored_layout

from .reads import (
    COPIES,
    PassSplitter,
    ReadMaster,
    RowQueue,
    RowSelector,
    burst_layout,
    drive_address,
    pass_layout,
    read_members,
    row_bits,
    row_pointer,
    row_source,
)

__all__ = ["RowStore", "WriteBatcher", "write_members"]


def write_members(port):
    """Return the members of the three channels for writes of an :class:`Axi4`."""
    return {
        name: member for name, member in port.members.items() if name.startswith(("aw", "w", "b"))
    }


class WriteBatcher(wiring.Component):
    """Write complete rows to memory, ``memory_burst`` at a time.

    The rows wait in a memory of the parent, which holds the ``recent_rows`` last ones. A burst is
    requested when all its rows are complete, so it begins at a multiple of its length. Its data
    follow once the request has been taken. Further bursts do not wait for its response.

    A row counts as ``written`` when the response of its burst has come: a read that is requested
    from then on returns it. Rows that never fill a burst stay in the parent's memory.

    Latency: :attr:`latency` cycles from ``head`` to the data of a burst in an idle memory: 1 to
    count, 2 for the request. Throughput: 1 row per cycle, if bursts have at least two rows.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    head : In
        The row that is stored next, with wrap bit; all rows before it are complete, and can be
        read.
    address : Out(range(recent_rows))
        Place of the row that is read.
    row : In
        Content of the row that ``address`` named two cycles ago.
    written : Out
        The first row that is not in memory, with wrap bit.
    busy : Out(1)
        A burst is complete and not yet written.
    wrong : Out(1)
        The memory has answered with an error in this cycle.
    axi : Out
        Channels ``aw``, ``w`` and ``b`` of :func:`hdl.memory.axi4.memory_port`.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 3
        self._port = memory_port(parameters)
        super().__init__(
            {
                "head": In(row_pointer(parameters)),
                "address": Out(range(parameters.engine.recent_rows)),
                "row": In(row_bits(parameters)),
                "written": Out(row_pointer(parameters)),
                "busy": Out(1),
                "wrong": Out(1),
                "axi": Out(wiring.Signature(write_members(self._port))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, burst = self.axi, self.parameters.engine.memory_burst
        depth = self.parameters.engine.recent_rows
        m.submodules.ahead = ahead = ReadAhead(unsigned(len(self.row)), depth=depth)
        m.submodules.request = request = StreamRegister(burst_layout(self.parameters))
        m.d.comb += [
            ahead.head.eq(self.head),
            self.address.eq(ahead.address),
            ahead.row.eq(self.row),
        ]
        self.elaborate_requests(m, request)
        # Rows whose burst has been requested, less those that have been sent.
        owed = Signal(range(2 * depth))
        place = Signal(range(max(2, burst)))  # of the row in its burst
        last, sent = Signal(), Signal()
        m.d.comb += [
            last.eq(place == burst - 1),
            axi.wdata.eq(ahead.first),
            axi.wstrb.eq(~0),
            axi.wlast.eq(last),
            axi.wvalid.eq(ahead.filled & (owed != 0)),
            sent.eq(axi.wvalid & axi.wready),
            ahead.take.eq(sent),
        ]
        requested = Mux(axi.awvalid & axi.awready, burst, 0)
        m.d.sync += owed.eq(owed + requested - sent)
        with m.If(sent):
            m.d.sync += place.eq(Mux(last, 0, place + 1))
        return m

    def elaborate_requests(self, m, request):
        """Request bursts of complete rows, and count those that have been written."""
        axi, burst = self.axi, self.parameters.engine.memory_burst
        asked = Signal.like(self.head)  # the first row that has not been requested
        asks = Signal()
        complete = Signal()  # all rows of the next burst are complete
        m.d.comb += [
            request.i.valid.eq(complete),
            request.i.payload.row.eq(asked),
            request.i.payload.more.eq(burst - 1),
            asks.eq(request.i.valid & request.i.ready),
            axi.awvalid.eq(request.o.valid),
            request.o.ready.eq(axi.awready),
            axi.bready.eq(1),
            self.wrong.eq(axi.bvalid & (axi.bresp != OKAY)),
        ]
        drive_address(m, self.parameters, axi, "aw", request.o.payload)
        following = Signal.like(asked)
        m.d.comb += following.eq(asked + Mux(asks, burst, 0))
        ahead = (self.head - following)[: len(self.head)]
        m.d.sync += [
            asked.eq(following),
            complete.eq(ahead >= burst),
            self.busy.eq((ahead >= burst) | (following != self.written)),
        ]
        with m.If(axi.bvalid):
            m.d.sync += self.written.eq(self.written + burst)
        return asks


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
    :class:`hdl.external.reads.ReadMaster` says how many can be outstanding.

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
        Store ``key`` at ``place``, as in a :class:`hdl.scan.ring.KeyRing`.
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
            self.parameters, self.key.shape(), rows=self.parameters.engine.recent_rows
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
            completes = self.place.lane == self.parameters.engine.lanes - 1
            m.d.sync += head.eq(self.place.row + completes)
        pending = (head - writes.written)[: len(head)]
        stored = Signal()
        m.d.sync += [
            stored.eq(self.store),
            self.busy.eq(self.store | stored | writes.busy),
            self.crowded.eq(pending >= self.parameters.engine.recent_rows - MARGIN),
        ]

    def elaborate_reading(self, m, reads, written):
        """Read and copy the rows of passes, and put them in order."""
        ring = self.recent(m, "recent")
        splitter = PassSplitter(self.parameters)
        most = reads.depth // self.parameters.engine.memory_burst + COPIED_ROWS
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
