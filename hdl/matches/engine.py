# SPDX-License-Identifier: Apache-2.0
"""Scan engine of a join aggregate: a value beside each key, and a reducer behind the scan."""

from amaranth import *
from amaranth.utils import ceil_log2

from hdl.memory.columns import KeyColumn
from hdl.scan.engine import ScanEngine
from hdl.streams.queues import PointerQueue
from hdl.words.spans import pointer_layout

from .reducing_merger import ReducingQueue

__all__ = ["ReducingEngine"]


class ReducingEngine(ScanEngine):
    """Compare every key of the window with every probe, and reduce the values of its matches.

    A column of its own holds the value of each key, written in the cycle in which the key is. A
    pass is pending until the last of its values is read, and the ring keeps its rows for so long:
    a match waits in a queue after its row was scanned, and the next key in its place would bring
    another value.

    Latency: :attr:`latency` cycles, plus the rows of the span, from the probe that ends its group
    to the first value of the group, when the engine is idle. Throughput: that of a
    :class:`~hdl.scan.engine.ScanEngine`, if a group has no more lanes with matches, and no more
    words, than its pass has cycles.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.
    probe_side : int
        Side that probes, 0 for R; matters to a custom predicate only.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    #: Passes that may be pending, a power of two: about as many as rows can wait in the queue.
    PASSES = 16

    def queue(self, **shape):
        """Return the queue between the scanner and the results."""
        return ReducingQueue(self.parameters, **shape)

    def elaborate_passes(self, m, collector):
        """Start the scan of a group while passes may still become pending; note its first row."""
        row = pointer_layout(self.parameters)["row"].shape
        # One pass may begin before the fall of `room` is seen.
        m.submodules.passes = passes = PointerQueue(row, depth=self.PASSES, reserve=1)
        waiting, group = collector.group, self._scanner.group
        m.d.comb += [
            group.payload.eq(waiting.payload),
            group.valid.eq(waiting.valid & passes.room),
            waiting.ready.eq(group.ready & passes.room),
            passes.add.eq(group.valid & group.ready),
            passes.last.eq(waiting.payload.first),
            passes.take.eq(self._queue.finished),
        ]
        return passes.filled, passes.first

    def elaborate_storing(self, m, ring):
        """Write the value of a key into its column in the cycle in which the key is written."""
        key, place, store = super().elaborate_storing(m, ring)
        lanes, rows = self.parameters.lanes, self.parameters.ring_rows
        value = Signal.like(self._queue.value, reset_less=True)
        m.d.sync += value.eq(self.prepared.value)
        m.submodules.column = column = KeyColumn(width=len(value), depth=rows << ceil_log2(lanes))
        m.d.comb += [
            column.write.eq(store),
            column.place.eq(self.address_of(place)),
            column.row.eq(value),
            column.address.eq(self.address_of(self._queue.place)),
            self._queue.value.eq(column.data),
        ]
        return key, place, store

    def address_of(self, place):
        """Return the address of a place in the column: its lane and its row without wrap bit."""
        return Cat(place.lane, place.row[:-1])
