# SPDX-License-Identifier: Apache-2.0
"""Scan engine of a region whose window is in external memory."""

from dataclasses import dataclass, replace

from amaranth import *
from amaranth.lib.wiring import connect, flipped
from amaranth.utils import ceil_log2

from hdl.counters import ADDRESSES, Counter
from hdl.engine import ResultStreams
from hdl.memory.axi4 import ADDRESS_BITS, BaseAddress
from hdl.parts import option, require
from hdl.scan.engine import AnyScan, ScanEngine
from hdl.streams.registers import StreamFork
from hdl.words.operands import empties_own_window

from .rows import RowStore

__all__ = ["MEMORY", "MOST_LATENCY", "ExternalEngine", "ExternalScan"]

#: Bytes that a burst of AXI may have at most, and the numbers of its beats.
MOST_BURST_BYTES, BURSTS = 4096, tuple(1 << bits for bits in range(9))
#: Widths of beats that AXI allows, in bits, and the usual one.
WIDTHS, USUAL_WIDTH = tuple(1 << bits for bits in range(3, 11)), 512
#: Title of options.
MEMORY = "windows in external memory"
#: Rows of those on the chip that do not count for the bursts to external memory.
RECENT_MARGIN = 24
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


@dataclass(frozen=True, kw_only=True)
class ExternalScan(AnyScan):
    """A scan of windows in external memory, which each region reaches through an AXI4 port.

    A beat of the memory holds a row of keys. Timestamps stay on the chip.

    Parameters
    ----------
    predicate : Band, Equality or Own
    read : Lanes or Rounds
        Keys that a region reads in a cycle; by default as many as a beat holds.
    memory_width : int or None
        Bits of a beat, as AXI allows them: a power of two from 8 to 1024; by default 512, or more
        for a wider key.
    memory_burst : int
        Beats of a whole burst, a power of two. A burst has at most 256 beats and 4096 bytes.
    memory_latency : int
        Cycles from the request of a burst to its first beat that must not slow a pass down. So many
        rows can be outstanding.
    result_streams : int
        As of :class:`hdl.engine.OnChip`.
    """

    kind = "external-scan"
    title = "Store 'external'"
    fixed = {"engine": "scan", "store": "external"}
    store = "external"
    reasons = AnyScan.reasons | {
        "digest_bits": "whole keys that belong to a digest are read at random",
        "failure_cycles": "a core that is reset would forget transactions that are under way",
        "parity": "external memory has its own check bits",
        "clock_requests": "a core must answer its memory at any time",
        "value_bits": "values of a join aggregate are beside the keys, on the chip",
    }
    module = ExternalEngine
    has_memory = True
    counters = tuple(
        Counter(name, address, text) for address, (name, _, text) in enumerate(COUNTED, ADDRESSES)
    )
    events = {name: activity for name, activity, _ in COUNTED}

    memory_width: option(
        "bits of a beat of the memory, which holds a row of keys; default: 512, or for a key more",
        WIDTHS,
        group=MEMORY,
    ) = None
    memory_burst: option("beats of a whole burst to the memory", BURSTS, group=MEMORY) = 16
    memory_latency: option(
        "cycles of the memory's latency that reads ahead hide",
        range(MOST_LATENCY + 1),
        group=MEMORY,
    ) = 64
    result_streams: ResultStreams = 1

    def width(self, parameters):
        """Return the bits of a beat: those that are given, or what holds a key at the least."""
        bits = parameters.key_bits
        require(bits <= WIDTHS[-1], f"No beat holds a key of {bits} bits; AXI allows {WIDTHS[-1]}")
        usual = max(USUAL_WIDTH, 1 << ceil_log2(bits))
        return usual if self.memory_width is None else self.memory_width

    def most_lanes(self, parameters):
        return max(1, self.width(parameters) // parameters.key_bits)

    def completed(self, parameters):
        part = super().completed(parameters)
        return replace(part, memory_width=self.width(parameters))

    def check(self, parameters):
        super().check(parameters)
        width, burst = self.memory_width, self.memory_burst
        row = self.lanes * parameters.key_bits
        require(
            row <= width,
            f"A beat of {width} bits has no room for a row of {self.lanes} keys of"
            f" {parameters.key_bits} bits; set 'lanes' to at most {width // parameters.key_bits},"
            f" or 'memory_width' to at least {1 << ceil_log2(row)}",
        )
        require(
            burst * width // 8 <= MOST_BURST_BYTES,
            f"A burst of {burst} beats of {width} bits crosses a boundary of {MOST_BURST_BYTES}"
            f" bytes; set 'memory_burst' to at most {MOST_BURST_BYTES * 8 // width}",
        )
        place = BaseAddress.of(parameters)
        require(
            place.bits > 0,
            f"Windows of {1 << place.least_bit} bytes lie beyond addresses of {ADDRESS_BITS} bits;"
            " set 'sub_window' or 'cores' to less",
        )

    def least_rows(self, parameters):
        """Return as many rows as the chip holds of the ring."""
        return self.recent_rows

    @property
    def recent_rows(self):
        """Rows that the chip holds of a ring in external memory, a power of two.

        There are rows for two bursts, those that are stored while the first one is written, and
        some in which a region notices that stores have to wait
        (:data:`hdl.external.rows.MARGIN`).
        """
        meanwhile = -(-self.memory_latency // self.lanes)
        return 1 << ceil_log2(2 * self.memory_burst + meanwhile + RECENT_MARGIN)

    def described(self, parameters):
        """Describe the external memories: one port per region, with addresses from zero on."""
        beat_bytes = self.memory_width // 8
        memory = {
            "ports": [f"m_axi_{n}" for n in range(2 * parameters.cores)],
            "bytes": parameters.ring_rows * beat_bytes,
            "beat_bytes": beat_bytes,
            "key_bytes": self.lanes * parameters.key_bits / 8,
            "burst_beats": self.memory_burst,
            "latency": self.memory_latency,
        }
        return {"memory": memory}
