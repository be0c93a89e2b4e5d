# SPDX-License-Identifier: Apache-2.0
"""The place of one probe's digest in a scanner: a comparator per lane."""

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

    The next digest may already wait while the one before it is compared. A slot that gets no probe
    of a group compares the last digest that it got.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: the 2 of the key ring,
    which has passed when the row is in ``keys``, and 1 for the comparison. Throughput: ``lanes``
    digests per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        As a pass sees them (:attr:`hdl.parameters.JoinParameters.scanned`).

    Members
    -------
    add : In(1)
        Hold ``criterion`` as that of the next probe.
    criterion : In
    begin_keys : In(1)
        From the next cycle on, ``keys`` are of the next pass, and compared with the digest that
        waits. One that is added in this cycle waits for the pass after that.
    keys : In
        Digests of a row, as a :class:`KeyRing` gives them.
    matches : Out(lanes)
        Lanes of the row that was in ``keys`` a cycle ago that have the digest.
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
