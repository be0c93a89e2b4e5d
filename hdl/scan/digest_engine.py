# SPDX-License-Identifier: Apache-2.0
"""Scan engine of a region with digests: scans for candidates and verifies them."""

from amaranth import *
from amaranth.lib.wiring import connect

from hdl.words.cells import has_cells

from .digest_scanner import DigestScanner
from .engine import ScanEngine
from .pass_table import PassTable
from .verifier import Verifier

__all__ = ["DigestEngine"]


class DigestEngine(ScanEngine):
    """Compare the digest of every key of the window with the digest of every probe.

    The key ring and the scanner hold digests in place of keys. Candidate lanes go from the match
    queue to a :class:`Verifier`, which holds the whole keys, and back to the queue. Until a pass is
    verified, the :class:`PassTable` keeps its probes, and the ring keeps its keys.

    An equality and a band differ in what a digest is, in the comparator of digests and in that of
    the verifier. The digests of a band are cells (:mod:`hdl.words.cells`), which take one more
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
        if not has_cells(self.parameters):
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
        if has_cells(self.parameters):
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
