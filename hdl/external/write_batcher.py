# SPDX-License-Identifier: Apache-2.0
"""AXI4 write master: rows are written in full bursts, behind the stores."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.axi4 import OKAY, memory_port
from hdl.memory.read_ahead import ReadAhead
from hdl.streams.registers import StreamRegister

from .addresses import drive_address
from .layouts import burst_layout, row_bits, row_pointer

__all__ = ["WriteBatcher", "write_members"]


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
                "address": Out(range(parameters.recent_rows)),
                "row": In(row_bits(parameters)),
                "written": Out(row_pointer(parameters)),
                "busy": Out(1),
                "wrong": Out(1),
                "axi": Out(wiring.Signature(write_members(self._port))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, burst = self.axi, self.parameters.memory_burst
        depth = self.parameters.recent_rows
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
        axi, burst = self.axi, self.parameters.memory_burst
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
