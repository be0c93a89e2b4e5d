# SPDX-License-Identifier: Apache-2.0
"""Where the newest entry of every bucket is."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.memory.block_ram import fits
from hdl.memory.key_column import KeyColumn
from hdl.streams.registers import clocked

from .layouts import slot_shape

__all__ = ["HeadTable"]


class HeadTable(wiring.Component):
    """A memory of one slot per bucket: a store exchanges a slot while a visit reads another.

    A store leaves its own slot and gets the one that was there before. Block RAMs may show anything
    where they are written; so a store writes in the cycle after it reads, and whoever reads the
    same bucket in that cycle gets the slot from here. A visit sees the slots of all stores but
    perhaps that of its own cycle. Nothing is ever cleared: a slot that has nothing to do with the
    bucket any more leads to an entry of another bucket, or to none of the window.

    On an ECP5 each reader has a copy of the memory, in block RAMs of its own. If not ``pipelined``,
    the memory reads what was there before it is written, and a store does both in one cycle.

    Latency: that of a :class:`hdl.memory.key_column.KeyColumn` from a bucket to what was there.
    Throughput: 1 store and 1 visit per cycle.

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

    LATENCY = KeyColumn.LATENCY

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = KeyColumn.latency_of(pipelined=parameters.pipelined)
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
        if not self.parameters.pipelined:
            found = self.elaborate_memory(m, platform, self.store, self.bucket, self.slot)
            m.d.comb += [self.previous.eq(found[0]), self.newest.eq(found[1])]
            return m
        write = Signal()
        place = Signal.like(self.bucket, reset_less=True)
        slot = Signal.like(self.slot, reset_less=True)
        m.d.sync += [write.eq(self.store), place.eq(self.bucket), slot.eq(self.slot)]
        later = slot  # what was written so long ago
        for cycle in range(self.latency):
            before, later = later, Signal.like(slot, name=f"slot_{cycle + 1}", reset_less=True)
            m.d.sync += later.eq(before)
        readers = self.elaborate_memory(m, platform, write, place, slot)
        for name, bucket, found, output in zip(
            ("store", "visit"),
            (self.bucket, self.visited),
            readers,
            (self.previous, self.newest),
            strict=True,
        ):
            met = write & (place == bucket)  # it is written in this cycle
            for cycle in range(self.latency):
                before, met = met, Signal(name=f"{name}_met_{cycle}", reset_less=True)
                m.d.sync += met.eq(before)
            m.d.comb += output.eq(Mux(met, later, found))
        return m

    def elaborate_memory(self, m, platform, write, place, slot):
        """Return what was read for a store and for a visit, ``latency`` cycles ago."""
        depth = 1 << self.parameters.bucket_width
        pipelined = self.parameters.pipelined
        outputs = []
        if is_ecp5(platform) and pipelined and fits(depth):
            for name, bucket in (("store", self.bucket), ("visit", self.visited)):
                m.submodules[f"{name}_copy"] = column = KeyColumn(width=len(slot), depth=depth)
                m.d.comb += [
                    column.write.eq(write),
                    column.place.eq(place),
                    column.row.eq(slot),
                    column.address.eq(bucket),
                ]
                outputs.append(column.data)
            return outputs
        m.submodules.memory = slots = memory.Memory(shape=slot.shape(), depth=depth, init=[])
        port = slots.write_port()
        m.d.comb += [port.addr.eq(place), port.data.eq(slot), port.en.eq(write)]
        for name, bucket in (("store", self.bucket), ("visit", self.visited)):
            read = slots.read_port()
            output = Signal.like(slot, name=f"{name}_output", reset_less=True)
            m.d.comb += read.addr.eq(bucket)
            stage = clocked(m, pipelined=pipelined)
            stage += output.eq(read.data)
            outputs.append(output)
        return outputs
