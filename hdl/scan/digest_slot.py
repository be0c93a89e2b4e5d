# SPDX-License-Identifier: Apache-2.0
"""Slot for the digest of one probe in a scanner, with one comparator per lane."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.comparison.cell_comparator import CellComparator
from hdl.comparison.comparator import Comparator
from hdl.words.cells import digest_parts, has_cells
from hdl.words.prepared import criterion_layout

from .double_cells import DoubleCells
from .key_ring import KeyRing
from .layouts import row_layout

__all__ = ["DigestSlot"]


def digest_comparator(parameters):
    """Return a comparator of digests: of cells for a band, of remainders for an equality."""
    if has_cells(parameters):
        return CellComparator(digest_parts(parameters))
    return Comparator(parameters.scanned, probe_side=0)


class DigestSlot(wiring.Component):
    """Hold a digest while its group fills, then compare it with every digest that is read.

    The next digest may wait in the slot while the current one is compared. A slot that gets no
    probe of a group compares the last digest that it got.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: 2 for the key ring, which
    have passed when the row is in ``keys``, 1 for the :class:`hdl.scan.double_cells.DoubleCells` of
    a band, and 1 for the comparison. Throughput: ``lanes`` digests per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.

    Members
    -------
    add : In(1)
        Hold ``criterion`` as that of the next probe.
    criterion : In
    begin_keys : In(1)
        From the next cycle on, ``keys`` belong to the next pass and are compared with the waiting
        digest. A digest that is added in this cycle waits for the pass after that.
    keys : In
        Digests of a row, as read from a :class:`KeyRing`; for a band, the double cells of the row.
    matches : Out(lanes)
        Lanes whose digest is that of the probe, of the row that was in ``keys`` a cycle ago.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._comparators = [digest_comparator(parameters) for _ in range(parameters.lanes)]
        prepares = DoubleCells.LATENCY if has_cells(parameters) else 0
        self.latency = KeyRing.LATENCY + prepares + self._comparators[0].latency
        super().__init__(
            {
                "add": In(1),
                "criterion": In(criterion_layout(parameters.scanned)),
                "begin_keys": In(1),
                "keys": In(row_layout(parameters, self._comparators[0].key.shape())),
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
