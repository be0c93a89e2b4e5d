# SPDX-License-Identifier: Apache-2.0
"""Input words on their way into a device, and what a device still owes after a cut."""

from collections import deque
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from host.device import Device
from host.exact import UInt64s

__all__ = ["Staging"]


@dataclass(frozen=True)
class _Debt:
    """What an execution left in a device when it was closed before its end.

    ``marks`` are on their way; ``word``, if there is one, has been offered and must be offered
    again, and is answered with a mark itself if ``answered``.
    """

    marks: int
    word: UInt64s | None
    answered: bool


_DEBTS: "WeakKeyDictionary[Device, _Debt]" = WeakKeyDictionary()


class Staging:
    """The words to send, in order, in one area that is filled from front to end.

    Words are written where they are offered from: :meth:`reserve` a place, fill it, :meth:`add`
    it. Only when the area is full, the words that still wait are copied to the front of another
    one; a caller that adds words when few wait copies few. Words that have been offered stay where
    they are for the device to read, even so.

    Parameters
    ----------
    device : Device
        Where they go.
    columns : int
        Numbers of a word.

    Attributes
    ----------
    inherited : int
        Marks that belong to an earlier execution, which come first.
    due : int
        Marks for accepted words that have not come.
    moved : int
        Words that had to be copied.
    """

    def __init__(self, device: Device, columns: int) -> None:
        self._device = device
        self._area = np.empty((1 << 16, columns), np.uint64)
        self._begin, self._end = 0, 0  # of the words that wait
        self._offered = 0  # how many of these the device is looking at
        self._answered: deque[int] = deque()  # which words, counted from the first, make a mark
        self._accepted = 0
        self.due = 0
        self.moved = 0
        debt = _DEBTS.pop(device, _Debt(0, None, False))
        if debt.word is not None:
            self.append(debt.word, marks=int(debt.answered))
        self.due += debt.marks
        self.inherited = debt.marks + debt.answered

    @property
    def waiting(self) -> int:
        """How many words the device has not accepted yet."""
        return self._end - self._begin

    @property
    def kept_back(self) -> int:
        """Words that have not been offered yet."""
        return self.waiting - self._offered

    def reserve(self, count: int) -> UInt64s:
        """Return room for so many words behind those that wait; anything may stand there."""
        if self._end + count > len(self._area):
            waiting = self.words
            length = len(self._area)
            if len(waiting) + count > length:
                length = 2 * (len(waiting) + count)
            self._area = np.empty((length, self._area.shape[1]), np.uint64)
            self._area[: len(waiting)] = waiting
            self.moved += len(waiting)
            self._begin, self._end = 0, len(waiting)
        return self._area[self._end : self._end + count]

    def add(self, count: int, marks: int = 0) -> None:
        """The next ``count`` words are there, the last ``marks`` answered with a mark each."""
        self._end += count
        total = self._accepted + self.waiting
        self._answered.extend(range(total - marks, total))

    def append(self, words: UInt64s, marks: int = 0) -> None:
        """Add a copy of ``words``."""
        self.reserve(len(words))[:] = words
        self.add(len(words), marks)

    @property
    def words(self) -> UInt64s:
        """The words that the device has not accepted yet."""
        return self._area[self._begin : self._end]

    def offer(self) -> UInt64s:
        """Return the words that wait; the device may look at them until it has accepted some."""
        self._offered = self.waiting
        return self.words

    def accept(self, count: int) -> None:
        """The device took ``count`` of the words that were offered, and looks no longer."""
        self._offered = 0
        self._accepted += count
        self._begin += count
        while self._answered and self._answered[0] < self._accepted:
            self._answered.popleft()
            self.due += 1

    def see_marks(self, count: int) -> None:
        """The device sent ``count`` marks."""
        self.due -= count

    def abandon(self) -> None:
        """Leave a note for the next user of the device, if something is on its way."""
        word = self.offer()[:1].copy() if self.waiting else None
        answered = bool(self._answered) and self._answered[0] == self._accepted
        if self.due or word is not None:
            _DEBTS[self._device] = _Debt(self.due, word, answered)
