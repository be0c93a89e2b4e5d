# SPDX-License-Identifier: Apache-2.0
"""The scan by digests: slots and the engine that compares them."""

from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.parts import option, require
from hdl.predicates.band import Band
from hdl.predicates.cells import Cells
from hdl.predicates.equality import Equality, Remainders
from hdl.predicates.rule import MOST_DIGEST_BITS
from hdl.words.prepared import criterion_layout, span_layout, stored_layout

from .engine import Scan, ScanEngine
from .layouts import row_layout
from .ring import KeyRing, PassTable, SpanCount
from .scanner import RowScanner
from .verifier import Verifier

__all__ = ["DigestEngine", "DigestScan", "DigestScanner", "DigestSlot"]


class DigestSlot(wiring.Component):
    """Hold a digest while its group fills, then compare it with every digest that is read.

    The next digest may wait in the slot while the current one is compared. A slot that gets no
    probe of a group compares the last digest that it got.

    Latency: :attr:`latency` cycles from reading a row to its ``matches``: 2 for the key ring, which
    have passed when the row is in ``keys``, 1 for the :class:`hdl.scan.digests.DoubleCells` of
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
        rule = parameters.rule
        self._comparators = [
            rule.digest_comparator(parameters) for _ in range(parameters.engine.lanes)
        ]
        self.latency = KeyRing.LATENCY + rule.row_latency + self._comparators[0].latency
        super().__init__(
            {
                "add": In(1),
                "criterion": In(criterion_layout(parameters.scanned)),
                "begin_keys": In(1),
                "keys": In(row_layout(parameters, self._comparators[0].key.shape())),
                "matches": Out(parameters.engine.lanes),
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


class DigestScanner(RowScanner):
    """Read the span of a group row by row; its slots compare each digest with that of each probe.

    ``matches`` has one bit per lane, which is set if any probe has the lane's digest. The bits are
    not masked by the spans, so a candidate may lie outside the span of its probe, just as it may
    have another key.

    A range of a band that is wider than its cells says nothing about digests. In a pass with such a
    probe, every lane is a candidate.

    Latency, throughput: those of a :class:`hdl.scan.scanner.RowScanner`.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.

    Members
    -------
    span : In
        Span of the probe whose ``criterion``, a digest, a slot takes.
    every : In(1)
        For a band: a range of that probe is wider than its cells.

    All others are those of a :class:`hdl.scan.scanner.RowScanner`.
    """

    def __init__(self, parameters):
        scanned = parameters.scanned
        self._slots = [DigestSlot(parameters) for _ in range(parameters.engine.probes)]
        self._cells = parameters.rule.row_preparation(parameters)
        super().__init__(
            parameters,
            slot_latency=self._slots[0].latency + 1,
            prepares=self._cells.latency if self._cells else 0,
            key=stored_layout(scanned),
            criterion=criterion_layout(scanned),
            bits=1,
            span=In(span_layout(parameters)),
            **({"every": In(1)} if self._cells else {}),
        )

    def elaborate(self, platform):
        m = Module()
        take, step, row, last = self.elaborate_sequence(m)
        keys, more = self.keys, {}
        if self._cells:
            m.submodules.cells = self._cells
            m.d.comb += self._cells.cells.eq(self.keys)
            keys, more = self._cells.doubles, {"every": self.elaborate_every(m, take)}
        arriving = self.elaborate_stages(m, take, step, row, last, **more)[-1]
        compared = self.elaborate_comparing(m, arriving)
        for n, slot in enumerate(self._slots):
            m.submodules[f"slot_{n}"] = slot
            m.d.comb += [
                slot.add.eq(self.add_to[n]),
                slot.criterion.eq(self.criterion),
                slot.begin_keys.eq(arriving["begin"]),
                slot.keys.eq(keys),
            ]
        found = Signal(self.parameters.engine.lanes, reset_less=True)
        candidates = [slot.matches for slot in self._slots]
        if self._cells:
            every = Signal(name="compared_every", reset_less=True)
            m.d.sync += every.eq(arriving["every"])
            candidates.append(every.replicate(len(found)))
        with m.If(compared["step"]):
            m.d.sync += found.eq(reduce(or_, candidates))
        self.elaborate_outcome(m, compared, [found])
        m.submodules.count = count = SpanCount(self.parameters)
        m.d.comb += [
            count.add.eq(self.add_to.any()),
            count.span.eq(self.span),
            count.begin.eq(take),
            count.step.eq(step),
            self.comparisons.eq(count.comparisons),
        ]
        return m

    def elaborate_every(self, m, take):
        """Return whether the pass in progress has a probe that may match any digest."""
        collected, passing = Signal(), Signal()
        adds = self.add_to.any() & self.every
        with m.If(take):
            m.d.sync += [passing.eq(collected), collected.eq(adds)]
        with m.Else():
            m.d.sync += collected.eq(collected | adds)
        return passing


class DigestEngine(ScanEngine):
    """Compare the digest of every key of the window with the digest of every probe.

    The key ring and the scanner hold digests in place of keys. Candidate lanes go from the match
    queue to a :class:`Verifier`, which holds the whole keys, and back to the queue. Until a pass is
    verified, the :class:`PassTable` keeps its probes, and the ring keeps its keys.

    An equality and a band differ in what a digest is, in the comparator of digests and in that of
    the verifier. The digests of a band are cells (:mod:`hdl.predicates.cells`), which take one more
    cycle from the ring to the comparators.

    Latency: :attr:`latency` cycles, plus the rows of the span, from the probe that ends its group
    to its star, when the engine is idle and there is no candidate. Throughput: that of a
    :class:`ScanEngine`, as long as candidates are at least as many cycles apart as a group has
    probes; the arrival is 2, or 3 with cells.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.
    probe_side : int
        Has no effect.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    def __init__(self, parameters, *, probe_side):
        super().__init__(parameters, probe_side=probe_side)
        self._verifier = Verifier(parameters)
        self.latency += self._verifier.latency

    def scanner(self, probe_side):
        """Return the scanner of the engine."""
        return DigestScanner(self.parameters)

    def scanned(self, key):
        """Return what a pass compares of a key or a criterion: the digest."""
        return key.digest

    def elsewhere_wrong(self):
        """Return whether the ring of whole keys has shown a flipped bit."""
        return self._verifier.wrong

    def verified(self, key, layout):
        """Return what the verifier compares of a key or a criterion, in this layout."""
        if key.shape() == layout:
            return key
        return Cat(Value.cast(key[name]) for name, _ in layout)

    def elaborate_passes(self, m, collector):
        """Start the scan of a group when the pass table has room for it; connect the verifier."""
        m.submodules.passes = passes = PassTable(self.parameters, delay=self._verifier.probe_delay)
        m.submodules.verifier = verifier = self._verifier
        connect(m, passes.reading, verifier.passes)
        connect(m, self._queue.candidates, verifier.i)
        connect(m, verifier.o, self._queue.verified)
        waiting, group = collector.group, self._scanner.group
        m.d.comb += [
            group.payload.eq(waiting.payload),
            group.valid.eq(waiting.valid & passes.room),
            waiting.ready.eq(group.ready & passes.room),
            passes.add.eq(collector.add),
            passes.number.eq(collector.count),
            Value.cast(passes.probe.key).eq(
                self.verified(self.prepared.criterion, passes.probe.key.shape())
            ),
            passes.probe.span.eq(self.span),
            passes.began.eq(group.valid & group.ready),
            passes.first.eq(waiting.payload.first),
            passes.count.eq(waiting.payload.ending.count),
        ]
        if hasattr(self._scanner, "every"):
            m.d.comb += self._scanner.every.eq(self.prepared.criterion.every)
        return passes.pending, passes.oldest

    def elaborate_storing(self, m, ring):
        """Write the digest into the scanned ring and the key into the verifier's, a cycle later."""
        key, place, store = super().elaborate_storing(m, ring)
        m.d.comb += [
            Value.cast(self._verifier.key).eq(self.verified(key, self._verifier.key.shape())),
            self._verifier.place.eq(place),
            self._verifier.store.eq(store),
        ]
        return key, place, store


