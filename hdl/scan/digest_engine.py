# SPDX-License-Identifier: Apache-2.0
"""The scan engine of a region for digests: it scans for candidates and verifies them."""

from amaranth import *
from amaranth.lib.wiring import connect

from .digest_scanner import DigestScanner
from .engine import ScanEngine
from .pass_table import PassTable
from .verifier import Verifier

__all__ = ["DigestEngine"]


class DigestEngine(ScanEngine):
    """Compare the digest of every key of the window with that of every probe.

    What ring and scanner have for keys are digests. Lanes that they let through go from the queue
    to a :class:`Verifier`, which has the whole keys, and back; until then, the :class:`PassTable`
    keeps the probes of their pass, and the ring is kept.

    Latency: :attr:`latency` cycles, plus the rows of the span, from the probe that ends its group
    to its star, when the engine is idle and there is no candidate. Throughput: that of a
    :class:`ScanEngine`, as long as candidates are at least as many cycles apart as a group has
    probes.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; with digests.
    probe_side : int
        Does not matter.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    def __init__(self, parameters, *, probe_side):
        super().__init__(parameters, probe_side=probe_side)
        self._verifier = Verifier(parameters)
        self.latency += self._verifier.latency

    def scanner(self, probe_side):
        """Return what scans."""
        return DigestScanner(self.parameters)

    def scanned(self, key):
        """Return what a pass compares of a key or a criterion."""
        return key.digest

    def elaborate_passes(self, m, collector):
        """Let groups be scanned when there is room to keep them until they are verified."""
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
            passes.probe.key.eq(self.prepared.criterion),
            passes.probe.span.eq(self.span),
            passes.began.eq(group.valid & group.ready),
            passes.first.eq(waiting.payload.first),
            passes.count.eq(waiting.payload.ending.count),
        ]
        return passes.pending, passes.oldest

    def elaborate_storing(self, m, ring):
        """Write the digest into one ring and the key into the other, a cycle later."""
        key, place, store = super().elaborate_storing(m, ring)
        m.d.comb += [
            self._verifier.key.eq(key),
            self._verifier.place.eq(place),
            self._verifier.store.eq(store),
        ]
        return key, place, store
