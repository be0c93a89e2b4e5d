# SPDX-License-Identifier: Apache-2.0
"""Memory of chain heads: a store exchanges one head while a visit reads another."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.memory.block_ram import fits
from hdl.memory.key_column import KeyColumn
from hdl.memory.parity_column import parity_of
from hdl.verilog.zeroed import ZEROED

__all__ = ["HeadBank"]


class HeadBank(wiring.Component):
    """A memory of one head per bucket: a store exchanges one head while a visit reads another.

    A store writes a new head and returns the previous one. A block RAM may return anything for a
    row that is being written. So a store reads first and writes one cycle later, and a read of the
    same bucket in the cycle of the write is answered by a bypass register. A visit sees the heads
    of all stores of earlier cycles, but not that of a store in its own cycle.

    On an ECP5 the two readers have a copy of the memory each, in block RAMs of their own.

    Latency: :attr:`LATENCY` cycles from a bucket to its head: those of a
    :class:`hdl.memory.key_column.KeyColumn`, and 1 for the way from its blocks, which lie far
    apart. Throughput: 1 store and 1 visit per cycle.

    Parameters
    ----------
    width, bits : int
        Bits of a head, and of a bucket number.
    parity : bool
        Whether the heads in the memory have parity bits.

    Members
    -------
    store : In(1)
        Store an entry in ``bucket``.
    bucket : In(bits)
    head : In(width)
        New head of ``bucket``.
    previous : Out(width)
        Previous head of ``bucket``.
    visited : In(bits)
        Bucket that is visited.
    newest : Out(width)
        Head of the bucket ``visited``.
    visits : In(1)
        ``visited`` counts; only with parity.
    wrong : Out(1)
        A head that was read for a store or for a visit holds a flipped bit; in the cycle in which
        the head is ``previous`` or ``newest``, only with parity.
    """

    LATENCY = KeyColumn.LATENCY + 1

    def __init__(self, *, width, bits, parity=False):
        self.width = width
        self.bits = bits
        self.parity = parity
        self.latency = self.LATENCY
        super().__init__(
            {
                "store": In(1),
                "bucket": In(bits),
                "head": In(width),
                "previous": Out(width),
                "visited": In(bits),
                "newest": Out(width),
                **({"visits": In(1), "wrong": Out(1)} if parity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        write = Signal()
        place = Signal.like(self.bucket, reset_less=True)
        head = Signal.like(self.head, reset_less=True)
        m.d.sync += [write.eq(self.store), place.eq(self.bucket), head.eq(self.head)]
        later = head  # the head that was being written when the data that arrive were read
        for cycle in range(KeyColumn.LATENCY):
            before, later = later, Signal.like(head, name=f"head_{cycle + 1}", reset_less=True)
            m.d.sync += later.eq(before)
        row = Cat(head, parity_of(head)) if self.parity else head
        readers = self.elaborate_memory(m, platform, write, place, row)
        wrong = []
        for name, bucket, found, output in zip(
            ("store", "visit"),
            (self.bucket, self.visited),
            readers,
            (self.previous, self.newest),
            strict=True,
        ):
            met = write & (place == bucket)  # the row that is read is being written
            for cycle in range(KeyColumn.LATENCY):
                before, met = met, Signal(name=f"{name}_met_{cycle}", reset_less=True)
                m.d.sync += met.eq(before)
            if self.parity:
                counts = self.store if name == "store" else self.visits
                wrong.append(self.elaborate_check(m, name, counts, found, met))
                found = found[: self.width]
            here = Signal.like(output, name=f"{name}_head", reset_less=True)
            m.d.sync += here.eq(Mux(met, later, found))
            m.d.comb += output.eq(here)
        if self.parity:
            m.d.comb += self.wrong.eq(Cat(wrong).any())
        return m

    def elaborate_check(self, m, name, counts, found, met):
        """Return, in a register, whether a row that counts, and was not ``met``, is wrong."""
        for cycle in range(KeyColumn.LATENCY):
            before, counts = counts, Signal(name=f"{name}_counts_{cycle}")
            m.d.sync += counts.eq(before)
        head, parity = found[: self.width], found[self.width :]
        wrong = Signal(name=f"{name}_wrong")
        m.d.sync += wrong.eq(counts & ~met & (parity_of(head) != parity))
        return wrong

    def elaborate_memory(self, m, platform, write, place, head):
        """Return what a store and a visit read, with the latency of a ``KeyColumn``."""
        depth = 1 << self.bits
        outputs = []
        if is_ecp5(platform) and fits(depth):
            for name, bucket in (("store", self.bucket), ("visit", self.visited)):
                m.submodules[f"{name}_copy"] = column = KeyColumn(
                    width=len(head), depth=depth, zeroed=self.parity
                )
                m.d.comb += [
                    column.write.eq(write),
                    column.place.eq(place),
                    column.row.eq(head),
                    column.address.eq(bucket),
                ]
                outputs.append(column.data)
            return outputs
        heads = memory.Memory(shape=head.shape(), depth=depth, init=[])
        m.submodules[ZEROED if self.parity else "memory"] = heads
        port = heads.write_port()
        m.d.comb += [port.addr.eq(place), port.data.eq(head), port.en.eq(write)]
        for name, bucket in (("store", self.bucket), ("visit", self.visited)):
            read = heads.read_port()
            output = Signal.like(head, name=f"{name}_output", reset_less=True)
            m.d.comb += read.addr.eq(bucket)
            m.d.sync += output.eq(read.data)
            outputs.append(output)
        return outputs
