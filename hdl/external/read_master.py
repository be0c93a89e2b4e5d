# SPDX-License-Identifier: Apache-2.0
"""AXI4 read master: bursts of rows, with a place reserved for every row that is outstanding."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.axi4 import OKAY, memory_port
from hdl.streams.registers import StreamRegister

from .addresses import drive_address
from .layouts import burst_layout, row_bits
from .row_queue import RowQueue

__all__ = ["ReadMaster", "read_members", "read_queue_depth"]

#: Cycles that a row spends between memory and scanner, and that a burst takes to be issued, beside
#: the latency of the memory.
WAY = 16


def read_members(port):
    """Return the members of the address and data channels for reads of an :class:`Axi4`."""
    return {name: member for name, member in port.members.items() if name.startswith(("ar", "r"))}


def read_queue_depth(parameters):
    """Return the number of rows that can be outstanding or queued at once, a power of two."""
    return 1 << ceil_log2(parameters.memory_latency + 2 * parameters.memory_burst + WAY)


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
        Output of the :class:`hdl.external.row_queue.RowQueue`.
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
            room.eq(used <= self.depth - self.parameters.memory_burst),
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