#: Rules of digests, by those of whole keys.
DIGESTED = {Band: Cells(), Equality: Remainders()}


@dataclass(frozen=True, kw_only=True)
class DigestScan(Scan):
    """A scan of digests: where two agree, the whole keys are compared.

    That takes fewer cells and wires than a :class:`~hdl.scan.engine.Scan`.

    Parameters
    ----------
    predicate : Band or Equality
    digest_bits : int
        Width of the digest of a key. That of an equality is a remainder
        (:func:`hdl.predicates.equality.split_key`), that of a band consists of cell numbers
        (:mod:`hdl.predicates.cells`).
    """

    kind = "digest-scan"
    title = "A scan of digests"
    reasons = Scan.reasons | {"comparator": "nothing is known of the keys of another predicate"}
    module = DigestEngine
    rate = "pairs decided"

    predicate: Band | Equality
    digest_bits: option(
        "bits of a key that a pass compares; all of it where these agree",
        range(1, MOST_DIGEST_BITS + 1),
    ) = field()  # no default, for other engines have an attribute of this name

    @property
    def rule(self):
        """The rule that a pass decides by: that of digests."""
        return DIGESTED[type(self.predicate)]

    def check(self, parameters):
        super().check(parameters)
        least, most, reason = self.predicate.digest_range(parameters)
        require(
            least <= self.digest_bits <= most,
            f"Parameter 'digest_bits' must be {least} to {most}, {reason}, not {self.digest_bits}",
        )

    def most_work(self, parameters):
        """Return the cycles until the star of a word: every key may agree with every probe."""
        candidates = parameters.ring_rows * self.lanes * self.probes
        return super().most_work(parameters, candidates)
