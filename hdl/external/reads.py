# SPDX-License-Identifier: Apache-2.0
"""Reads of windows in external memory: passes and bursts."""

from functools import reduce

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.axi4 import OKAY, memory_port
from hdl.memory.columns import KeyColumn
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.words.prepared import pointer_layout, stored_layout

__all__ = [
    "PassSplitter",
    "ReadMaster",
    "RowQueue",
    "RowSelector",
    "burst_layout",
    "drive_address",
    "pass_layout",
    "read_members",
    "read_queue_depth",
    "row_bits",
    "row_source",
    "run_layout",
]

#: Type of a burst whose addresses rise from beat to beat.
INCREMENTAL = 1


def drive_address(m, parameters, axi, channel, burst):
    """Drive an address channel, but for its handshake.

    Row ``n`` of the ring lies at ``n`` times the bytes of a beat. A burst never crosses a multiple
    of ``memory_burst`` rows, and so no boundary of 4 KiB either.

    Parameters
    ----------
    m : Module
    parameters : JoinParameters
        Parameters of the accelerator.
    axi : interface
        Members of a :func:`hdl.memory.axi4.memory_port`.
    channel : str
        ``"aw"`` or ``"ar"``.
    burst : View
        Its layout is :func:`hdl.external.reads.burst_layout`.
    """
    size = ceil_log2(parameters.engine.memory_width // 8)
    m.d.comb += [
        getattr(axi, f"{channel}addr").eq(Cat(Const(0, size), burst.row)),
        getattr(axi, f"{channel}len").eq(burst.more),
        getattr(axi, f"{channel}size").eq(size),
        getattr(axi, f"{channel}burst").eq(INCREMENTAL),
    ]


#: Rows of the recent ones that are copied in one go.
COPIES = 8


def row_bits(parameters):
    """Return the number of bits of a beat that hold keys; the others are zero."""
    return parameters.engine.lanes * Shape.cast(stored_layout(parameters)).width


def row_pointer(parameters):
    """Return the shape of the number of a row, with a wrap bit."""
    return pointer_layout(parameters)["row"].shape


def pass_layout(parameters):
    """Layout of the rows of a pass: from ``first`` up to the one before ``stop``.

    An ``empty`` pass has one row, of which no key matters; its ``stop`` may be anything.
    """
    row = row_pointer(parameters)
    return data.StructLayout({"first": row, "stop": row, "empty": 1})


def burst_layout(parameters):
    """Layout of a burst of reads: its first row, and its number of rows less one."""
    return data.StructLayout(
        {"row": row_pointer(parameters), "more": ceil_log2(parameters.engine.memory_burst)}
    )


def run_layout(parameters):
    """Layout of a run of rows from one source: read from memory, or ``copied``; less one."""
    longest = max(parameters.engine.memory_burst, COPIES)
    return data.StructLayout({"copied": 1, "more": ceil_log2(longest)})


class PassSplitter(wiring.Component):
    """Decide, row after row of a pass, where its keys come from.

    A row before ``written`` is in memory, and is read from there in a burst. A row from there on is
    among the recent ones, and is copied. Rows become written while a pass goes on, so what was
    decided of rows that wait for their turn would not hold for long. Therefore it is decided for at
    most :data:`~hdl.external.reads.COPIES` rows at a time, which are then copied without a pause:
    a recent row stays where it is for longer than that.

    Latency: 2 cycles from ``passes`` to the first burst, 1 more to the address of the first row
    that is copied. Throughput: a burst in 2 cycles; 8 copied rows in 9 cycles; a cycle between two
    passes.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    passes : In(stream.Signature(pass_layout(parameters)))
    written : In
        The first row that is not in memory, with wrap bit.
    bursts : Out(stream.Signature(burst_layout(parameters)))
        The rows to read. No burst crosses a multiple of ``memory_burst`` rows.
    room : In(1)
        There is room for a run of copied rows, and one more.
    copy : Out(1)
        The row at ``address`` is copied.
    address : Out(range(recent_rows))
    blocked : In(1)
        The row at ``address`` cannot be read in this cycle.
    run_room : In(1)
        Two more runs can be taken; from a register.
    run : Out(1)
        The run ``rows`` follows those before. It is told in the cycle before its burst is offered,
        or its first row is copied.
    rows : Out(run_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "passes": In(stream.Signature(pass_layout(parameters))),
                "written": In(row_pointer(parameters)),
                "bursts": Out(stream.Signature(burst_layout(parameters))),
                "room": In(1),
                "copy": Out(1),
                "address": Out(range(parameters.engine.recent_rows)),
                "blocked": In(1),
                "run_room": In(1),
                "run": Out(1),
                "rows": Out(run_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row, stop = (Signal(row_pointer(self.parameters), name=name) for name in ("row", "stop"))
        only = Signal()  # the pass is empty: it has one row, which is copied
        asks = Signal()  # a burst is requested
        more = Signal(self.rows.more.shape())  # rows that follow in this run
        final = Signal()  # the pass ends with this run
        m.d.comb += [
            self.address.eq(row),
            self.bursts.payload.row.eq(row),
            self.bursts.payload.more.eq(more),
            self.bursts.valid.eq(asks),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.passes.ready.eq(1)
                m.d.sync += [
                    row.eq(self.passes.payload.first),
                    stop.eq(self.passes.payload.stop),
                    only.eq(self.passes.payload.empty),
                ]
                with m.If(self.passes.valid):
                    m.next = "DECIDE"
            with m.State("DECIDE"):
                written, length, ends = self.elaborate_length(m, row, stop, only)
                m.d.sync += [more.eq(length - 1), final.eq(ends)]
                with m.If(self.run_room & (written | self.room)):
                    m.d.comb += [
                        self.run.eq(1),
                        self.rows.copied.eq(~written),
                        self.rows.more.eq(length - 1),
                    ]
                    m.d.sync += asks.eq(written)
                    m.next = "READ"
                    with m.If(~written):
                        m.next = "COPY"
            with m.State("READ"):
                with m.If(self.bursts.ready):
                    m.d.sync += [asks.eq(0), row.eq(row + more + 1)]
                    m.next = "DECIDE"
                    with m.If(final):
                        m.next = "IDLE"
            with m.State("COPY"):
                m.d.comb += self.copy.eq(~self.blocked)
                with m.If(~self.blocked):
                    m.d.sync += [more.eq(more - 1), row.eq(row + 1)]
                    with m.If(more == 0):
                        m.next = "DECIDE"
                        with m.If(final):
                            m.next = "IDLE"
        return m

    def elaborate_length(self, m, row, stop, only):
        """Return whether the next run is in memory, its number of rows, and whether it is final."""
        burst = self.parameters.engine.memory_burst
        width = len(row)
        unwritten, left = ((end - row)[:width] for end in (self.written, stop))
        # Rows from `written` on are fewer than half of what a pointer with a wrap bit counts.
        written = ~unwritten[-1] & (unwritten != 0) & ~only
        until = burst - row[: ceil_log2(burst)]  # the next multiple of a burst
        read = reduce(self.lesser, (until, unwritten, left))
        copied = Mux(only, 1, self.lesser(left, COPIES))
        length = Signal(range(max(burst, COPIES) + 1))
        m.d.comb += length.eq(Mux(written, read, copied))
        return written, length, only | (left == length)

    @staticmethod
    def lesser(one, other):
        """Return the lesser of two numbers."""
        one, other = Value.cast(one), Value.cast(other)
        return Mux(one < other, one, other)


class RowQueue(wiring.Component):
    """A FIFO queue in block RAM, without protection against overflow and underflow.

    A row comes as late as from a :class:`hdl.scan.ring.KeyRing`, so a scanner reads from either
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


#: Cycles that a row spends between memory and scanner, and that a burst takes to be issued, beside
#: the latency of the memory.
WAY = 16


def read_members(port):
    """Return the members of the address and data channels for reads of an :class:`Axi4`."""
    return {name: member for name, member in port.members.items() if name.startswith(("ar", "r"))}


def read_queue_depth(parameters):
    """Return the number of rows that can be outstanding or queued at once, a power of two."""
    return 1 << ceil_log2(
        parameters.engine.memory_latency + 2 * parameters.engine.memory_burst + WAY
    )


class ReadMaster(wiring.Component):
    """Read bursts of rows from memory, in order, into a queue.

    A burst is requested once the queue has places for a whole burst beside the rows that it holds
    and those that are outstanding. So the data channel is always ready, and no row can be in the
    way of another one. The queue has :attr:`depth` places: as many as the rows that arrive while
    the memory takes ``memory_latency`` cycles to answer, and two bursts more.

    Latency: 1 cycle from ``bursts`` to the address channel, 1 from the data channel to ``filled``.
    Throughput: 1 row per cycle, if the memory answers within ``memory_latency`` cycles and has no
    pauses; otherwise ``depth - memory_burst`` rows in the time that the memory takes to answer.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    bursts : In(stream.Signature(burst_layout(parameters)))
    filled, take, row
        Output of the :class:`hdl.external.reads.RowQueue`.
    wrong : Out(1)
        The memory has answered with an error in this cycle.
    axi : Out
        Channels ``ar`` and ``r`` of :func:`hdl.memory.axi4.memory_port`.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        #: Places of the queue.
        self.depth = read_queue_depth(parameters)
        self._port = memory_port(parameters)
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(parameters))),
                "filled": Out(1),
                "take": In(1),
                "row": Out(row_bits(parameters)),
                "wrong": Out(1),
                "axi": Out(wiring.Signature(read_members(self._port))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, bursts = self.axi, self.bursts
        m.submodules.queue = queue = RowQueue(len(self.row), depth=self.depth)
        m.submodules.request = request = StreamRegister(bursts.payload.shape())
        used = Signal(range(self.depth + 1))  # places of rows that are outstanding or queued
        room = Signal()
        m.d.comb += [
            room.eq(used <= self.depth - self.parameters.engine.memory_burst),
            request.i.payload.eq(bursts.payload),
            request.i.valid.eq(bursts.valid & room),
            bursts.ready.eq(request.i.ready & room),
            axi.arvalid.eq(request.o.valid),
            request.o.ready.eq(axi.arready),
            axi.rready.eq(1),
            queue.add.eq(axi.rvalid),
            queue.last.eq(axi.rdata),
            self.wrong.eq(axi.rvalid & (axi.rresp != OKAY)),
            self.filled.eq(queue.filled),
            queue.take.eq(self.take),
            self.row.eq(queue.row),
        ]
        drive_address(m, self.parameters, axi, "ar", request.o.payload)
        requested = Mux(bursts.valid & bursts.ready, bursts.payload.more + 1, 0)
        m.d.sync += used.eq(used + requested - self.take)
        return m


def row_source(parameters):
    """Return the signature of a queue of rows, as it offers them.

    ``filled`` says that a row is at hand, ``take`` takes it, and ``row`` shows it
    :attr:`RowQueue.LATENCY` cycles later.
    """
    return wiring.Signature({"filled": Out(1), "take": In(1), "row": Out(row_bits(parameters))})


class RowSelector(wiring.Component):
    """Take rows from one of two queues, run by run.

    Latency: 0 cycles from the queue whose turn it is to ``o``; 2 from ``run`` to the turn of the
    first run. Throughput: 1 row per cycle, also from one run to the next.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    runs : int
        Runs that can wait, a power of two.

    Members
    -------
    run : In(1)
        ``rows`` follow after the runs before.
    rows : In(run_layout(parameters))
    run_room : Out(1)
        Two more runs can be taken; from a register.
    read, copied : In(row_source(parameters))
        Rows that were read from memory, and rows that were copied.
    o : Out(row_source(parameters))
    """

    def __init__(self, parameters, *, runs):
        self.parameters = parameters
        self.runs = runs
        self.latency = 0
        super().__init__(
            {
                "run": In(1),
                "rows": In(run_layout(parameters)),
                "run_room": Out(1),
                "read": In(row_source(parameters)),
                "copied": In(row_source(parameters)),
                "o": Out(row_source(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.runs = runs = PointerQueue(self.rows.shape(), depth=self.runs, reserve=2)
        current = Signal(self.rows.shape())
        begun = Signal()  # the current run has rows left
        free = Signal()  # the next run becomes the current one, if there is any
        m.d.comb += [
            runs.add.eq(self.run),
            runs.last.eq(self.rows),
            self.run_room.eq(runs.room),
            self.o.filled.eq(begun & Mux(current.copied, self.copied.filled, self.read.filled)),
            self.copied.take.eq(self.o.take & current.copied),
            self.read.take.eq(self.o.take & ~current.copied),
            free.eq(~begun | (self.o.take & (current.more == 0))),
            runs.take.eq(free & runs.filled),
        ]
        with m.If(free):
            m.d.sync += [begun.eq(runs.filled), current.eq(runs.first)]
        with m.Elif(self.o.take):
            m.d.sync += current.more.eq(current.more - 1)
        was_copied = Signal(RowQueue.LATENCY)  # the row was taken from the copied ones
        m.d.sync += was_copied.eq(Cat(current.copied, was_copied))
        m.d.comb += self.o.row.eq(Mux(was_copied[-1], self.copied.row, self.read.row))
        return m
