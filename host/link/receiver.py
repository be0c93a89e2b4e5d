# SPDX-License-Identifier: Apache-2.0
"""The receiving half of a link: every frame is taken once, and words leave in order."""

from enum import Enum

__all__ = ["EARLY", "SLOT_BYTES", "Receiver", "Response"]

#: Bytes of a receive buffer that stand for one frame.
SLOT_BYTES = 256
#: Frames behind the expected one of which an acknowledgement can tell whether they have come.
EARLY = 31


class Response(Enum):
    """When the other side should be told about a frame."""

    #: After the next frame, or when the line is idle.
    LATER = 0
    #: When the line is idle: the frame came again, so an acknowledgement may have been lost.
    IDLE = 1
    #: Before any frame of words: the frame in front of it is missing.
    AT_ONCE = 2


class Receiver:
    """Takes frames once, in any order, and says which ones it has.

    A frame that comes early waits until all frames before it have come.

    Parameters
    ----------
    slots : int
        Frames that there is room for, at most 127.

    Attributes
    ----------
    word_bytes : int
        Bytes of a word.
    accepted, dropped : int
        Frames taken, and frames that came again or found no room.
    """

    def __init__(self, *, slots: int) -> None:
        if not 1 <= slots <= 127:
            raise ValueError(f"Number of slots must be 1 to 127, not {slots!r}")
        self.slots = slots
        self.word_bytes = 1
        self.accepted = self.dropped = 0
        self.begin()

    def begin(self) -> None:
        """Forget everything, and expect frame zero."""
        self._words = bytearray()
        self._waiting: dict[int, bytes] = {}  # payloads of frames that came early, by number
        self._expected = 0

    @property
    def expected(self) -> int:
        """Low eight bits of the number of the frame that is expected next."""
        return self._expected & 0xFF

    @property
    def limit(self) -> int:
        """Low eight bits of the number of the first frame that there is no room for."""
        return (self._expected + self._free) & 0xFF

    @property
    def early(self) -> int:
        """Which frames have come early: bit n stands for the frame ``expected + 1 + n``."""
        return sum(self._expected + 1 + n in self._waiting and 1 << n for n in range(EARLY))

    @property
    def _free(self) -> int:
        return (self.slots * SLOT_BYTES - len(self._words)) // SLOT_BYTES

    @property
    def waiting(self) -> int:
        """Bytes of words that :meth:`take` can return."""
        return len(self._words)

    def accept(self, sequence: int, payload: bytes) -> Response:
        """Take the words of a DATA frame, unless it has come before or there is no room for it."""
        number = self._expected + ((sequence - self._expected) & 0xFF)
        fits = number < self._expected + self._free and not len(payload) % self.word_bytes
        if not fits or number in self._waiting:
            self.dropped += 1
            return Response.IDLE
        self.accepted += 1
        gap = number > self._expected and number - 1 not in self._waiting
        self._waiting[number] = payload
        while (ready := self._waiting.pop(self._expected, None)) is not None:
            self._words += ready
            self._expected += 1
        return Response.AT_ONCE if gap else Response.LATER

    def take(self, most: int) -> bytes:
        """Remove whole words from the front, at most ``most`` bytes, and return them."""
        count = min(len(self._words), most) // self.word_bytes * self.word_bytes
        words = bytes(self._words[:count])
        del self._words[:count]
        return words
