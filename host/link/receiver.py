# SPDX-License-Identifier: Apache-2.0
"""The receiving half of a link: frames are taken in order, once, and only if there is room."""

from enum import Enum

__all__ = ["SLOT_BYTES", "Receiver", "Response"]

#: Bytes of a receive buffer that stand for one frame.
SLOT_BYTES = 256


class Response(Enum):
    """What the other side should be told about a frame."""

    NOTHING = 0
    ACK = 1
    NAK = 2


class Receiver:
    """Takes frames in order, and says which one it expects next.

    A frame that is missing is asked for once. It is asked for again when the other side has begun
    to send again and the frame is missing in that pass too, or when as many frames as may be on
    their way have come without it.

    Parameters
    ----------
    slots : int
        Frames that there is room for, at most 127.

    Attributes
    ----------
    word_bytes : int
        Bytes of a word.
    window : int
        Most frames that the other side sends without an acknowledgement.
    accepted, dropped : int
        Frames taken, and frames that came too early or again.
    """

    def __init__(self, *, slots: int) -> None:
        if not 1 <= slots <= 127:
            raise ValueError(f"Number of slots must be 1 to 127, not {slots!r}")
        self.slots = self.window = slots
        self.word_bytes = 1
        self.accepted = self.dropped = 0
        self.begin()

    def begin(self) -> None:
        """Forget everything, and expect frame zero."""
        self._words = bytearray()
        self._expected = 0
        self._newest = 0  # distance of the frame that came last, since a frame is missing
        self._events = 0  # since the missing frame was asked for; zero if none is missing

    @property
    def expected(self) -> int:
        """Low eight bits of the number of the frame that is expected next."""
        return self._expected & 0xFF

    @property
    def limit(self) -> int:
        """Low eight bits of the number of the first frame that there is no room for."""
        return (self._expected + self._free) & 0xFF

    @property
    def _free(self) -> int:
        return (self.slots * SLOT_BYTES - len(self._words)) // SLOT_BYTES

    @property
    def waiting(self) -> int:
        """Bytes of words that :meth:`take` can return."""
        return len(self._words)

    def accept(self, sequence: int, payload: bytes) -> Response:
        """Take the words of a DATA frame, if it is the next one."""
        ahead = (sequence - self._expected) & 0xFF
        if not ahead:
            if not self._free or len(payload) % self.word_bytes:
                self.dropped += 1
                return Response.ACK
            self.accepted += 1
            self._expected += 1
            self._events = 0
            self._words += payload
            return Response.ACK
        self.dropped += 1
        if ahead >= 0x80:
            return Response.ACK
        passed, self._newest = ahead <= self._newest, ahead
        return self._missing(passed)

    def garbled(self) -> Response:
        """Say what follows from something that was no frame; it may have been the expected one."""
        if not self._events:
            self._newest = 0
        return self._missing(False)

    def _missing(self, passed: bool) -> Response:
        """Ask for the expected frame, unless it may still be on its way.

        ``passed`` says that the other side has begun again and the frame should have come.
        """
        ask = passed or not 0 < self._events <= self.window
        self._events = 1 if ask else self._events + 1
        return Response.NAK if ask else Response.NOTHING

    def take(self, most: int) -> bytes:
        """Remove whole words from the front, at most ``most`` bytes, and return them."""
        count = min(len(self._words), most) // self.word_bytes * self.word_bytes
        words = bytes(self._words[:count])
        del self._words[:count]
        return words
