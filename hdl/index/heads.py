# SPDX-License-Identifier: Apache-2.0
"""The heads of chains, in banks."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.ecp5 import is_ecp5
from hdl.memory.columns import KeyColumn, fits, parity_of
from hdl.streams.registers import delayed
from hdl.verilog.conversion import ZEROED

from .layouts import (
    bank_bits,
    bank_count,
    group_count,
    head_shape,
    queues_layout,
    slot_shape,
    visit_layout,
    walks_layout,
)

__all__ = ["HeadBank", "HeadLookup", "HeadTable"]


class HeadBank(wiring.Component):
    """A memory of one head per bucket: a store exchanges one head while a visit reads another.

    A store writes a new head and returns the previous one. A block RAM may return anything for a
    row that is being written. So a store reads first and writes one cycle later, and a read of the
    same bucket in the cycle of the write is answered by a bypass register. A visit sees the heads
    of all stores of earlier cycles, but not that of a store in its own cycle.

    On an ECP5 the two readers have a copy of the memory each, in block RAMs of their own.

    Latency: :attr:`LATENCY` cycles from a bucket to its head: those of a
    :class:`hdl.memory.columns.KeyColumn`, and 1 for the way from its blocks, which lie far
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


class HeadTable(wiring.Component):
    """Hash table heads, one per bucket, split into banks by the lowest bits of the bucket number.

    A store exchanges the head of its bucket; a visit reads one head from every bank at once
    (:class:`HeadBank`). The table is never cleared: a stale head leads to an entry of another
    bucket, or to one outside the window.

    Latency: :attr:`LATENCY` cycles from a bucket to its head. Throughput: 1 store, and 1 visit of
    every bank, per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    store : In(1)
        Store an entry in ``bucket``.
    bucket : In(bucket_bits)
    head : In(head_shape(parameters))
        Place of the entry that is stored.
    previous : Out(head_shape(parameters))
        Previous head of ``bucket``.
    visited : In(bank_bits(parameters)).array(banks)
        For each bank: the visited bucket, without the lowest bits of its number, which select the
        bank.
    newest : Out(head_shape(parameters)).array(banks)
        Heads of the buckets ``visited``.
    visits : In(banks)
        Banks whose ``visited`` counts; only with parity.
    wrong : Out(1)
        A head that was read, and counted, holds a flipped bit; only with parity.
    """

    LATENCY = HeadBank.LATENCY

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = self.LATENCY
        banks, head = bank_count(parameters), head_shape(parameters)
        super().__init__(
            {
                "store": In(1),
                "bucket": In(parameters.engine.bucket_bits),
                "head": In(head),
                "previous": Out(head),
                "visited": In(bank_bits(parameters)).array(banks),
                "newest": Out(head).array(banks),
                **({"visits": In(banks), "wrong": Out(1)} if parameters.engine.parity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        banks = bank_count(self.parameters)
        own = self.bucket[: ceil_log2(banks)]
        stored = own  # bank of the store whose previous head arrives
        for cycle in range(self.latency):
            before, stored = stored, Signal.like(own, name=f"stored_{cycle + 1}", reset_less=True)
            m.d.sync += stored.eq(before)
        previous, wrong = [], []
        for n in range(banks):
            m.submodules[f"bank_{n}"] = bank = HeadBank(
                width=len(self.head),
                bits=bank_bits(self.parameters),
                parity=self.parameters.engine.parity,
            )
            m.d.comb += [
                bank.store.eq(self.store & (own == n)),
                bank.bucket.eq(self.bucket[len(own) :]),
                bank.head.eq(self.head),
                bank.visited.eq(self.visited[n]),
                self.newest[n].eq(bank.newest),
            ]
            previous.append(bank.previous)
            wrong.append(bank.wrong if self.parameters.engine.parity else Const(0))
            if self.parameters.engine.parity:
                m.d.comb += bank.visits.eq(self.visits[n])
        m.d.comb += self.previous.eq(Array(previous)[stored] if banks > 1 else previous[0])
        if self.parameters.engine.parity:
            m.d.comb += self.wrong.eq(Cat(wrong).any())
        return m


class HeadLookup(wiring.Component):
    """Begin a walk where the head of a visited bucket is not too old for the probe.

    The number of entries stored after the head's entry decides. A head that is not too old lies in
    the probe's window, or it is newer than the probe and its chain leads into the window.

    Latency: :attr:`latency` cycles from a visit to its walks. Throughput: 1 visit per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    begun : In(banks)
        Banks in which ``visit`` has a bucket.
    final : In(1)
        The visits of the group end in this cycle, with ``visit`` if there is one.
    visit : In(visit_layout(parameters))
    visited : Out(bank_bits(parameters)).array(banks)
        Buckets to look up, one per bank.
    newest : In(head_shape(parameters)).array(banks)
        Heads of these buckets, :attr:`HeadTable.LATENCY` cycles later.
    head : In(head_shape(parameters))
        Place of the next entry to be stored; every entry in the table is older.
    queues : In(queues_layout(parameters))
        Queue for the matches of each group.
    begin : Out(banks)
        Banks whose ``walks`` begin.
    walks : Out(walks_layout(parameters))
    started : Out(group_count(parameters)).array(banks)
        For each bank: the group whose walk begins; one-hot.
    final_of : Out(group_count(parameters))
        All walks of this group have begun, including those of this cycle; one-hot.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = HeadTable.LATENCY + 2
        banks, groups = bank_count(parameters), group_count(parameters)
        super().__init__(
            {
                "begun": In(banks),
                "final": In(1),
                "visit": In(visit_layout(parameters)),
                "visited": Out(bank_bits(parameters)).array(banks),
                "newest": In(head_shape(parameters)).array(banks),
                "head": In(head_shape(parameters)),
                "queues": In(queues_layout(parameters)),
                "begin": Out(banks),
                "walks": Out(walks_layout(parameters)),
                "started": Out(groups).array(banks),
                "final_of": Out(groups),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            visited.eq(address)
            for visited, address in zip(self.visited, self.visit.addresses, strict=True)
        ]
        visit = {"visit": self.visit, "begun": self.begun, "final": self.final}
        for cycle in range(HeadTable.LATENCY):
            visit = self.delayed(m, visit, f"looked_up_{cycle}")
        # Entries since the oldest one that the probe sees; never more than the ring holds.
        stored = Signal.like(self.visit.tail, name="stored", reset_less=True)
        m.d.sync += stored.eq(self.head[: len(stored)] - visit["visit"].tail)
        looked_up = self.delayed(m, visit, "compared")
        walks = Signal.like(self.walks, reset_less=True)
        m.d.comb += self.walks.eq(walks)
        m.d.sync += [
            walks.probe.eq(looked_up["visit"].probe),
            walks.group.eq(looked_up["visit"].group),
            walks.queue.eq(Array(self.queues)[looked_up["visit"].group]),
            self.final_of.eq(looked_up["final"] << looked_up["visit"].group),
        ]
        for n, newest in enumerate(self.newest):
            self.elaborate_bank(m, n, newest, stored, looked_up, walks.entries[n])
        return m

    def delayed(self, m, visit, name):
        """Return the visit of the previous cycle."""
        later = delayed(m, visit, name, flags=("begun", "final"))
        return {**later, "visit": data.View(visit_layout(self.parameters), later["visit"])}

    def elaborate_bank(self, m, n, newest, stored, looked_up, entry):
        """Begin a walk in bank ``n`` if fewer than ``stored`` entries came after the head's."""
        later = Signal.like(newest, name=f"later_{n}", reset_less=True)  # newer entries
        found = Signal(slot_shape(self.parameters), name=f"found_{n}", reset_less=True)
        visit = looked_up["visit"]
        begins = Signal(name=f"begins_{n}")
        m.d.comb += begins.eq(looked_up["begun"][n] & (later < stored))
        m.d.sync += [
            later.eq(self.head + ~newest),
            found.eq(newest),
            self.begin[n].eq(begins),
            self.started[n].eq(begins << visit.group),
            entry.place.eq(found),
            entry.age.eq(stored + ~later),
            entry.bucket.eq(Cat(Const(n, ceil_log2(len(self.begun))), visit.addresses[n])),
        ]
