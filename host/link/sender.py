# SPDX-License-Identifier: Apache-2.0
"""The sending half of a link: frames are kept until they are acknowledged (selective repeat)."""

from collections import deque

from host.link.frames import Frame, Kind, encode_frame
from host.link.receiver import EARLY

__all__ = ["LEAST", "NOISY_STEP", "STEP", "Sender"]

#: Bytes of words in the first frame of a session, and in the shortest frames on a noisy line.
LEAST = 16
#: Bytes by which frames become longer with each frame that is acknowledged: while no frame was lost
#: yet, and afterwards. When frames are found to be lost, new ones become half as long.
STEP, NOISY_STEP = 16, 4


class Sender:
    """Sends words in order, and sends frames that were lost again until the other side has them.

    A frame is lost if the other side has one that was sent later, for a line does not change the
    order of frames. So nothing is sent again that is still on its way, with one exception: if the
    line would be idle although the other side lacks something, the oldest frame is sent once more.

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
        self._limit = 0  # number of the first frame that the other side has no room for
        self._early: set[int] = set()  # frames behind the oldest one that have come
        self._lost: set[int] = set()  # frames to be sent again
        self._repeats: set[int] = set()  # frames sent again, which may still be on their way
        self._mark = 0  # the first frame that was sent after all repeats
        self._timer = 0.0
        self._spare = False  # the oldest frame may be sent once more if the line is idle
        self._allowed = LEAST  # bytes of words in a new frame; fewer while the line is noisy
        self._noisy = False  # frames have been lost

    @property
    def _next(self) -> int:
        """Number of the next new frame."""
        return self._base + len(self._frames)

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
        return self._timer if self._frames else None

    def offer(self, words: bytes) -> int:
        """Take whole words to be sent; return how many bytes were taken."""
        count = min(len(words) // self.word_bytes * self.word_bytes, self.room)
        self._waiting += words[:count]
        return count

    def acknowledge(
        self, sequence: int, limit: int, early: int, *, garbled: bool, now: float
    ) -> None:
        """Note what the other side has, and how far it has room.

        Parameters
        ----------
        sequence, limit : int
            Low eight bits of the numbers of the frame that is expected, and of the first frame
            that there is no room for.
        early : int
            Which of the frames behind the expected one have come, see :attr:`Receiver.early`.
        garbled : bool
            Whether something has come that was no frame. It may have been the last frame, behind
            which nothing comes that would show that it was lost.
        now : float
            Time in seconds.
        """
        count = (sequence - self._base) & 0xFF
        if count > len(self._frames):
            return  # an old acknowledgement, or one of another session
        for _ in range(count):
            self.delivered += self._frames.popleft()[1]
        self._base += count
        ahead = (limit - sequence) & 0xFF
        if ahead < 0x80:
            self._limit = max(self._limit, self._base + ahead)
        if count:
            self._timer = now + self.timeout
        self._early = {self._base + 1 + n for n in range(EARLY) if early >> n & 1}
        if self._find_lost():
            self._shorten()
        else:
            step = NOISY_STEP if self._noisy else STEP
            self._allowed = min(self.payload_bytes, self._allowed + count * step)
        self._spare = garbled or early > 0

    def _find_lost(self) -> bool:
        """Decide which frames are lost, from what the other side has; return whether more are."""
        last = max(self._early, default=self._base)
        if last >= self._mark:
            self._repeats.clear()  # whatever was sent again has passed the line
        lost = self._outstanding(last) - self._repeats
        more = not lost <= self._lost
        self._lost = {n for n in self._lost | lost if n >= self._base and n not in self._early}
        return more

    def _shorten(self) -> None:
        """Make new frames shorter, and let them grow slowly from now on."""
        self._allowed = max(self._allowed // 2, LEAST)
        self._noisy = True

    def _outstanding(self, end: int) -> set[int]:
        """Return the frames before ``end`` that the other side is not known to have."""
        return set(range(self._base, end)) - self._early

    def repeat_all(self, now: float) -> None:
        """Send all frames again that the other side is not known to have."""
        if self._frames:
            self._shorten()
        self._lost = self._outstanding(self._next)
        self._timer = now + self.timeout

    def next_frame(self, now: float) -> bytes | None:
        """Return the next frame, or None if there is nothing that may be sent now."""
        if self._frames and now >= self._timer:
            self.timeouts += 1
            self.repeat_all(now)
        if self._lost:
            return self._again(min(self._lost))
        if not self._may_send_new():
            if not (self._spare and self._frames):
                return None
            self._spare = False
            return self._again(self._base)
        if not self._frames:
            self._timer = now + self.timeout
        self._frames.append(self._new_frame())
        self.sent += 1
        return self._frames[-1][0]

    def _again(self, number: int) -> bytes:
        """Return a frame that was sent before."""
        self._lost.discard(number)
        self._repeats.add(number)
        self._mark = self._next
        self.repeated += 1
        self.sent += 1
        return self._frames[number - self._base][0]

    def _may_send_new(self) -> bool:
        """Return whether words wait, and there is room for one frame more on both sides."""
        some = len(self._waiting) > 0
        return some and len(self._frames) < self.slots and self._next < self._limit

    def _new_frame(self) -> tuple[bytes, int]:
        """Make a frame of waiting words, as many as it may hold."""
        most = min(self._allowed, self.payload_bytes)
        words = max(1, most // self.word_bytes)
        count = min(words, len(self._waiting) // self.word_bytes)
        payload = bytes(self._waiting[: count * self.word_bytes])
        del self._waiting[: len(payload)]
        return encode_frame(Frame(Kind.DATA, self._next, payload), self.session), count
