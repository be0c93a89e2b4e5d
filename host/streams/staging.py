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
    """The words to send, in order, and the marks to expect.

    Parameters
    ----------
    device : Device
        Where they go.

    Attributes
    ----------
    waiting : int
        Words that the device has not accepted yet.
    inherited : int
        Marks that belong to an earlier execution, which come first.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._queue: deque[UInt64s] = deque()
        self._offset = 0  # of the first word in the first array
        self._answered: deque[int] = deque()  # which words, counted from the first, make a mark
        self._accepted = 0
        self._due = 0  # marks for accepted words that have not come
        self.waiting = 0
        debt = _DEBTS.pop(device, _Debt(0, None, False))
        if debt.word is not None:
            self.add(debt.word, marks=int(debt.answered))
        self._due += debt.marks
        self.inherited = debt.marks + debt.answered

    def add(self, words: UInt64s, marks: int = 0) -> None:
        """Append words, the last ``marks`` of which are answered with a mark each."""
        if len(words):
            self._queue.append(words)
            self.waiting += len(words)
            total = self._accepted + self.waiting
            self._answered.extend(range(total - marks, total))

    def offer(self, least: int) -> UInt64s | None:
        """Return words to offer next: at least so many, or all that wait; None if nothing does."""
        if not self._queue:
            return None
        if len(self._queue[0]) - self._offset < least and len(self._queue) > 1:
            # Few words would come to an end while the device still works on them, so others
            # follow in the same array; only the tail of one array and the next are copied.
            parts = [self._queue.popleft()[self._offset :]]
            size = len(parts[0])
            while self._queue and size < least:
                parts.append(self._queue.popleft())
                size += len(parts[-1])
            self._queue.appendleft(np.concatenate(parts))
            self._offset = 0
        return self._queue[0][self._offset :]

    def accept(self, count: int) -> None:
        """The device took ``count`` of the words that were offered."""
        self.waiting -= count
        self._accepted += count
        self._offset += count
        if self._queue and self._offset == len(self._queue[0]):
            self._queue.popleft()
            self._offset = 0
        while self._answered and self._answered[0] < self._accepted:
            self._answered.popleft()
            self._due += 1

    def see_marks(self, count: int) -> None:
        """The device sent ``count`` marks."""
        self._due -= count

    def abandon(self) -> None:
        """Leave a note for the next user of the device, if something is on its way."""
        first = self.offer(1)
        word = None if first is None else first[:1].copy()
        answered = bool(self._answered) and self._answered[0] == self._accepted
        if self._due or word is not None:
            _DEBTS[self._device] = _Debt(self._due, word, answered)
