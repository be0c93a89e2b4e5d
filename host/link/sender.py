# SPDX-License-Identifier: Apache-2.0
"""The sending half of a link: frames are kept until they are acknowledged (go-back-N)."""

from collections import deque
from itertools import islice

from host.link.frames import Frame, Kind, encode_frame

__all__ = ["STEP", "Sender"]

#: Bytes of words in the first frame of a session, and bytes by which frames become longer with each
#: frame that is acknowledged. Every time that frames are sent again, new ones become half as long.
STEP = 16


class Sender:
    """Sends words in order, and sends frames again until the other side has them.

    Parameters
    ----------
    slots : int
        Most frames that are sent and not acknowledged, at most 127.
    timeout : float
        Seconds without progress after which all frames not acknowledged are sent again.

    Attributes
    ----------
    session : int
        Number of the session.
    word_bytes, payload_bytes : int
        Bytes of a word, and most bytes of words in a frame.
    sent, repeated, timeouts : int
        Frames sent, frames sent again, and times that the timeout passed.
    delivered : int
        Words that the other side has acknowledged.
    """

    def __init__(self, *, slots: int, timeout: float) -> None:
        if not 1 <= slots <= 127:
            raise ValueError(f"Number of slots must be 1 to 127, not {slots!r}")
        self.slots = slots
        self.timeout = timeout
        self.word_bytes = 1
        self.payload_bytes = 1
        self.sent = self.repeated = self.timeouts = 0
        self.begin(0)

    def begin(self, session: int) -> None:
        """Forget everything, and number frames from zero."""
        self.session = session
        self.delivered = 0
        self._waiting = bytearray()
        self._frames: deque[tuple[bytes, int]] = deque()
        self._base = 0  # number of the oldest frame that is not acknowledged
        self._cursor = 0  # number of the frame to be sent next
        self._limit = 0  # number of the first frame that the other side has no room for
        self._timer = 0.0
        self._allowed = STEP  # bytes of words in a new frame; fewer while the line is noisy

    @property
    def room(self) -> int:
        """Bytes of words that :meth:`offer` takes now."""
        most = self.slots * self.payload_bytes
        return max(0, most - len(self._waiting)) // self.word_bytes * self.word_bytes

    @property
    def idle(self) -> bool:
        """Whether everything was acknowledged."""
        return not self._waiting and not self._frames

    @property
    def deadline(self) -> float | None:
        """Time at which frames must be sent again; None if nothing is outstanding."""
        return self._timer if self._cursor > self._base else None

    def offer(self, words: bytes) -> int:
        """Take whole words to be sent; return how many bytes were taken."""
        count = min(len(words) // self.word_bytes * self.word_bytes, self.room)
        self._waiting += words[:count]
        return count

    def acknowledge(self, sequence: int, limit: int, *, again: bool, now: float) -> None:
        """Note what the other side expects next, and how far it has room.

        Parameters
        ----------
        sequence, limit : int
            Low eight bits of the numbers of the frame that is expected, and of the first frame
            that there is no room for.
        again : bool
            Whether frames have been lost, so that all from ``sequence`` on must be sent again.
        now : float
            Time in seconds.
        """
        count = (sequence - self._base) & 0xFF
        if count > len(self._frames):
            return  # an old acknowledgement, or one of another session
        for _ in range(count):
            self.delivered += self._frames.popleft()[1]
        self._base += count
        self._cursor = max(self._cursor, self._base)
        ahead = (limit - sequence) & 0xFF
        if ahead < 0x80:
            self._limit = max(self._limit, self._base + ahead)
        if count:
            self._timer = now + self.timeout
            self._allowed = min(self.payload_bytes, self._allowed + count * STEP)
        if again:
            self.go_back(now)

    def go_back(self, now: float) -> None:
        """Send all frames that are not acknowledged again, and make new ones shorter."""
        if self._cursor > self._base:
            self._allowed = max(self._allowed // 2, STEP)
        self._cursor = self._base
        self._timer = now + self.timeout

    def next_frame(self, now: float) -> bytes | None:
        """Return the next frame, or None if there is nothing that may be sent now."""
        if self._cursor > self._base and now >= self._timer:
            self.timeouts += 1
            self.go_back(now)
        at = self._cursor - self._base
        if at == len(self._frames):
            if not self._waiting or at == self.slots or self._cursor >= self._limit:
                return None
            self._frames.append(self._new_frame())
        else:
            self.repeated += 1
        if not at:
            self._timer = now + self.timeout
        self._cursor += 1
        self.sent += 1
        return next(islice(self._frames, at, None))[0]

    def _new_frame(self) -> tuple[bytes, int]:
        """Make a frame of waiting words, as many as it may hold."""
        most = min(self._allowed, self.payload_bytes)
        words = max(1, most // self.word_bytes)
        count = min(words, len(self._waiting) // self.word_bytes)
        payload = bytes(self._waiting[: count * self.word_bytes])
        del self._waiting[: len(payload)]
        return encode_frame(Frame(Kind.DATA, self._cursor, payload), self.session), count
