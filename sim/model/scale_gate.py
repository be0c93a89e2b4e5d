# SPDX-License-Identifier: Apache-2.0
"""What a ScaleGate does, word by word: the merge of timestamp-sorted sources by readiness."""

from collections import deque
from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "GateWord",
    "GateWordKind",
    "ScaleGateReference",
]


class GateWordKind(IntEnum):
    """Kind of a word of a source."""

    TUPLE = 0
    WATERMARK = 1
    LEAVE = 2
    BARRIER = 3


@dataclass(frozen=True)
class GateWord:
    """A word of a source, or a word that leaves.

    Parameters
    ----------
    kind : GateWordKind
    time : int
        Its time; zero for LEAVE and BARRIER. Of a late tuple that leaves, the time of its place.
    body : int
        What a tuple or a barrier carries.
    source : int
        Number of the source of a tuple that leaves.
    late : bool
        Whether the tuple came too late.
    """

    kind: GateWordKind
    time: int = 0
    body: int = 0
    source: int = 0
    late: bool = False


class _Source:
    """What is known of one source, and its words that have not left."""

    def __init__(self, number: int, present: bool) -> None:
        self.number = number
        self.present = present
        self.mark = 0
        self.held: deque[GateWord] = deque()
        self.behind: deque[GateWord] = deque()  # words behind a barrier that is held

    def take(self, word: GateWord, floor: int) -> None:
        """Take the next word; ``floor`` is the time that the output has reached."""
        if self.held and self.held[-1].kind is GateWordKind.BARRIER:
            self.behind.append(word)
            return
        if not self.present:
            self.present = True
            self.mark = self.mark if self.held else floor
        if word.kind is GateWordKind.LEAVE:
            self.present = False
        elif word.kind is GateWordKind.BARRIER:
            self.held.append(GateWord(word.kind, body=word.body))
        else:
            late = word.time < self.mark
            self.mark = max(self.mark, word.time)
            if word.kind is GateWordKind.TUPLE:
                held = GateWord(word.kind, self.mark, word.body, self.number, late)
                self.held.append(held)

    def shows(self) -> tuple[float, int]:
        """Return what the source can send next at the earliest, as it is compared."""
        if self.held:
            is_barrier = self.held[0].kind is GateWordKind.BARRIER
            return (float("inf"), 0) if is_barrier else (self.held[0].time, self.number)
        return (self.mark, self.number) if self.present else (float("inf"), 1)

    def pass_barrier(self) -> None:
        """Let the barrier go, and take the words behind it."""
        if self.held:
            self.held.popleft()
            self.mark = 0
            behind, self.behind = self.behind, deque()
            for word in behind:
                self.take(word, 0)


class ScaleGateReference:
    """A ScaleGate whose words take no time.

    A tuple is ready when no source that is present can send any more what comes before it in the
    order of (time, source). That is Definition 3 of the STRETCH paper, over pairs of a time and the
    number of a source. The hardware (:mod:`hdl.scalegate`) and the host's stream give the same
    sequence as long as no source is added again.

    Parameters
    ----------
    sources : int
        Number of sources, all of them present.

    Attributes
    ----------
    floor : int
        The latest time that has left in this epoch.
    """

    def __init__(self, sources: int) -> None:
        self._sources = [_Source(number, True) for number in range(sources)]
        self.floor = 0

    def push(self, source: int, word: GateWord) -> list[GateWord]:
        """Take a word of a source; return the tuples and barriers that are ready by it."""
        self._sources[source].take(word, self.floor)
        ready = []
        while (least := min(self._sources, key=_Source.shows)).held:
            word = least.held[0]
            if word.kind is GateWordKind.BARRIER:
                for one in self._sources:
                    one.pass_barrier()
                self.floor = 0
            else:
                least.held.popleft()
                self.floor = word.time
            ready.append(word)
        return ready

    def leave(self) -> list[GateWord]:
        """Let all sources leave; return what is ready by that."""
        return [
            word
            for source in self._sources
            for word in self.push(source.number, GateWord(GateWordKind.LEAVE))
        ]
