# SPDX-License-Identifier: Apache-2.0
"""Where the newest entry of every bucket is."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .layouts import slot_shape

__all__ = ["HeadTable"]


class HeadTable(wiring.Component):
    """A memory of one slot per bucket, written and read in the same cycle.

    A store leaves its own slot and gets the one that was there before. A visit only reads; it may
    see the slot of a store in the same cycle or the one before it. Nothing is ever cleared: a slot
    that has nothing to do with the bucket any more leads to an entry of another bucket, or to none
    of the window.

    Latency: :attr:`LATENCY` cycles from a bucket to what was there. Throughput: 1 store and 1 visit
    per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    store : In(1)
    bucket : In(bucket_width)
    slot : In
    previous : Out
    visited : In(bucket_width)
    newest : Out
    """

    LATENCY = 2

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = self.LATENCY
        slot = slot_shape(parameters)
        super().__init__(
            {
                "store": In(1),
                "bucket": In(parameters.bucket_width),
                "slot": In(slot),
                "previous": Out(slot),
                "visited": In(parameters.bucket_width),
                "newest": Out(slot),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = slots = memory.Memory(
            shape=slot_shape(self.parameters), depth=1 << self.parameters.bucket_width, init=[]
        )
        write = slots.write_port()
        m.d.comb += [
            write.addr.eq(self.bucket),
            write.data.eq(self.slot),
            write.en.eq(self.store),
        ]
        for bucket, slot in ((self.bucket, self.previous), (self.visited, self.newest)):
            read = slots.read_port()
            output = Signal(slot.shape(), reset_less=True)
            m.d.comb += [read.addr.eq(bucket), slot.eq(output)]
            m.d.sync += output.eq(read.data)
        return m
