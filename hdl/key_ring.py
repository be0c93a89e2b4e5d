# SPDX-License-Identifier: Apache-2.0
"""The memory of a region: keys in rows of one key per lane."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .layouts import pointer_layout, row_layout, stored_layout

__all__ = ["KeyRing"]


class KeyRing(wiring.Component):
    """Block RAM of ``ring_rows`` rows: in every cycle a key may be written and a row is read.

    A row that is written while it is read shows either state of the written lane; all other lanes
    are as they were. The second cycle of latency is the block RAM's output register.

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

    LATENCY = 2

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
        key_bits = stored_layout(self.parameters).size
        m.submodules.memory = ring = memory.Memory(
            shape=data.ArrayLayout(unsigned(key_bits), self.parameters.lanes),
            depth=self.parameters.ring_rows,
            init=[],
        )
        write = ring.write_port(granularity=1)  # one enable per lane
        read = ring.read_port()
        m.d.comb += [
            write.addr.eq(self.place.row),
            write.en.eq(self.store << self.place.lane),
            *(lane.eq(self.key) for lane in write.data),
            read.addr.eq(self.address),
        ]
        m.d.sync += self.keys.eq(read.data)
        return m
