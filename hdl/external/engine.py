# SPDX-License-Identifier: Apache-2.0
"""Scan engine of a region whose window is in external memory."""

from amaranth import *
from amaranth.lib.wiring import connect, flipped
from amaranth.utils import ceil_log2

from hdl.counters import ADDRESSES, Counter
from hdl.engine import require, require_values
from hdl.memory.axi4 import ADDRESS_BITS, BaseAddress
from hdl.scan.engine import ScanEngine
from hdl.streams.registers import StreamFork
from hdl.words.operands import empties_own_window

from .rows import RowStore

__all__ = ["MOST_LATENCY", "ExternalEngine"]

#: Bytes that a burst of AXI may have at most, and its beats.
MOST_BURST_BYTES, MOST_BURST_BEATS = 4096, 256
#: Widest beat, in bits.
MOST_WIDTH = 1024
#: Longest latency of a memory, in cycles, that the chip has a queue for.
MOST_LATENCY = 1 << 14
#: What is counted besides, and which activity of a region that is.
COUNTED = (
    ("memory_reads", "read", "beats read from external memory, summed over all regions"),
    ("memory_writes", "written", "beats written to external memory, likewise"),
    ("memory_waits", "waiting", "cycles in which a region's pass waited for a row, likewise"),
    ("memory_errors", "refused",
     "beats and bursts that a memory answered with an error, likewise"),
)  # fmt: skip


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

    own = ("memory_width", "memory_burst", "memory_latency")
    has_memory = True
    counters = tuple(
        Counter(name, address, text) for address, (name, _, text) in enumerate(COUNTED, ADDRESSES)
    )
    events = {name: activity for name, activity, _ in COUNTED}

    @classmethod
    def check(cls, parameters):
        rules = {
            "engine": ("scan", "an index reads its memory at random, which no burst can serve"),
            "digest_bits": (None, "whole keys that belong to a digest are read at random"),
            "failure_cycles": (
                0, "a core that is reset would forget transactions that are under way"
            ),
            "parity": (False, "external memory has its own check bits"),
            "clock_requests": (False, "a core must answer its memory at any time"),
        }  # fmt: skip
        require_values(parameters, "Store 'external'", rules)
        check_memory(parameters)
        super().check(parameters)

    @classmethod
    def least_rows(cls, parameters):
        """Return as many rows as the chip holds of the ring."""
        return parameters.recent_rows

    @classmethod
    def described(cls, parameters):
        """Describe the external memories: one port per region, with addresses from zero on."""
        beat_bytes = parameters.memory_width // 8
        memory = {
            "ports": [f"m_axi_{n}" for n in range(2 * parameters.cores)],
            "bytes": parameters.ring_rows * beat_bytes,
            "beat_bytes": beat_bytes,
            "key_bytes": parameters.lanes * parameters.key_bits / 8,
            "burst_beats": parameters.memory_burst,
            "latency": parameters.memory_latency,
        }
        return {"memory": memory}

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


def check_memory(parameters):
    """Check that an AXI4 port can have these beats and bursts, and that a beat holds a row."""
    width, burst = parameters.memory_width, parameters.memory_burst
    require(
        8 <= width <= MOST_WIDTH and not width & (width - 1),
        f"Parameter 'memory_width' must be a power of two from 8 to {MOST_WIDTH}, not {width}",
    )
    row = parameters.lanes * parameters.key_bits
    require(
        row <= width,
        f"A beat of {width} bits has no room for a row of {parameters.lanes} keys of"
        f" {parameters.key_bits} bits; set 'lanes' to at most {width // parameters.key_bits}, or"
        f" 'memory_width' to at least {1 << ceil_log2(row)}",
    )
    require(
        burst <= MOST_BURST_BEATS and not burst & (burst - 1),
        f"Parameter 'memory_burst' must be a power of two of at most {MOST_BURST_BEATS} beats, not"
        f" {burst}",
    )
    require(
        burst * width // 8 <= MOST_BURST_BYTES,
        f"A burst of {burst} beats of {width} bits crosses a boundary of {MOST_BURST_BYTES} bytes;"
        f" set 'memory_burst' to at most {MOST_BURST_BYTES * 8 // width}",
    )
    place = BaseAddress.of(parameters)
    require(
        place.bits > 0,
        f"Windows of {1 << place.least_bit} bytes lie beyond addresses of {ADDRESS_BITS} bits; set"
        " 'sub_window' or 'cores' to less",
    )
    require(
        parameters.memory_latency <= MOST_LATENCY,
        f"Parameter 'memory_latency' must be at most {MOST_LATENCY} cycles, not"
        f" {parameters.memory_latency}",
    )
