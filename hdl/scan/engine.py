# SPDX-License-Identifier: Apache-2.0
"""Scan engine of a region: key ring, group collector, scanner and match queue."""

from dataclasses import dataclass, replace

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hdl.engine import OnChip, Search, engine_members, keep_from
from hdl.parts import AtLeast, Part, option, require
from hdl.predicates.band import Band
from hdl.predicates.equality import Equality
from hdl.predicates.own import Own
from hdl.words.prepared import stored_layout

from .ring import KeyRing
from .scanner import Scanner
from .serializers import GroupCollector, MatchQueue

__all__ = ["USUAL_LANES", "AnyScan", "Lanes", "Rounds", "Scan", "ScanEngine"]


#: Passes that can lie between a word and its star: of the group that is scanned, of the group that
#: waits, of the group that the word closes, and of one in each register before them.
PASSES = 5
#: Cycles on the way through the registers of a core.
WAY = 32


class ScanEngine(wiring.Component):
    """Compare every key of the window with every probe.

    Keys are stored in the :class:`KeyRing`. A probe, and the span of the window that it sees, go
    into the slot of the :class:`Scanner` that the :class:`GroupCollector` names. A closed group is
    scanned while later tuples are stored and collected. The ring has slack for those
    (``parameters.slack``), and ``occupied`` rises when the slack is used up.

    Latency: :attr:`latency` cycles, plus the rows of the span, from the probe that ends its group
    to its star, when the engine is idle. Throughput: 1 tuple per cycle; 1 group of probes per pass
    of ``max(rows, probes + scanner.arrival)`` cycles; the arrival is 2.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side that probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self._scanner = self.scanner(probe_side)
        self._queue = self.queue(
            in_flight=self._scanner.in_flight, bits=len(self._scanner.matches.matches)
        )
        # Collect and take the group (2), scan its rows, pass the scanner and the queue.
        self.latency = 2 + self._scanner.latency + self._queue.latency - 1
        super().__init__(engine_members(parameters))

    def scanner(self, probe_side):
        """Return the scanner of the engine."""
        return Scanner(self.parameters, probe_side=probe_side)

    def queue(self, **shape):
        """Return the queue between the scanner and the results."""
        return MatchQueue(self.parameters, **shape)

    def elaborate(self, platform):
        m = Module()
        # The scanner needs the slots of a group for `arrival` cycles after the transfer. A region
        # adds a probe two cycles after it saw `soon`, so the collector may hold one cycle fewer
        # than that.
        m.submodules.collector = collector = GroupCollector(
            self.parameters, hold=self._scanner.arrival - 1
        )
        m.submodules.ring = ring = self.ring()
        m.submodules.scanner = scanner = self._scanner
        m.submodules.queue = queue = self._queue

        connect(m, queue.results, flipped(self.results))
        m.d.comb += [
            self.soon.eq(collector.soon),
            collector.add.eq(self.probe),
            collector.span.eq(self.span),
            collector.second.eq(self.second),
            collector.stop.eq(self.stop),
            collector.close.eq(self.close),
            collector.ending.eq(self.ending),
            scanner.criterion.eq(self.scanned(self.prepared.criterion)),
            scanner.add_to.eq(collector.add_to),
            scanner.span.eq(self.span),
            queue.matches.eq(scanner.matches),
            queue.matches_valid.eq(scanner.matches_valid),
        ]
        m.d.sync += [
            self.activity.comparisons.eq(scanner.comparisons),
            self.activity.busy.eq(scanner.reading),
            self.activity.stalled.eq(scanner.running & ~queue.room),
        ]
        self.elaborate_reading(m, ring)
        if self.parameters.engine.parity:
            m.d.comb += ring.checked.eq(scanner.reading)
            m.d.sync += self.activity.wrong.eq(ring.wrong | self.elsewhere_wrong())
        pending, oldest = self.elaborate_passes(m, collector)
        m.d.comb += self.idle.eq(self.at_rest(ring, collector.ready & ~pending))
        collected = Mux(collector.count == 0, self.span.tail.row, collector.group.payload.first)
        keep_from(m, self, Mux(pending, oldest, collected), crowded=self.crowded(ring))
        self.elaborate_storing(m, ring)
        return m

    def ring(self):
        """Return the memory of the keys that are scanned."""
        return KeyRing(self.parameters, stored_layout(self.parameters.scanned))

    def elaborate_reading(self, m, ring):
        """Read the rows of a pass from the ring."""
        room = self._queue.room
        m.d.comb += [
            ring.address.eq(self._scanner.address),
            self._scanner.keys.eq(ring.keys),
            # A row that is being written is not read until its data are valid.
            self._scanner.room.eq(room & ~ring.written if ring.shared else room),
        ]

    def crowded(self, ring):
        """Return whether the memory itself lets stores wait; None if it never does."""
        return

    def at_rest(self, ring, scanned):
        """Return whether the engine is idle, given whether all groups are ``scanned``."""
        return scanned

    def scanned(self, key):
        """Return what a pass compares of a key or a criterion: all of it."""
        return key

    def elsewhere_wrong(self):
        """Return whether a memory other than the scanned ring has shown a flipped bit."""
        return Const(0)

    def elaborate_passes(self, m, collector):
        """Connect the collector to the scanner.

        Returns whether a pass is pending, and the first row of the oldest pending pass.
        """
        connect(m, collector.group, self._scanner.group)
        return self._scanner.running, self._scanner.oldest

    def elaborate_storing(self, m, ring):
        """Write the key a cycle later, so that the window tracker drives few registers.

        Returns the key, its place and the store strobe, all of them delayed.
        """
        key = Signal(stored_layout(self.parameters), reset_less=True)
        place = Signal(ring.place.shape(), reset_less=True)
        store = Signal()
        m.d.sync += [
            place.eq(self.span.head),
            store.eq(self.store),
            key.eq(self.prepared.key),
        ]
        m.d.comb += [ring.key.eq(self.scanned(key)), ring.place.eq(place), ring.store.eq(store)]
        return key, place, store


@dataclass(frozen=True, kw_only=True)
class Lanes(Part):
    """Keys that a region reads in a cycle.

    Parameters
    ----------
    lanes : int or None
        By default 1; of windows in external memory, as many as a beat holds.
    """

    kind = "lanes"
    fixed = {"rounds": False}

    lanes: option(
        "keys that a region reads each cycle; default: 1, or what a beat of external memory holds",
        AtLeast(1),
    ) = None


@dataclass(frozen=True, kw_only=True)
class Rounds(Lanes):
    """The same, so many that results can be sent in rounds of stored tuples (INNER).

    A star comes after each round. The number of lanes is a power of two.
    """

    kind = "rounds"
    fixed = {"rounds": True}

    def __post_init__(self):
        super().__post_init__()
        require(
            self.lanes is None or not self.lanes & (self.lanes - 1),
            f"Parameter 'rounds' needs 'lanes' to be a power of two, not {self.lanes}",
        )


#: What a scan reads by default.
USUAL_LANES = Lanes()


@dataclass(frozen=True, kw_only=True)
class AnyScan(Search):
    """What all scans are: they read every key of the window, and work with any predicate.

    Parameters
    ----------
    predicate : Band, Equality or Own
    read : Lanes or Rounds
        Keys that a region reads in a cycle.
    """

    fixed = {"engine": "scan", "store": "chip"}
    reasons = Search.reasons | {
        "tuples_per_word": "its passes take longer; with engine 'index', it may be 1 or 2"
    }

    predicate: Band | Equality | Own
    read: Lanes | Rounds = USUAL_LANES

    @property
    def lanes(self):
        """Keys that a region reads in a cycle."""
        return self.read.lanes

    @property
    def rounds(self):
        """Whether results can be sent in rounds."""
        return isinstance(self.read, Rounds)

    def most_lanes(self, parameters):
        """Return the number of lanes where none is given, if it need not be a power of two."""
        return 1

    def completed(self, parameters):
        part = super().completed(parameters)
        if self.lanes is not None:
            return part
        most = self.most_lanes(parameters)
        lanes = 1 << most.bit_length() - 1 if self.rounds else most
        return replace(part, read=replace(self.read, lanes=lanes))

    def most_work(self, parameters, candidates=0):
        """Return the cycles until the star of a word: passes read the whole ring at most."""
        return PASSES * (parameters.ring_rows + candidates + self.probes + WAY)


@dataclass(frozen=True, kw_only=True)
class Scan(AnyScan, OnChip):
    """A scan of whole keys in memories on the chip.

    Parameters
    ----------
    predicate, read
        As of :class:`AnyScan`; others as of :class:`hdl.engine.OnChip`.
    """

    kind = "scan"
    title = "A scan"
    module = ScanEngine
