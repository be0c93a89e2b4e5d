# SPDX-License-Identifier: Apache-2.0
"""Input words on their way into a device, and what an index is fitted to before they are sent."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from host.arrays import UInt64s
from host.columns.encoding import EncodingPlan
from host.devices import Device
from host.protocol.cells import fitted_plan
from host.protocol.configuration import coordinate_words
from host.protocol.manifest import Manifest
from host.reference.window import TimeWindow
from host.session.intake import Arrived

__all__ = [
    "HashWatch",
    "Staging",
    "fitted_words",
    "hash_choice",
]

# Input words on their way into a device, and what a device still owes after an early close.


@dataclass(frozen=True)
class _Debt:
    """What an execution left in a device when it was closed before its end.

    ``marks`` is the number of marks under way. ``word``, if any, was offered to the device and must
    be offered again; ``answered`` says whether it is answered by a mark itself.
    """

    marks: int
    word: UInt64s | None
    answered: bool


_DEBTS: "WeakKeyDictionary[Device, _Debt]" = WeakKeyDictionary()


class Staging:
    """The words to send, in order, in one area that is filled from front to end.

    Words are written where they are offered from: :meth:`reserve` room, fill it, and :meth:`add`
    the words. Only when the area is full are the waiting words copied, to the front of a new area.
    A caller that adds words while few are waiting copies few. Words that were offered stay in the
    old area as well, where the device can read them. There are two at most, which keep their size
    as long as no more words are added than there is :attr:`room` for.

    Parameters
    ----------
    device : Device
        Device that receives the words.
    columns : int
        Number of 64-bit numbers in a word.
    words : int
        Number of words in an area.

    Attributes
    ----------
    inherited : int
        Marks of an earlier execution, which come first.
    due : int
        Marks that answer accepted words and have not arrived.
    marks : int
        Marks that have arrived.
    moved : int
        Words that had to be copied.
    """

    def __init__(self, device: Device, columns: int, words: int = 1 << 16) -> None:
        self._device = device
        self._area = device.allocate((words, columns))
        self._begin, self._end = 0, 0  # range of the waiting words
        self._offered = 0  # how many of these are offered to the device
        self._answered: deque[int] = deque()  # numbers of the words that are answered by a mark
        self._accepted = 0
        self.due = 0
        self.marks = 0
        self.moved = 0
        debt = _DEBTS.pop(device, _Debt(0, None, False))
        if debt.word is not None:
            self.append(debt.word, marks=int(debt.answered))
        self.due += debt.marks
        self.inherited = debt.marks + debt.answered

    @property
    def waiting(self) -> int:
        """Number of words that the device has not accepted yet."""
        return self._end - self._begin

    @property
    def room(self) -> int:
        """Number of words that can be added without a larger area."""
        return len(self._area) - self.waiting - 1  # one is for `insert`

    @property
    def kept_back(self) -> int:
        """Number of waiting words that have not been offered."""
        return self.waiting - self._offered

    @property
    def outstanding(self) -> int:
        """Number of marks that answer the words so far and have not arrived."""
        return self.due + len(self._answered)

    def reserve(self, count: int) -> UInt64s:
        """Return room for ``count`` words behind those that wait; its contents are undefined."""
        if self._end + count > len(self._area):
            waiting = self.words
            length = len(self._area)
            needed = 1 + len(waiting) + count  # one word of room at the front is for `insert`
            if needed > length:
                length = 2 * needed
            self._area = self._device.allocate((length, self._area.shape[1]))
            self._area[1 : 1 + len(waiting)] = waiting
            self.moved += len(waiting)
            self._begin, self._end = 1, 1 + len(waiting)
        return self._area[self._end : self._end + count]

    def add(self, count: int, marks: int = 0) -> None:
        """Add ``count`` words written into reserved room; the last ``marks`` get a mark each."""
        self._end += count
        total = self._accepted + self.waiting
        self._answered.extend(range(total - marks, total))

    def append(self, words: UInt64s, marks: int = 0) -> None:
        """Add a copy of ``words``, the last ``marks`` of which are answered by a mark each."""
        self.reserve(len(words))[:] = words
        self.add(len(words), marks)

    def insert(self, word: UInt64s) -> None:
        """Insert a copy of a word that is answered by a mark, as far to the front as it can stand.

        That is behind the first waiting word, because a word that was offered to a device is
        offered until it is accepted. A second word may be inserted when the last one has been
        accepted. No words may be offered at that moment.
        """
        assert not self._offered
        if not self.waiting:
            self.append(word, marks=1)
            return
        # The device may still read the accepted words in front of those that wait.
        length = max(len(self._area), 1 + self.waiting)
        words, self._area = self.words, self._device.allocate((length, len(word[0])))
        self._area[: 1 + len(words)] = np.concatenate([words[:1], word, words[1:]])
        self.moved += len(words)
        self._begin, self._end = 0, 1 + len(words)
        first = [number for number in self._answered if number == self._accepted]
        later = [number + 1 for number in self._answered if number > self._accepted]
        self._answered = deque([*first, self._accepted + 1, *later])

    @property
    def words(self) -> UInt64s:
        """The words that the device has not accepted yet."""
        return self._area[self._begin : self._end]

    def offer(self) -> UInt64s:
        """Return the waiting words, which the device may read until :meth:`accept` is called."""
        self._offered = self.waiting
        return self.words

    def accept(self, count: int) -> None:
        """Record that the device accepted ``count`` of the offered words and reads no longer."""
        self._offered = 0
        self._accepted += count
        self._begin += count
        while self._answered and self._answered[0] < self._accepted:
            self._answered.popleft()
            self.due += 1

    def see_marks(self, count: int) -> None:
        """Record that the device sent ``count`` marks."""
        self.due -= count
        self.marks += count

    def abandon(self) -> None:
        """Leave a note for the device's next user if a word or a mark is under way."""
        word = self.offer()[:1].copy() if self.waiting else None
        answered = bool(self._answered) and self._answered[0] == self._accepted
        if self.due or word is not None:
            _DEBTS[self._device] = _Debt(self.due, word, answered)


