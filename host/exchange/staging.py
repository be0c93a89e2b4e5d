# SPDX-License-Identifier: Apache-2.0
"""Input words on their way into a device, and what a device still owes after an early close."""

from collections import deque
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from host.device import Device
from host.reference.exact import UInt64s

__all__ = ["AREAS", "Staging"]

#: Areas of input words: the device may read one while the other one is filled.
AREAS = 2


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
    old area as well, where the device can read them. There are :data:`AREAS` at
    most, which keep their size as long as no more words are added than there is :attr:`room` for.

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
        self._area = np.empty((words, columns), np.uint64)
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
            self._area = np.empty((length, self._area.shape[1]), np.uint64)
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
        # An accepted word leaves room at the front.
        assert self._begin
        self._begin -= 1
        self._area[self._begin] = self._area[self._begin + 1]
        self._area[self._begin + 1] = word[0]
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
