# SPDX-License-Identifier: Apache-2.0
"""Elastic cores: observe an accelerator while it joins, and change the cores that store."""

from collections.abc import Callable, Sequence
from fractions import Fraction
import math

from host.control.elastic_interval import Interval
from host.control.elastic_record import CoreChange, CoreDecision, ElasticRecord
from host.control.pacing import Int64s, Pacing
from host.cores.core_contents import CoreContents, fewest_cores
from host.cores.failed_cores import NewTurns, failed_cores
from host.device import Device
from host.device.growth import growth
from host.device.thread import Finished
from host.elastic import Controller, CoreControl, Observation
from host.exchange.staging import Staging
from host.query.epochs import Epoch
from host.query.segments import Segment
from host.reference.window import CountWindow, Window
from host.tuples.intake import Arrived
from host.words import WordCodec

__all__ = ["ROWS", "ElasticCores", "NoteDecision"]

#: Exchanges in an interval, and the fewest cycles of one.
EXCHANGES, FEWEST = 8, 64
#: Rows of a side that are staged at once, as a change comes before all that are not staged yet.
ROWS = 256
#: How much larger than observed the windows may become before cores are short of room.
RESERVE = Fraction(5, 4)

#: Called with every decision and every change, in order.
NoteDecision = Callable[[CoreDecision | CoreChange], None]


