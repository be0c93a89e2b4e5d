# SPDX-License-Identifier: Apache-2.0
"""Decisions while a join runs: precision, cores, and when tuples are offered."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
import math
from typing import TYPE_CHECKING

import numpy as np

from host.arrays import Int64s, UInt64s
from host.columns.times import TimePlan
from host.devices import Device
from host.errors import UsageError
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.protocol.segments import growth, round_size
from host.query.cores import Controller, CoreControl, Epoch, Observation
from host.query.ordering import Ordering, PeriodControl
from host.query.quantities import positive
from host.reference.window import CountWindow, Window
from host.session.cores import CoreContents, NewTurns, failed_cores, fewest_cores
from host.session.intake import Arrived
from host.session.records import (
    CoreChange,
    CoreDecision,
    ElasticRecord,
    Measured,
    PeriodChange,
    PrecisionRecord,
)

if TYPE_CHECKING:
    from host.session.decoder import ResultDecoder
    from host.session.staging import Staging

__all__ = [
    "AdaptivePrecision",
    "ElasticCores",
    "Measuring",
    "NoteDecision",
    "PACED_ROWS",
    "Pacing",
    "QUANTUM",
    "ROWS",
    "Steering",
    "control_of",
]

# Offer tuples to a device no earlier than they arrive by the time in their order column.

#: Cycles of an exchange at most: a tuple is offered, and its answer is seen, up to so many late.
QUANTUM = 128
#: Rows of a side that are staged at once, and words that wait: few, as a real stream has no later
#: ones to show.
PACED_ROWS = 4
#: Rows of a side that are staged at once where cores change, as a change comes before all that are
#: not staged yet.
ROWS = 256
#: What bounds nothing.
NO_LIMIT = 1 << 62


class Steering:
    """Something that observes a device while it joins, and decides how its next exchange goes.

    The base steers nothing. An execution tells all that it has, in the order of the methods.

    Parameters
    ----------
    accepted : int
        Tuples that the device has taken, less those of an earlier query that it takes first.

    Attributes
    ----------
    chunk_cycles : int
        Largest number of cycles of an exchange.
    low_water : int
        Number of waiting words below which more input is staged.
    counts_offered : bool
        Whether words that the device was offered are among these, because what is decided comes
        behind all of them.
    """

    chunk_cycles = NO_LIMIT
    low_water = NO_LIMIT
    counts_offered = False

    def __init__(self, accepted: int) -> None:
        self._accepted = accepted

    def admit(self, arrived: Arrived) -> None:
        """Look at tuples before the places of changes among them are decided."""

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""

    def begin(self, epoch: Epoch) -> None:
        """Take note of an epoch that begins with the next tuple that is staged."""

    def go_on(self, turns: NewTurns) -> None:
        """Take note of a failure: these cores store what is staged from now on."""

    def due_words(self, words: UInt64s, cycle: int) -> int | None:
        """Return how many of the waiting words may be offered at a cycle; None for all of them."""
        del words, cycle
        return None

    def settle(self, cycles: int, tuples: int) -> None:
        """Take an exchange, which took so many cycles and tuples; ``Staging`` knows it already."""
        del cycles
        self._accepted += tuples

    def steer(self, cycle: int) -> None:
        """Change what was observed to be wrong; the device has run so far, and is idle."""

    def note(self, complete: int, cycle: int) -> None:
        """Observe what is answered, now that all results that have come are decoded."""


class Pacing(Steering):
    """Arrivals of the tuples of one execution, in cycles of its device.

    A tuple arrives when the device has run as many cycles as the pace gives to its time, counted
    from timestamp zero.

    Parameters
    ----------
    pace : int, float or Fraction
        Clock cycles that pass while the left order column advances by one of its units.
    times : TimePlan
        How the order columns become timestamps.
    device : Device
        The device, which must have a clock.
    accepted : int
        See :class:`Steering`.
    measured : Measured
        Where the longest wait is noted.

    Attributes
    ----------
    cycles : float
        Clock cycles for a unit of the timestamps.
    waited : array of int64
        Cycles that each of the tuples waited that were answered last.
    """

    chunk_cycles = QUANTUM
    low_water = 2 * PACED_ROWS
    counts_offered = True

    def __init__(
        self,
        pace: Fraction | float,
        times: TimePlan,
        device: Device,
        accepted: int,
        measured: Measured,
    ) -> None:
        super().__init__(accepted)
        of_unit = positive(pace, "cycles for a unit of time")
        self.cycles = float(of_unit * times.divisor / times.factors[0])
        self._device, self._codec = device, WordCodec(device.manifest)
        self._due: Int64s = np.zeros(0, np.int64)
        self._first = 0  # number of the tuple at index 0
        self._answered = 0
        self.waited: Int64s = np.zeros(0, np.int64)
        self._measured = measured
        measured.longest_wait = 0

    def stage(self, arrived: Arrived) -> None:
        due = np.ceil(arrived.times.astype(np.float64) * self.cycles)
        self._due = np.concatenate([self._due, due.astype(np.int64)])

    def go_on(self, turns: NewTurns) -> None:
        if turns.first is not None:  # tuples that have arrived are sent again
            self._accepted -= self._first + len(self._due) - sum(turns.first.values())

    def arrived(self, cycle: int) -> int:
        """Return how many tuples have arrived, of those staged."""
        return self._first + int(np.searchsorted(self._due, cycle, side="right"))

    def due_words(self, words: UInt64s, cycle: int) -> int:
        ends = self._accepted + np.cumsum(self._codec.tuple_counts(words))
        return int(np.searchsorted(ends, self.arrived(cycle), side="right"))

    def note(self, complete: int, cycle: int) -> None:
        begin, self._answered = self._answered, max(self._answered, complete)
        self.waited = cycle - self._due[begin - self._first : self._answered - self._first]
        if len(self.waited):
            longest = self._measured.longest_wait or 0
            self._measured.longest_wait = max(longest, int(self.waited.max()))
        self._due = self._due[self._answered - self._first :]
        self._first = self._answered

    def settle(self, cycles: int, tuples: int) -> None:
        if not cycles:  # no tuple would ever arrive
            raise UsageError(
                f"Device {self._device.uri!r} has no clock, so its input cannot have a pace; use a "
                f"simulated device, or leave the pace out."
            )
        super().settle(cycles, tuples)


# Measure an accelerator in intervals, ask a control after each, and apply what it says.

#: Exchanges in an interval, and the fewest cycles of one.
EXCHANGES, FEWEST = 8, 64


@dataclass
class Interval:
    """What has been counted since an interval began.

    Parameters
    ----------
    before : mapping of str to int
        The counters of the device at the begin.
    staged : tuple of (int, int)
        Tuples of R and of S that had been staged by then.
    time : int
        Time of the last one of them.
    arrived : int
        Tuples that had arrived at the begin.
    cycles, tuples : int
        Cycles that have passed, and tuples that were taken in them.
    waits, waited : int
        Answers whose latencies are known, and the sum of these.
    """

    before: Mapping[str, int]
    staged: tuple[int, int] = (0, 0)
    time: int = 0
    arrived: int = 0
    cycles: int = 0
    tuples: int = 0
    waits: int = 0
    waited: int = 0
    _flight: int = 0  # tuples under way, summed over the looks at them
    _flights: int = 0

    def note_flight(self, under_way: int) -> None:
        """Count the tuples that are under way at some moment."""
        self._flights += 1
        self._flight += under_way

    @property
    def in_flight(self) -> Fraction:
        """Tuples under way, on average."""
        return Fraction(self._flight, max(1, self._flights))


class Measuring(Steering):
    """A steering that measures an accelerator in intervals, and asks a control after each.

    Its subclasses say when an interval begins and when it is over, what was observed in it, and
    how the setting that the control answers is applied.

    Parameters
    ----------
    device : Device
        The device; its counters are read between exchanges. Without a clock no interval ends.
    accepted : int
        See :class:`Steering`.
    shortest : int
        Least number of cycles of an interval.
    """

    def __init__(self, device: Device, accepted: int, shortest: int) -> None:
        super().__init__(accepted)
        self._device, self._shortest = device, shortest
        self.chunk_cycles = max(FEWEST, shortest // EXCHANGES)
        self._interval: Interval | None = None
        self._complete = 0  # tuples that are answered

    @property
    def _arrived(self) -> int:
        """Number of tuples that have arrived."""
        return self._accepted

    @property
    def _under_way(self) -> int:
        """Number of tuples that have arrived and are not answered."""
        return max(0, self._arrived - self._complete)

    def settle(self, cycles: int, tuples: int) -> None:
        super().settle(cycles, tuples)
        if self._interval is not None:
            self._interval.cycles += cycles
            self._interval.tuples += tuples
        elif cycles and self._may_begin():
            self._interval = self._begun()

    def steer(self, cycle: int) -> None:
        if self._interval is not None and self._is_over(self._interval):
            self._decide(self._interval, cycle)

    def note(self, complete: int, cycle: int) -> None:
        self._complete = complete
        if self._interval is not None:
            self._interval.note_flight(self._under_way)

    def _begun(self) -> Interval:
        """Return an interval that begins now."""
        return Interval(self._device.counters())

    def _is_over(self, interval: Interval) -> bool:
        """Return whether enough has been seen."""
        return interval.cycles >= self._shortest

    @abstractmethod
    def _may_begin(self) -> bool:
        """Return whether what is under way belongs to the setting in force."""

    @abstractmethod
    def _decide(self, interval: Interval, cycle: int) -> None:
        """Observe, ask the control, apply what it says, and begin the next interval or wait."""


# Adaptive precision: insert PRECISION words, or INNER words.

#: Groups of either side in a measurement: the last one, cut off, weighs a sixteenth at most.
GROUPS = 16
#: Number of intervals after which a measurement ends with fewer groups as well.
LONGEST = 64


def control_of(ordering: Ordering, manifest: Manifest) -> PeriodControl:
    """Return the control of an adaptive ordering on such an accelerator.

    Rounds are at first the longest ones, which are the fastest.
    """
    assert ordering.hold is not None
    if ordering.rounds:
        longest = round_size(manifest, ordering.rounds)
        return PeriodControl(ordering.hold, longest, probes=longest, powers=True)
    bound = min(ordering.period, 1 << manifest.probe_bits)
    return PeriodControl(ordering.hold, bound, probes=manifest.probes)


class AdaptivePrecision(Measuring):
    """Chooses the period of the stars, or the rounds, for one execution of an accelerator.

    A measurement begins with the mark that answers the last change of the period, when all that is
    under way belongs to the new one. It ends between two exchanges, after the interval of the
    ordering and :data:`GROUPS` groups of either side. A new period is set by a PRECISION word, or
    an INNER word, behind the first word that waits for the accelerator, which is the earliest place
    there is.

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
    accepted : int
        See :class:`Steering`.

    Attributes
    ----------
    record : PrecisionRecord
        The decisions.
    """

    def __init__(
        self,
        device: Device,
        ordering: Ordering,
        staging: "Staging",
        decoder: "ResultDecoder",
        *,
        marks: int,
        accepted: int,
    ) -> None:
        self._control = control_of(ordering, device.manifest)
        goal = self._control.goal
        super().__init__(device, accepted, goal.interval(ordering.interval))
        self._staging, self._decoder = staging, decoder
        self._codec = WordCodec(device.manifest)
        self._rounds = bool(ordering.rounds)
        unit = "stored tuples of a core" if self._rounds else "probes"
        self.record = PrecisionRecord(str(goal), self._control.bound, self._control.period, unit)
        self._first_mark = marks
        self._ended: Mapping[str, int] | None = None  # counters at the last measurement's end

    def settle(self, cycles: int, tuples: int) -> None:
        super().settle(cycles, tuples)
        self._decoder.stars.send(max(0, self._accepted))

    def _may_begin(self) -> bool:
        return self._staging.marks >= self._first_mark + self.record.changed

    def _is_over(self, interval: Interval) -> bool:
        group = 1 if self._rounds else min(self._control.period, self._device.manifest.probes)
        has_groups = interval.tuples >= 2 * GROUPS * group
        return super()._is_over(interval) and (
            has_groups or interval.cycles >= LONGEST * self._shortest
        )

    def _decide(self, interval: Interval, cycle: int) -> None:
        before = self._control.period
        now = self._device.counters()
        period = self._control.see(self._observed(interval, now))
        self.record.judge(held=self._control.held)
        self._ended, self._interval = now, None
        if period == before:
            self._interval = Interval(now)
            return
        # The first word that waits stays before the change; see `Staging.insert`.
        fixed = int(self._codec.tuple_counts(self._staging.words[:1]).sum())
        place = max(0, self._accepted + fixed)
        self._decoder.stars.send(place)
        self._decoder.stars.change(Ordering.outer() if self._rounds else Ordering(period))
        operation = "INNER" if self._rounds else "PRECISION"
        self._staging.insert(self._codec.pack_control(operation, 0, period))
        self.record.change(PeriodChange(cycle, place, period))

    def _observed(self, interval: Interval, now: Mapping[str, int]) -> Observation:
        manifest = self._device.manifest
        counted = growth(manifest, interval.before, now)
        settling = growth(manifest, self._ended or interval.before, interval.before)
        return Observation(
            cycles=counted["cycles"],
            offered=_offered(counted),
            tuples=_taken(counted),
            in_flight=interval.in_flight,
            settling_offered=_offered(settling),
            settling_tuples=_taken(settling),
        )


def _offered(counted: Mapping[str, int]) -> int:
    """Return the cycles in which an input word was taken or had to wait."""
    return counted["ingress_busy"] + counted["ingress_stalled"]


def _taken(counted: Mapping[str, int]) -> int:
    return counted["tuples_r"] + counted["tuples_s"]


# Elastic cores: observe an accelerator while it joins, and change the cores that store.

#: How much larger than observed the windows may become before cores are short of room.
RESERVE = Fraction(5, 4)

#: Called with every decision and every change, in order.
NoteDecision = Callable[[CoreDecision | CoreChange], None]


class ElasticCores(Measuring):
    """Chooses the cores for one execution of an accelerator; a schedule of its epochs.

    An observation begins when the device has taken all tuples that came before the last change, and
    ends between two exchanges, after the interval of the controller. Then the counters are read,
    and a :class:`~host.query.cores.CoreControl` is asked. Other cores store from the next
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
    accepted : int
        See :class:`Steering`.
    pacing : Pacing, optional
        When the tuples arrive, if the input has a pace; without, they arrive when they are taken,
        and the latency is that of Little's law: tuples under way over tuples per cycle.
    note : callable, optional
        Called with every decision and every change.

    Attributes
    ----------
    record : ElasticRecord
        The decisions.
    """

    low_water = ROWS
    counts_offered = True

    def __init__(
        self,
        device: Device,
        controller: Controller,
        window: Window,
        cores: Sequence[int],
        accepted: int,
        *,
        pacing: Pacing | None = None,
        note: NoteDecision | None = None,
    ) -> None:
        super().__init__(device, accepted, controller.interval)
        self._window, self._cores = window, tuple(cores)
        self._control = CoreControl(controller, len(self._cores))
        self._contents = CoreContents(device.manifest, window, self._cores)
        self._chosen = self._cores
        # What the schedule has answered last; None if that is not to take effect any more.
        self._told: tuple[int, ...] | None = self._cores
        self._least = fewest_cores(device.manifest, window)
        self._note, self._pacing = note, pacing
        self.record = ElasticRecord(str(controller), len(self._cores))
        self._begins = 0  # tuples that come before the next observation
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

    def begin(self, epoch: Epoch) -> None:
        self._contents.begin(epoch.cores)
        self._changed(epoch.after, epoch.cores)

    def go_on(self, turns: NewTurns) -> None:
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
        self._contents.stage(arrived)

    def settle(self, cycles: int, tuples: int) -> None:
        super().settle(cycles, tuples)
        self.record.cycles += cycles
        self.record.core_cycles += cycles * self._contents.on

    def _may_begin(self) -> bool:
        return self._accepted >= self._begins

    def _decide(self, interval: Interval, cycle: int) -> None:
        """Choose the cores from now on."""
        del cycle
        seen = self._observed(interval)
        active = self._control.see(seen)
        if active != len(self._chosen):
            self._chosen = self._cores[:active]
        self.record.observe(seen)
        if self._note is not None:
            self._note(CoreDecision(self.record.cycles, seen, active))
        self._interval = self._begun()

    def note(self, complete: int, cycle: int) -> None:
        if self._interval is not None and self._pacing is not None:
            self._interval.waits += len(self._pacing.waited)
            self._interval.waited += int(self._pacing.waited.sum())
        super().note(complete, cycle)

    @property
    def _arrived(self) -> int:
        if self._pacing is None:
            return self._accepted
        return max(self._accepted, self._pacing.arrived(self.record.cycles))

    def _begun(self) -> Interval:
        counts, time = self._contents.counts, self._contents.latest
        return Interval(self._device.counters(), counts, time, self._arrived)

    def _observed(self, interval: Interval) -> Observation:
        counted = growth(self._device.manifest, interval.before, self._device.counters())
        tuples, cycles = _taken(counted), counted["cycles"]
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
            latency=self._latency(interval, Fraction(tuples, cycles)),
        )

    def _latency(self, interval: Interval, rate: Fraction) -> int | None:
        """Return the mean latency in cycles; None if no tuple was answered.

        Without latencies of single tuples it is that of Little's law, at a ``rate`` of tuples per
        cycle that were taken. Where the input has a pace, tuples under way do not tell it.
        """
        if interval.waits:
            return math.ceil(Fraction(interval.waited, interval.waits))
        if self._pacing is not None or not rate:
            return None
        return math.ceil(interval.in_flight / rate)

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
