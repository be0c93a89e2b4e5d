# SPDX-License-Identifier: Apache-2.0
"""Head lookup: turns the buckets that a probe visits into walks along their chains."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.streams.delay import delayed

from .head_table import HeadTable
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

__all__ = ["HeadLookup"]


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