class ElasticCores:
    """Chooses the cores for one execution of an accelerator; a schedule of its epochs.

    An observation begins when the device has taken all tuples that came before the last change, and
    ends between two exchanges, after the interval of the controller. Then the counters are read,
    and a :class:`~host.elastic.core_control.CoreControl` is asked. Other cores store from the next
    tuple on that is staged: the first ones of the cores that have not failed.

    Before tuples of a time-based window are staged, it is computed whether the chosen cores have
    room for them. If not, all cores store from there on, whatever the controller says, or those
    that are not too full. A count-based window bounds the number of cores from below.

    When cores fail and the join goes on, they are chosen no more. If the controller asks for as
    many as before, an epoch with others in their place follows at once.

    A device without a clock gives no observation, so all cores stay in force.

    Parameters
    ----------
    device : Device
        The device; its counters are read between exchanges.
    controller : Controller
        What decides.
    window : CountWindow or TimeWindow
        Window of either side.
    cores : sequence of int
        The cores that take turns at first.
    staging : Staging
        The words that wait; it holds those of the configuration.
    pacing : Pacing, optional
        When the tuples arrive, if the input has a pace; without, they arrive when they are taken,
        and the latency is that of Little's law: tuples under way over tuples per cycle.
    note : callable, optional
        Called with every decision and every change.

    Attributes
    ----------
    chunk_cycles : int
        Largest number of cycles of an exchange.
    record : ElasticRecord
        The decisions.
    """

    def __init__(
        self,
        device: Device,
        controller: Controller,
        window: Window,
        cores: Sequence[int],
        staging: Staging,
        *,
        pacing: Pacing | None = None,
        note: NoteDecision | None = None,
    ) -> None:
        self._device, self._window, self._cores = device, window, tuple(cores)
        self._codec = WordCodec(device.manifest)
        self._control = CoreControl(controller, len(self._cores))
        self._contents = CoreContents(device.manifest, window, self._cores)
        self._chosen = self._cores
        # What the schedule has answered last; None if that is not to take effect any more.
        self._told: tuple[int, ...] | None = self._cores
        self._least = fewest_cores(device.manifest, window)
        self._note, self._pacing = note, pacing
        self._shortest = controller.interval
        self.chunk_cycles = max(FEWEST, controller.interval // EXCHANGES)
        self.record = ElasticRecord(str(controller), len(self._cores))
        # A word of an earlier query may wait before those of the configuration.
        self._accepted = -int(self._codec.tuple_counts(staging.words).sum())
        self._complete = 0  # tuples that are answered
        self._begins = 0  # tuples that come before the next observation
        self._interval: Interval | None = None
        self._peak = Fraction(0)  # highest rate so far, in tuples per cycle

    def next(self, staged: int) -> Epoch | None:
        """Return the epoch of the chosen cores, once."""
        if self._chosen == self._told:
            return None
        self._told = self._chosen
        return Epoch(self._chosen, after=staged)

    def admit(self, arrived: Arrived) -> None:
        """Choose other cores if the chosen ones have no room for tuples that will be staged next.

        These are all cores, or if some of them are too full, as many of the emptiest ones as have
        room. If there are none, all cores it is, and the device tells of the overflow.
        """
        if isinstance(self._window, CountWindow) or self._contents.fits(arrived, self._chosen):
            return
        emptiest = [core for core in self._contents.emptiest if core in self._cores]
        fitting = (
            tuple(sorted(emptiest[:count]))
            for count in range(len(emptiest), 0, -1)
            if self._contents.fits(arrived, sorted(emptiest[:count]))
        )
        self._chosen = next(fitting, self._cores)
        self._control.require(len(self._chosen))
        self.record.forced += 1

    def begin(self, segment: Segment) -> None:
        """Take note of the segment of an epoch that begins with the next tuple that is staged."""
        self._contents.begin(segment.cores)
        self._changed(segment.after, segment.cores)

    def go_on(self, turns: NewTurns) -> None:
        """Take note of the segment that follows a failure, behind all tuples that are staged."""
        staged, gone = sum(self._contents.counts), failed_cores(self._device)
        failed = tuple(core for core in self._cores if core in gone)
        self._cores = tuple(core for core in self._cores if core not in gone)
        self._control.lose(len(self._cores))
        # An epoch that has been told and has not begun would bring cores from before the failure.
        is_coming = self._told != tuple(self._contents.live)
        if turns.first is None:
            self._contents.begin(turns.live)
        else:
            self._contents.restart(turns.live, turns.first)
            self._accepted -= staged - sum(turns.first.values())  # these will be taken again
        self._told = None if is_coming else turns.live
        self._chosen = self._cores[: self._control.active]
        self._changed(staged, turns.live, failed)

    def _changed(self, place: int, cores: Sequence[int], failed: Sequence[int] = ()) -> None:
        """Note a change, behind which an observation begins."""
        self._interval, self._begins = None, place
        change = CoreChange(self.record.cycles, place, tuple(cores), tuple(failed))
        self.record.change(change)
        if self._note is not None:
            self._note(change)

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""
        self._contents.stage(arrived)

    def settle(self, finished: Finished) -> None:
        """Take the outcome of an exchange."""
        done = finished.done
        tuples = int(self._codec.tuple_counts(finished.words[: done.accepted]).sum())
        self._accepted += tuples
        self.record.cycles += done.cycles
        self.record.core_cycles += done.cycles * self._contents.on
        if self._interval is not None:
            self._interval.cycles += done.cycles
        elif self._accepted >= self._begins and done.cycles:
            self._interval = self._begun()

    def steer(self) -> None:
        """End the interval if it is long enough, and choose the cores from now on.

        Called while the device is in no exchange.
        """
        interval = self._interval
        if interval is None or interval.cycles < self._shortest:
            return
        seen = self._observed(interval)
        active = self._control.see(seen)
        if active != len(self._chosen):
            self._chosen = self._cores[:active]
        self.record.observe(seen)
        if self._note is not None:
            self._note(CoreDecision(self.record.cycles, seen, active))
        self._interval = self._begun()

    def note_flight(self, complete: int) -> None:
        """Count the tuples under way, now that all results that have come are decoded.

        ``complete`` is the number of tuples that are answered.
        """
        self._complete = complete
        if self._interval is not None:
            self._interval.note_flight(self._under_way)

    def note_waits(self, waited: Int64s) -> None:
        """Take the latencies of tuples that were answered, where the input has a pace."""
        if self._interval is not None:
            self._interval.note_waits(waited)

    @property
    def _arrived(self) -> int:
        """Number of tuples that have arrived."""
        if self._pacing is None:
            return self._accepted
        return max(self._accepted, self._pacing.arrived(self.record.cycles))

    @property
    def _under_way(self) -> int:
        """Number of tuples that have arrived and are not answered."""
        return max(0, self._arrived - self._complete)

    def _begun(self) -> Interval:
        """Return an interval that begins now."""
        counts, time = self._contents.counts, self._contents.latest
        return Interval(self._device.counters(), counts, time, arrived=self._arrived)

    def _observed(self, interval: Interval) -> Observation:
        counted = growth(self._device.manifest, interval.before, self._device.counters())
        tuples = counted["tuples_r"] + counted["tuples_s"]
        cycles = counted["cycles"]
        arrived = tuples if self._pacing is None else self._arrived - interval.arrived
        self._peak = max(self._peak, Fraction(arrived, cycles))
        held = self._contents.held
        return Observation(
            cores=len(self._contents.live),
            least=self._least_for(max(held)),
            cycles=cycles,
            busy=counted["region_busy"],
            stalled=counted["ingress_stalled"],
            output=counted["output_busy"] + counted["output_stalled"],
            tuples=tuples,
            arrived=arrived,
            pending=self._under_way,
            window=sum(held),
            ahead=self._ahead(interval, Fraction(arrived, cycles)),
            peak=math.ceil(self._peak * cycles),
            latency=interval.latency(Fraction(tuples, cycles), is_paced=self._pacing is not None),
        )

    def _least_for(self, held: int) -> int:
        """Return how few cores hold so many tuples of a side, and some more."""
        if isinstance(self._window, CountWindow):
            return self._least
        return math.ceil(held * RESERVE / self._device.manifest.storage.sub_window)

    def _ahead(self, interval: Interval, rate: Fraction) -> int:
        """Return how many tuples both windows hold once they are refilled at the present rate.

        With a pace, that is the rate of arrivals per cycle. Otherwise it is that of the tuples that
        were staged, over the time in their order column.
        """
        if isinstance(self._window, CountWindow):
            return sum(int(self._window.size) for count in self._contents.counts if count)
        if self._pacing is not None:
            return math.ceil(rate * int((int(self._window.lifespan) + 1) * self._pacing.cycles))
        passed = self._contents.latest - interval.time
        staged = sum(self._contents.counts) - sum(interval.staged)
        if passed <= 0:
            return sum(self._contents.held)
        return math.ceil(Fraction(staged * (int(self._window.lifespan) + 1), passed))
