# SPDX-License-Identifier: Apache-2.0
"""Head table: the place of the newest entry of every bucket."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .head_bank import HeadBank
from .layouts import bank_bits, bank_count, head_shape

__all__ = ["HeadTable"]


class HeadTable(wiring.Component):
    """A table of one head per bucket, split into banks by the lowest bits of the bucket number.

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
    bucket : In(bucket_width)
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
                "bucket": In(parameters.bucket_width),
                "head": In(head),
                "previous": Out(head),
                "visited": In(bank_bits(parameters)).array(banks),
                "newest": Out(head).array(banks),
                **({"visits": In(banks), "wrong": Out(1)} if parameters.parity else {}),
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
                parity=self.parameters.parity,
            )
            m.d.comb += [
                bank.store.eq(self.store & (own == n)),
                bank.bucket.eq(self.bucket[len(own) :]),
                bank.head.eq(self.head),
                bank.visited.eq(self.visited[n]),
                self.newest[n].eq(bank.newest),
            ]
            previous.append(bank.previous)
            wrong.append(bank.wrong if self.parameters.parity else Const(0))
            if self.parameters.parity:
                m.d.comb += bank.visits.eq(self.visits[n])
        m.d.comb += self.previous.eq(Array(previous)[stored] if banks > 1 else previous[0])
        if self.parameters.parity:
            m.d.comb += self.wrong.eq(Cat(wrong).any())
        return m
