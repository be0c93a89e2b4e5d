# SPDX-License-Identifier: Apache-2.0
"""Adaptive precision: measure an accelerator while it joins, and insert PRECISION words."""

from collections.abc import Mapping
from fractions import Fraction

from host.control.precision_record import PeriodChange, PrecisionRecord
from host.device import Device
from host.device.growth import growth
from host.device.thread import Finished
from host.exchange.staging import Staging
from host.manifest import Manifest
from host.query.goals import Measurement
from host.query.ordering import Ordering
from host.query.period_control import PeriodControl
from host.results.decoder import ResultDecoder
from host.words import WordCodec

__all__ = ["AdaptivePrecision", "control_of"]

#: Groups of either side in a measurement: the last one, cut off, weighs a sixteenth at most.
GROUPS = 16
#: Number of intervals after which a measurement ends with fewer groups as well.
LONGEST = 64
#: Exchanges in an interval, and the fewest cycles of one.
EXCHANGES, FEWEST = 8, 64


def control_of(ordering: Ordering, manifest: Manifest) -> PeriodControl:
    """Return the controller of an adaptive ordering on such an accelerator."""
    assert ordering.hold is not None
    bound = min(ordering.period, 1 << manifest.probe_bits)
    return PeriodControl(ordering.hold, bound, probes=manifest.probes)


class AdaptivePrecision:
    """Chooses the period of the stars for one execution of an accelerator.

    A measurement begins with the mark that answers the last change of the period, when all that is
    under way belongs to the new one. It ends between two exchanges, after the interval of the
    ordering and :data:`GROUPS` groups of either side. Then the counters are read and
    :class:`~host.query.period_control.PeriodControl` is asked. A new period is set by a PRECISION
    word behind the first word that waits for the accelerator, which is the earliest place there is.

    A device without a clock finishes no measurement, so its period stays the first one.

    Parameters
    ----------
    device : Device
        The device; its counters are read between exchanges.
    ordering : Ordering
        An adaptive ordering.
    staging : Staging
        The words that wait; it holds those of the configuration.
    decoder : ResultDecoder
        The decoder, which closes the groups of tuples when they are sent.
    marks : int
        Marks that come before the first tuple.

    Attributes
    ----------
    chunk_cycles : int
        Largest number of cycles of an exchange.
    record : PrecisionRecord
        The decisions.
    """

    def __init__(
        self,
        device: Device,
        ordering: Ordering,
        staging: Staging,
        decoder: ResultDecoder,
        *,
        marks: int,
    ) -> None:
        self._device = device
        self._staging, self._decoder = staging, decoder
        self._codec = WordCodec(device.manifest)
        self._control = control_of(ordering, device.manifest)
        goal = self._control.goal
        self._interval = goal.interval(ordering.interval)
        self.chunk_cycles = max(FEWEST, self._interval // EXCHANGES)
        self.record = PrecisionRecord(str(goal), self._control.bound, self._control.period)
        self._marks = marks
        # A word of an earlier query may wait before those of the configuration.
        self._accepted = -int(self._codec.tuple_counts(staging.words).sum())
        self._began: Mapping[str, int] | None = None
        self._ended: Mapping[str, int] | None = None
        self._begin()

    def _begin(self) -> None:
        """Wait for the begin of a measurement."""
        self._began = None
        self._cycles, self._tuples = 0, 0
        self._flights, self._flight = 0, 0

    def settle(self, finished: Finished) -> None:
        """Take the outcome of an exchange whose words and marks :class:`Staging` knows already."""
        done = finished.done
        tuples = int(self._codec.tuple_counts(finished.words[: done.accepted]).sum())
        self._accepted += tuples
        self._decoder.stars.send(max(0, self._accepted))
        if self._began is not None:
            self._cycles += done.cycles
            self._tuples += tuples
        elif self._staging.marks >= self._marks and done.cycles:
            self._began = self._device.counters()

    def steer(self, cycle: int) -> None:
        """Change the period if the measurement under way is complete and calls for it.

        Called while the device is in no exchange.

        Parameters
        ----------
        cycle : int
            Cycles that the device has run.
        """
        if self._began is None or not self._is_complete:
            return
        before = self._control.period
        judgement = self._control.see(self._measured(self._began))
        self.record.judge(held=judgement.held)
        self._begin()
        if judgement.period == before:
            self._began = self._ended
            return
        self._marks += 1
        # The first word that waits stays before the change; see `Staging.insert`.
        fixed = int(self._codec.tuple_counts(self._staging.words[:1]).sum())
        place = max(0, self._accepted + fixed)
        self._decoder.stars.send(place)
        self._decoder.stars.change(Ordering(judgement.period))
        self._staging.insert(self._codec.pack_control("PRECISION", 0, judgement.period))
        self.record.change(PeriodChange(cycle, place, judgement.period))

    def note_flight(self) -> None:
        """Count the tuples under way, now that all results that have come are decoded."""
        if self._began is not None:
            self._flights += 1
            self._flight += max(0, self._accepted - self._decoder.complete)

    @property
    def _is_complete(self) -> bool:
        if self._cycles < self._interval:
            return False
        group = min(self._control.period, self._device.manifest.probes)
        return self._tuples >= 2 * GROUPS * group or self._cycles >= LONGEST * self._interval

    def _measured(self, began: Mapping[str, int]) -> Measurement:
        """Return what was measured since the counters showed ``began``."""
        now = self._device.counters()
        last = self._ended or began
        self._ended = now
        counted = growth(self._device.manifest, began, now)
        settling = growth(self._device.manifest, last, began)
        return Measurement(
            cycles=counted["cycles"],
            offered=_offered(counted),
            tuples=_taken(counted),
            in_flight=Fraction(self._flight, max(1, self._flights)),
            settling_offered=_offered(settling),
            settling_tuples=_taken(settling),
        )


def _offered(counted: Mapping[str, int]) -> int:
    """Return the cycles in which an input word was taken or had to wait."""
    return counted["ingress_busy"] + counted["ingress_stalled"]


def _taken(counted: Mapping[str, int]) -> int:
    return counted["tuples_r"] + counted["tuples_s"]