# Fit the cells of an index to the first tuples of a join, before these are sent.
#
# How close together tuples lie is not known when a join is planned. It is when the first batch
# has been encoded, and the windows are still empty then: words that change the cells, which empty
# the windows, cost nothing but themselves.

#: Fewer tuples say too little, and are joined at once anyway.
LEAST_TUPLES = 1 << 12
#: Tuples that are looked at.
SAMPLE = 1 << 13


def fitted_words(
    manifest: Manifest, plan: EncodingPlan, arrived: Arrived, choice: int
) -> UInt64s | None:
    """Return the control words that fit the cells to a join's first tuples, if there are better.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    plan : EncodingPlan
        Encoding of rows as tuples.
    arrived : Arrived
        The first tuples.
    choice : int
        Choice of the index's hash seeds.
    """
    if not manifest.has_grid or arrived.count < LEAST_TUPLES:
        return None
    fitted = fitted_plan(
        manifest,
        plan.bounds,
        plan.spreads,
        choice,
        _sample(arrived),
        _stored(manifest, plan, arrived),
    )
    return None if fitted is None else coordinate_words(manifest, fitted)


def _sample(arrived: Arrived) -> Mapping[str, UInt64s]:
    """Return the key fields of some tuples of both sides."""
    step = -(-arrived.count // SAMPLE)
    parts: dict[str, list[UInt64s]] = {}
    for tuples in arrived.sides.values():
        for name, values in tuples.batch.keys.items():
            parts.setdefault(name, []).append(values.block(slice(tuples.begin, tuples.end))[::step])
    return {name: np.concatenate(own) for name, own in parts.items()}


def _stored(manifest: Manifest, plan: EncodingPlan, arrived: Arrived) -> int:
    """Return about how many tuples of a side the window will hold."""
    if not isinstance(plan.window, TimeWindow):
        return int(plan.window.size)
    most = 0.0
    for tuples in arrived.sides.values():
        times = tuples.times
        if len(times):
            passed = max(1, int(times[-1]) - int(times[0]))
            most = max(most, len(times) * int(plan.window.lifespan) / passed)
    return min(int(most), manifest.capacity)


# Choose other hash seeds for an index after a join that read many entries for few results.
#
# A change of seeds empties both windows. It is therefore made with the configuration of the next
# join on the device, when the windows are empty anyway; the next join is often the next partition
# or micro-batch of the same query. A change in the middle of a join would require sending both
# windows again, and leaving out the pairs that their tuples find among themselves.

#: Factor by which a probe may read more entries than with a good hash.
PATIENCE = 4
#: Least number of probes from which a conclusion is drawn.
LEAST_PROBES = 1 << 12

_choices: dict[str, int] = {}


def hash_choice(device: Device) -> int:
    """Return the choice of seeds that joins on this device's URI now use in this process."""
    return _choices.get(device.uri, 0)


class HashWatch:
    """Watches one join on an index engine, and may choose other seeds for the next one.

    Parameters
    ----------
    device : Device
        An open device that is idle.

    Attributes
    ----------
    choice : int
        The choice of seeds that the join uses.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._before = self._counters()
        self.choice = hash_choice(device)

    def _counters(self) -> Mapping[str, int]:
        has_seeds = "COORDINATE" in self._device.manifest.operations
        return self._device.counters() if has_seeds else {}

    def finish(self) -> str:
        """Check the counters after the last result; choose other seeds if none were chosen yet.

        Returns what was found and done; an empty text if there is nothing to report.
        """
        after = self._counters()
        grown = {name: value - self._before.get(name, 0) for name, value in after.items()}
        probes = grown.get("tuples_r", 0) + grown.get("tuples_s", 0)
        entries, results = grown.get("region_busy", 0), grown.get("results", 0)
        if probes < LEAST_PROBES or entries <= PATIENCE * self._expected(probes, results):
            return ""
        note = f"an index read {entries:,} entries for {probes:,} probes and {results:,} results"
        if self.choice == hash_choice(self._device) == 0:
            _choices[self._device.uri] = 1
            note += "; the next join on this device hashes keys with other seeds"
        return note

    def _expected(self, probes: int, results: int) -> int:
        """Return the entries read in randomly filled buckets: results and their neighbours."""
        manifest = self._device.manifest
        assert manifest.index is not None
        storage = manifest.storage
        load = max(1, storage.sub_window >> manifest.index.bucket_bits)
        return results + probes * storage.cores * load
