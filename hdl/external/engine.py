# SPDX-License-Identifier: Apache-2.0
"""Scan engine of a region whose window is in external memory."""

from amaranth import *
from amaranth.lib.wiring import connect, flipped

from hdl.scan.engine import ScanEngine
from hdl.streams.registers import StreamFork
from hdl.words.operands import empties_own_window

from .rows import RowStore

__all__ = ["ExternalEngine"]


class ExternalEngine(ScanEngine):
    """Compare every key of the window with every probe; the keys come from external memory.

    A :class:`hdl.external.rows.RowStore` takes the place of the key ring. It learns of a group
    when the group closes, and reads its rows ahead while the scanner is busy with the group before.
    The scanner reads a row when it is at hand. Everything else is as in a :class:`ScanEngine`.

    The engine is idle only when no write is under way, because the next window begins in the same
    rows.

    Latency: :attr:`latency` cycles, plus the rows of the span, plus the latency of the memory, from
    the probe that ends its group to its star, when the engine is idle. Throughput: that of a
    :class:`ScanEngine`, as far as the memory sends a row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, whose ``store`` is external.
    probe_side : int
        Side that probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    def __init__(self, parameters, *, probe_side):
        super().__init__(parameters, probe_side=probe_side)
        self._rows = RowStore(parameters)
        self.latency += self._rows.latency

    def ring(self):
        """Return the memory of the keys that are scanned."""
        return self._rows

    def elaborate_reading(self, m, ring):
        """Take the rows of a pass from the store, when they are at hand."""
        scanner = self._scanner
        restart = Signal()
        m.d.sync += restart.eq(self.configure & empties_own_window(self.control))
        m.d.comb += [
            scanner.room.eq(self._queue.room & ring.o.filled),
            ring.o.take.eq(scanner.reading),
            Value.cast(scanner.keys).eq(ring.o.row),
            ring.restart.eq(restart),
        ]
        connect(m, ring.axi, flipped(self.m_axi))
        m.d.sync += [
            self.activity.read.eq(ring.axi.rvalid & ring.axi.rready),
            self.activity.written.eq(ring.axi.wvalid & ring.axi.wready),
            self.activity.waiting.eq(scanner.running & self._queue.room & ~ring.o.filled),
            self.activity.refused.eq(ring.wrong),
        ]

    def crowded(self, ring):
        """Return whether too many rows are not written yet."""
        return ring.crowded

    def at_rest(self, ring, scanned):
        """Return whether also no key is on its way to the store, and no burst to the memory."""
        return scanned & ~(ring.store | ring.busy)

    def elaborate_passes(self, m, collector):
        """Tell the store of a group as soon as it closes, and the scanner when it is free."""
        group = collector.group
        m.submodules.groups = groups = StreamFork(group.payload.shape(), outputs=2)
        connect(m, group, groups.i)
        connect(m, groups.o[0], self._scanner.group)
        known, rows = groups.o[1], self._rows.passes
        m.d.comb += [
            rows.payload.first.eq(known.payload.first),
            rows.payload.stop.eq(known.payload.stop),
            rows.payload.empty.eq(
                (known.payload.ending.count == 0) | (known.payload.stop == known.payload.first)
            ),
            rows.valid.eq(known.valid),
            known.ready.eq(rows.ready),
        ]
        return self._scanner.running, self._scanner.oldest
