# SPDX-License-Identifier: Apache-2.0
"""Slot for the digest of one probe in a scanner, with one comparator per lane."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.comparator import Comparator
from hdl.words.prepared import criterion_layout, stored_layout

from .key_ring import KeyRing
from .layouts import row_layout

__all__ = ["DigestSlot"]


class DigestSlot(wiring.Component):
    """Hold a digest while its group fills, then compare it with every digest that is read.

    The next digest may wait in the slot while the current one is compared. A slot that gets no
    probe of a group compares the last digest that it got.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: 2 for the key ring, which
    have passed when the row is in ``keys``, and 1 for the comparison. Throughput: ``lanes`` digests
    per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters as a pass sees them (:attr:`hdl.parameters.JoinParameters.scanned`).

    Members
    -------
    add : In(1)
        Hold ``criterion`` as that of the next probe.
    criterion : In
    begin_keys : In(1)
        From the next cycle on, ``keys`` belong to the next pass and are compared with the waiting
        digest. A digest that is added in this cycle waits for the pass after that.
    keys : In
        Digests of a row, as read from a :class:`KeyRing`.
    matches : Out(lanes)
        Lanes whose digest is that of the probe, of the row that was in ``keys`` a cycle ago.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._comparators = [Comparator(parameters, probe_side=0) for _ in range(parameters.lanes)]
        self.latency = KeyRing.LATENCY + self._comparators[0].latency
        super().__init__(
            {
                "add": In(1),
                "criterion": In(criterion_layout(parameters)),
                "begin_keys": In(1),
                "keys": In(row_layout(parameters, stored_layout(parameters))),
                "matches": Out(parameters.lanes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        waiting = Signal.like(self.criterion.digest, reset_less=True)
        digest = Signal.like(waiting)
        with m.If(self.add):
            m.d.sync += waiting.eq(self.criterion.digest)
        with m.If(self.begin_keys):
            m.d.sync += digest.eq(waiting)
        for lane, comparator in enumerate(self._comparators):
            m.submodules[f"comparator_{lane}"] = comparator
            m.d.comb += [
                comparator.key.eq(self.keys[lane]),
                comparator.criterion.digest.eq(digest),
                self.matches[lane].eq(comparator.match),
            ]
        return m
