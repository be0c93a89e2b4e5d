# SPDX-License-Identifier: Apache-2.0
"""Which cores store tuples: what they hold, which failed, and where epochs begin."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
import copy
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from host.arrays import Int64s, UInt64s
from host.columns.encoding import EncodingPlan
from host.devices import Device
from host.errors import DeviceError, EpochError, UsageError
from host.protocol.codecs import WordCodec
from host.protocol.configuration import segment_words
from host.protocol.manifest import Manifest
from host.protocol.segments import SEGMENTS, FullestCore, StorageSegments
from host.protocol.storage import StorageRule
from host.query.cores import Epoch, EpochSchedule, ListedEpochs
from host.reference.arrivals import Side
from host.reference.window import CountWindow, Window
from host.runtime import ColumnLog, Columns
from host.session.intake import NEVER, Arrived, SideTuples

__all__ = [
    "CoreContents",
    "EpochChanges",
    "NewTurns",
    "core_failure",
    "exclude",
    "failed_cores",
    "fewest_cores",
    "has_gates",
    "note_failed",
    "note_new",
    "participation",
]

# Which cores hold tuples of the windows, and whether further tuples would fit them.


def fewest_cores(manifest: Manifest, window: Window) -> int:
    """Return how few cores always hold a count-based window, however they change.

    That can be one more than there are: then no change is safe. For a time-based window it is 1,
    as its size is not known.
    """
    if not isinstance(window, CountWindow):
        return 1
    room = manifest.storage.sub_window - SEGMENTS  # each core can get a tuple more in each
    cores = manifest.storage.cores
    return min(cores + 1, -(-int(window.size) // room)) if room > 0 else cores + 1


class CoreContents:
    """Follows both windows of an execution as tuples are staged.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    window : CountWindow or TimeWindow
        Window of either side.
    cores : sequence of int
        The cores that take turns at first.

    Attributes
    ----------
    live : sequence of int
        The cores that take turns.
    """

    def __init__(self, manifest: Manifest, window: Window, cores: Sequence[int]) -> None:
        self._cores, self._room = manifest.storage.cores, manifest.storage.sub_window
        self._size: int | None = None
        self._lifespan = np.uint64(0)
        if isinstance(window, CountWindow):
            self._size = int(window.size)
        else:
            self._lifespan = np.uint64(window.lifespan)
        self._logs = {side: ColumnLog() for side in Side}
        self._rule = StorageRule.of(manifest.storage)
        self._segments = {side: StorageSegments(self._rule) for side in Side}
        self.live: Sequence[int] = ()
        self.begin(cores)

    def begin(self, cores: Sequence[int]) -> None:
        """Let other cores store the tuples that are staged from now on."""
        self.live = cores
        for side, segments in self._segments.items():
            segments.begin(self._logs[side].count, cores)

    def restart(self, cores: Sequence[int], first: Mapping[Side, int]) -> None:
        """Let these cores alone hold the tuples of each side from ``first`` on, and store others.

        The accelerator was cleared after a failure, and these tuples are sent again.
        """
        self.live = cores
        for side in Side:
            self._segments[side] = StorageSegments(self._rule)
            self._segments[side].begin(first[side], cores)

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""
        for side, times in _times(arrived).items():
            self._logs[side].append(Columns({"time": times}))
        for side, log in self._logs.items():
            oldest = self._oldest(side)
            log.forget(oldest)
            self._segments[side].forget(oldest)

    @property
    def held(self) -> tuple[int, int]:
        """Number of tuples in the windows of R and of S."""
        r, s = (self._logs[side].count - self._oldest(side) for side in Side)
        return r, s

    @property
    def latest(self) -> int:
        """Time of the last tuple; zero if there is none."""
        times = [log.at("time", log.count - 1) for log in self._logs.values() if log.count]
        return max(times, default=0)

    @property
    def counts(self) -> tuple[int, int]:
        """Tuples of R and of S that have been staged."""
        return self._logs[Side.R].count, self._logs[Side.S].count

    @property
    def on(self) -> int:
        """Number of cores that take turns, or hold a tuple of a window."""
        used = self._fullest > 0
        used[list(self.live)] = True
        return int(used.sum())

    @property
    def emptiest(self) -> list[int]:
        """All cores, by the tuples that each holds of the side of which it holds more."""
        order: list[int] = np.argsort(self._fullest, kind="stable").tolist()
        return order

    @property
    def _fullest(self) -> Int64s:
        """For each core, how many tuples it holds of the side of which it holds more."""
        every, most = np.arange(self._cores), np.zeros(self._cores, np.int64)
        for side, segments in self._segments.items():
            begin = np.full(self._cores, self._oldest(side))
            end = np.full(self._cores, self._logs[side].count)
            most = np.maximum(most, segments.held(begin, end, every))
        return most

    def fits(self, arrived: Arrived, cores: Sequence[int]) -> bool:
        """Return whether every core has room if ``cores`` store these tuples of a stream."""
        for side, times in _times(arrived).items():
            if not len(times):
                continue
            log, segments = self._logs[side], copy.deepcopy(self._segments[side])
            if list(cores) != list(self.live):
                segments.begin(log.count, cores)
            own = log.count + np.arange(len(times))
            core, _ = segments.locals(own)
            held = segments.held(self._oldest_beside(side, own, times), own, core)
            if (held >= self._room).any():
                return False
        return True

    def _oldest(self, side: Side) -> int:
        """Return the number of the oldest tuple in the window of a side."""
        log = self._logs[side]
        if self._size is not None:
            return max(0, log.count - self._size)
        if not log.count:
            return 0
        kept = log.part("time", log.kept, log.count)
        return log.kept + int(self._begin_of(kept, np.uint64(self.latest)))

    def _oldest_beside(self, side: Side, own: Int64s, times: UInt64s) -> Int64s:
        """Return the numbers of the oldest tuples of the side when each of ``own`` is stored."""
        if self._size is not None:
            return np.maximum(0, own - self._size)
        log = self._logs[side]
        stored = log.part("time", log.kept, log.count) if log.count else times[:0]
        every = np.concatenate([stored, times])
        return log.kept + self._begin_of(every, times)

    def _begin_of(self, times: UInt64s, now: UInt64s | np.uint64) -> Int64s:
        """Return the index of the first of ascending ``times`` that is in the window at ``now``."""
        least = now - np.minimum(now, self._lifespan)
        return np.searchsorted(times, least).astype(np.int64)


def _times(arrived: Arrived) -> dict[Side, UInt64s]:
    """Return the times of the tuples of each side."""
    return {side: tuples.times for side, tuples in arrived.sides.items()}


# Which cores of a device take part in a query, and the words that tell the device so.

_FAILED: "WeakKeyDictionary[Device, frozenset[int]]" = WeakKeyDictionary()


def has_gates(manifest: Manifest) -> bool:
    """Return whether the cores of an accelerator can be masked, and tell when they fail."""
    return "MASK" in manifest.operations


def failed_cores(device: Device) -> frozenset[int]:
    """Return the cores that have failed since the device was opened."""
    return _FAILED.get(device, frozenset())


def note_failed(device: Device, core: int) -> None:
    """Remember for later queries on the device that a core has failed."""
    _FAILED[device] = failed_cores(device) | {core}


def participation(device: Device) -> UInt64s:
    """Return the words that come first in a query: they mask the failed cores and no others."""
    codec = WordCodec(device.manifest)
    failed = failed_cores(device)
    words = [
        codec.pack_control("MASK" if core in failed else "UNMASK", value=core)
        for core in range(device.manifest.storage.cores)
    ]
    return np.concatenate(words)


def core_failure(device: Device, core: int, reason: str) -> DeviceError:
    """Return the error of a join that lacks the pairs of a failed core, and cannot go on."""
    return DeviceError(f"Core {core} of device {device.uri!r} failed. {reason}")


def note_new(device: Device, told: Iterable[int]) -> list[int]:
    """Remember the cores that results tell have failed; return those that were not known yet."""
    new = sorted(set(told) - failed_cores(device))
    for core in new:
        note_failed(device, core)
    return new


class NewTurns(NamedTuple):
    """Turns of the cores after a failure.

    Attributes
    ----------
    live : tuple of int
        The cores, in the order of their turns.
    first : dict of Side to int or None
        If the accelerator was cleared and tuples were sent again: the number of the first one of
        each side.
    """

    live: tuple[int, ...]
    first: dict[Side, int] | None = None


def exclude(
    device: Device,
    new: list[int],
    cores: Iterable[int],
    window: Window,
    *,
    others: Iterable[int] = (),
) -> tuple[list[int], UInt64s, UInt64s]:
    """Return how a device goes on without the cores that have failed.

    That are the cores that go on, in the order of their turns, the words that mask the others, and
    the words that begin a segment of the live cores.

    Parameters
    ----------
    device : Device
        The device.
    new : list of int
        The cores that have just failed, at least one; they are known to have failed.
    cores : iterable of int
        The cores that took turns so far.
    window : CountWindow or TimeWindow
        Window of either side.
    others : iterable of int
        Cores that took no turns, and take them from now on if those that are left do not suffice.

    Raises
    ------
    DeviceError
        If no core is left, or if the window does not fit the cores that are left.
    """
    gone = failed_cores(device)
    live = [core for core in cores if core not in gone]
    if len(live) < fewest_cores(device.manifest, window):
        live += [core for core in others if core not in gone and core not in live]
    if not live:
        raise core_failure(device, min(gone), "No core is left; reset the device.")
    codec = WordCodec(device.manifest)
    masks = np.concatenate([codec.pack_control("MASK", value=core) for core in new])
    try:
        segment = segment_words(device.manifest, live, window)
    except UsageError as error:
        raise core_failure(device, new[0], str(error)) from error
    return live, masks, segment


# The exact places at which epochs take effect among the tuples that are staged, and their rules.


class EpochChanges:
    """Keeps epochs until their gamma has passed, and cuts the tuples of an execution there.

    An epoch takes effect right before the first tuple that has passed its gamma. The ingress keeps
    the lists of cores of three segments, so while a count-based window holds tuples of the third
    segment before it, the epoch waits. Of several epochs whose gamma has passed, the last one takes
    effect, as in STRETCH, and the others never do. No pair depends on where an epoch takes effect.

    Epochs are numbered, and those that cannot take effect are refused. Cores of the device that
    have failed take no turns, whichever epoch names them.

    Parameters
    ----------
    device : Device
        The accelerator.
    plan : EncodingPlan
        Window and times of the join.
    schedule : EpochSchedule
        What decides the epochs.
    floor : callable
        See :meth:`host.session.intake.Intake.floor`.
    lists : int
        Lists that are used. With fewer than there are, one is free for a segment that cannot wait,
        because it follows a failure.

    Attributes
    ----------
    epochs : list of Epoch
        The epochs that have taken effect: ``after`` is the exact place, ``number`` the number.
    superseded : list of Epoch
        Epochs that never took effect, because a later one had passed its gamma as well.
    """

    def __init__(
        self,
        device: Device,
        plan: EncodingPlan,
        schedule: EpochSchedule,
        floor: Callable[[int], int],
        *,
        lists: int = SEGMENTS,
    ) -> None:
        self._device, self._storage = device, device.manifest.storage
        self._schedule, self._plan, self._floor = schedule, plan, floor
        window = plan.window
        self._size = int(window.size) if isinstance(window, CountWindow) else None
        self._counts = dict.fromkeys(Side, 0)  # tuples so far
        # Tuples of each side before the last segments, of which all lists but one are.
        self._none = (0,) * (lists - 1)
        self._before = dict.fromkeys(Side, self._none)
        self._last = 0  # number of the last epoch that was admitted
        self._coming: Epoch | None = None  # its gamma has not passed
        self._due: Epoch | None = None  # its gamma has passed; it waits for a list
        self._asked = -1  # place of the last question
        self._rule = StorageRule.of(device.manifest)
        self._fullest: dict[Side, FullestCore] = {}
        self._weigh_anew(self._live(range(self._storage.cores)), dict.fromkeys(Side, 0))
        self.epochs: list[Epoch] = []
        self.superseded: list[Epoch] = []

    def admit(self, epoch: Epoch, place: int | None = None) -> Epoch:
        """Return an epoch that has been decided, with its number and the cores that can store.

        Parameters
        ----------
        epoch : Epoch
            The epoch.
        place : int, optional
            Tuples that have been sent, for messages.

        Raises
        ------
        EpochError
            If its number is not above the last one; if it has no core, an unknown one, or one
            twice; or if an even share of a count-based window does not fit its cores.
        """
        number = self._last + 1 if epoch.number is None else epoch.number
        if number <= self._last:
            raise EpochError(
                number,
                f"its number is not above {self._last}, that of the epoch before it",
                "number epochs upwards from 1, or leave the numbers to the driver",
                place,
            )
        cores, live = tuple(epoch.cores), self._live(epoch.cores)
        known = all(0 <= core < self._storage.cores for core in cores)
        if not known or not live or len(set(cores)) < len(cores):
            raise self._no_cores(number, cores, place)
        if self._size is not None:
            self._require_room(number, live, -(-self._size // len(live)), place)
        self._last = number
        return Epoch(live, epoch.after, epoch.beyond, number)

    def _begun(self, epoch: Epoch) -> Epoch:
        """Weigh an epoch at the place where it is to take effect; return it as it does.

        Cores that have failed since it was admitted are left out.

        Raises
        ------
        EpochError
            If all of its cores have failed, or if a core would not have room for what a count-based
            window has of this epoch and of those before it.
        """
        assert epoch.number is not None
        live = self._live(epoch.cores)
        if not live:
            raise self._no_cores(epoch.number, epoch.cores, self._staged)
        for side, fullest in self._fullest.items():
            fullest.begin(self._counts[side], live)
            self._require_room(epoch.number, live, fullest.needed(self._counts[side]), self._staged)
        return replace(epoch, cores=live, after=self._staged)

    def _weigh_anew(self, live: tuple[int, ...], first: Mapping[Side, int]) -> None:
        """Weigh windows whose tuples from ``first`` on, by side, are in the cores of ``live``."""
        if self._size is None:
            return
        for side in Side:
            fullest = FullestCore(self._rule, self._size, self._storage.sub_window)
            if first[side] or len(live) < self._storage.cores:
                fullest.begin(first[side], live)
            self._fullest[side] = fullest

    def _live(self, cores: Iterable[int]) -> tuple[int, ...]:
        """Return those of some cores that have not failed."""
        failed = failed_cores(self._device)
        return tuple(core for core in cores if core not in failed)

    def _require_room(
        self, number: int, cores: Sequence[int], needed: int, place: int | None
    ) -> None:
        room = self._storage.sub_window
        if needed > room:
            raise EpochError(
                number,
                f"with a window of {self._size} tuples, one of its {len(cores)} cores would hold "
                f"{needed} tuples, and each has room for {room}",
                "keep more cores active, choose a smaller window, or build a bundle with a larger "
                "--sub-window",
                place,
            )

    def _no_cores(self, number: int, cores: Sequence[int], place: int | None) -> EpochError:
        return EpochError(
            number,
            f"it needs at least one core, each of 0 to {self._storage.cores - 1} at most once, "
            f"not {list(cores)}",
            "give it the numbers of the cores that are to be active",
            place,
        )

    @property
    def _staged(self) -> int:
        """Tuples of both sides so far."""
        return sum(self._counts.values())

    def cut(self, arrived: Arrived) -> Iterator[Arrived | Epoch]:
        """Yield the tuples, and between them each epoch that takes effect there.

        Raises
        ------
        EpochError
            If an epoch is refused; all tuples before that place have been yielded.
        """
        while arrived.count:
            self._ask()
            passed, free = self._passed(arrived), self._free(arrived)
            if self._due is None or (passed is not None and (free is None or passed <= free)):
                if passed is None:
                    break
                arrived = yield from self._advance(arrived, passed)
                if self._due is not None:
                    self.superseded.append(self._due)
                self._due, self._coming = self._coming, None
            elif free is not None:
                arrived = yield from self._advance(arrived, free)
                self.epochs.append(self._begun(self._due))
                self._keep_list()
                yield self.epochs[-1]
                self._due = None
            else:
                break
        if arrived.count:
            self._count(arrived)
            yield arrived

    def go_on(self, turns: NewTurns) -> None:
        """Take note of the segment that follows a failure, behind all tuples so far.

        It lasts until the next epoch, whose cores that have failed are left out. If the accelerator
        was cleared, all lists are free, and the tuples of the windows are in that segment.
        """
        if turns.first is not None:
            self._weigh_anew(turns.live, turns.first)
            self._before = dict.fromkeys(Side, self._none)
            return
        for side, fullest in self._fullest.items():
            fullest.begin(self._counts[side], turns.live)
        self._keep_list()

    def _advance(self, arrived: Arrived, count: int) -> Generator[Arrived, None, Arrived]:
        """Yield and count the first tuples; return those behind them."""
        first, rest = arrived.split(count)
        if first.count:
            self._count(first)
            yield first
        return rest

    def _count(self, arrived: Arrived) -> None:
        for side, tuples in arrived.sides.items():
            self._counts[side] += len(tuples.places)

    def _keep_list(self) -> None:
        """Keep the list of the segment that begins with the next tuple."""
        for side, count in self._counts.items():
            self._before[side] = (*self._before[side][1:], count)

    def _free(self, arrived: Arrived) -> int | None:
        """Return before which of the next tuples there is a free list; None if before none."""
        place = 0
        for side, (previous, *_) in self._before.items():
            if self._size is None or not previous:
                continue
            needed = previous + self._size - self._counts[side]
            if needed > 0:
                tuples = arrived.sides.get(side)
                if tuples is None or needed > len(tuples.places):
                    return None
                place = max(place, int(tuples.places[needed - 1]) + 1)
        return place if place < arrived.count else None

    def _ask(self) -> None:
        """Ask for the epoch that comes next, unless it is known."""
        place = self._staged
        # A list ends. Any other schedule could answer with the place at hand for ever.
        fresh = isinstance(self._schedule, ListedEpochs) or self._asked < place
        if self._coming is None and fresh:
            self._asked = place
            epoch = self._schedule.next(place)
            self._coming = None if epoch is None else self.admit(epoch, place)

    def _passed(self, arrived: Arrived) -> int | None:
        """Return the first tuple that has passed the gamma of the next epoch; None if none."""
        epoch = self._coming
        if epoch is None:
            return None
        place = max(0, epoch.after - self._staged)
        if epoch.beyond is not None:
            gamma = self._floor(self._plan.times.ticks(epoch.beyond))
            later = [
                int(tuples.places[first])
                for tuples in arrived.sides.values()
                if (first := self._later(tuples, gamma)) < len(tuples.places)
            ]
            place = max(place, min(later, default=arrived.count))
        return place if place < arrived.count else None

    @staticmethod
    def _later(tuples: SideTuples, gamma: int) -> int:
        """Return the first of a side's tuples whose timestamp is greater than gamma."""
        if gamma < 0:
            return 0
        return int(np.searchsorted(tuples.times, np.uint64(min(gamma, NEVER)), side="right"))
