# SPDX-License-Identifier: Apache-2.0
"""The host's end of a link: frames are kept until they are acknowledged, and taken in order."""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from host.devices.link.frames import (
    VERSION,
    Frame,
    FrameDecoder,
    Greeting,
    Hello,
    Kind,
    encode_frame,
)

__all__ = [
    "Answer",
    "EARLY",
    "Endpoint",
    "HostEndpoint",
    "LEAST",
    "LinkCounters",
    "NOISY_STEP",
    "Receiver",
    "Response",
    "SLOT_BYTES",
    "STEP",
    "Sender",
    "Timing",
]

# The receiving half of a link: every frame is taken once, and words leave in order.

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


# The sending half of a link: frames are kept until they are acknowledged (selective repeat).

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


# One end of a link: bytes in, bytes out, words in, words out; time is passed in.

#: Frames that are taken without an acknowledgement while the line is busy.
UNACKNOWLEDGED = 2


@dataclass(frozen=True)
class Timing:
    """Times of an endpoint in seconds.

    Attributes
    ----------
    timeout : float
        Time without progress after which frames, greetings and requests are sent again. It must be
        longer than all frames of a window take on the line.
    heartbeat : float
        Longest time between two acknowledgements, which tell the other side that this one is there.
    """

    timeout: float = 0.2
    heartbeat: float = 0.1

    @classmethod
    def at(cls, bytes_per_second: float, *, slots: int) -> "Timing":
        """Return times for a line of this speed, with ``slots`` frames of 256 bytes in a window."""
        timeout = 0.05 + 2 * slots * 256 / bytes_per_second
        return cls(timeout=timeout, heartbeat=timeout / 2)


@dataclass(frozen=True)
class LinkCounters:
    """Counters of what a link has done and suffered.

    Attributes
    ----------
    bytes_in, bytes_out : int
        Bytes of the byte stream.
    frames_in, frames_out : int
        Frames of words that were taken, and that were sent.
    repeated, timeouts : int
        Frames of words among ``frames_out`` that were sent before, and times that the timeout
        passed.
    garbled, dropped : int
        Pieces of the byte stream that were no frame, and frames of words that came again or found
        no room.
    asked : int
        Times that the other side was told that something was no frame.
    resumed : int
        Times that the session was resumed.
    """

    bytes_in: int
    bytes_out: int
    frames_in: int
    frames_out: int
    repeated: int
    timeouts: int
    garbled: int
    dropped: int
    asked: int
    resumed: int


class Endpoint(ABC):
    """Endpoint of a link: what both ends have in common.

    Nothing here waits or reads a clock. A caller feeds bytes to :meth:`receive`, sends what
    :meth:`transmit` returns, and calls again at :attr:`deadline` at the latest.

    Parameters
    ----------
    send_slots, receive_slots : int
        Frames sent without an acknowledgement, and frames that there is room for.
    timing : Timing
        Times.

    Attributes
    ----------
    sender, receiver : Sender, Receiver
        The two directions of words.
    heard : float or None
        Time at which a frame of the other side arrived last.
    """

    def __init__(self, *, send_slots: int, receive_slots: int, timing: Timing) -> None:
        self.timing = timing
        self.sender = Sender(slots=send_slots, timeout=timing.timeout)
        self.receiver = Receiver(slots=receive_slots)
        self.heard: float | None = None
        self._decoder = FrameDecoder()
        self._garbled = 0  # by decoders that were given up
        self._in = self._out = self._asked = self._resumed = 0
        self._rest = b""  # of the frame that was cut
        self._told = 0, 0, 0  # expected, limit and early frames of the last acknowledgement
        self._suspect = False  # something came that was no frame, since the last acknowledgement
        self._due = False  # an acknowledgement is due, even if it says nothing new
        self._unacknowledged = 0
        self._beat = 0.0  # when the next heartbeat is due

    # ---- the byte stream

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes of the byte stream."""
        self._in += len(data)
        for frame in self._decoder.feed(data):
            if frame is None:
                self._suspect = True
                self._unacknowledged = UNACKNOWLEDGED
            else:
                self.heard = now
                self._frame(frame, now)

    def transmit(self, now: float, room: int) -> bytes:
        """Return bytes for the byte stream; the last frame may be cut, and goes on the next time.

        Parameters
        ----------
        now : float
            Time in seconds.
        room : int
            Most bytes. If there are as many, there may be more to send at once.
        """
        parts = [self._rest]
        total = len(self._rest)
        while total < room and (part := self._next(now)) is not None:
            parts.append(part)
            total += len(part)
        data = b"".join(parts)
        self._rest = data[room:]
        self._out += min(total, room)
        return data[:room]

    def transmit_frame(self, now: float) -> bytes:
        """Return one frame for the byte stream, or what is left of one; empty if none is due."""
        frame = self._rest or self._next(now) or b""
        self._rest = b""
        self._out += len(frame)
        return frame

    @property
    def deadline(self) -> float:
        """Time at which :meth:`transmit` must be called again, whatever else happens."""
        timer = self.sender.deadline
        return self._beat if timer is None else min(self._beat, timer)

    def counters(self) -> LinkCounters:
        """Return what happened since the endpoint was made."""
        return LinkCounters(
            bytes_in=self._in,
            bytes_out=self._out,
            frames_in=self.receiver.accepted,
            frames_out=self.sender.sent,
            repeated=self.sender.repeated,
            timeouts=self.sender.timeouts,
            garbled=self._garbled + self._decoder.garbled,
            dropped=self.receiver.dropped,
            asked=self._asked,
            resumed=self._resumed,
        )

    # ---- frames

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether there is a session, in which words can be sent."""

    @abstractmethod
    def _own_frame(self, frame: Frame, now: float) -> None:
        """Take a frame that only this kind of endpoint gets."""

    @abstractmethod
    def _own_next(self, now: float) -> bytes | None:
        """Return the next frame that only this kind of endpoint sends."""

    def _begin(self, session: int) -> None:
        """Begin a session: forget all words."""
        self.sender.begin(session)
        self.receiver.begin()
        self._decoder.session = session
        self._suspect, self._unacknowledged = False, 0

    def _resume(self, now: float) -> None:
        """Send again what may have been lost, and tell what is expected."""
        self.sender.repeat_all(now)
        self._due = True

    def _forget_bytes(self) -> None:
        """Begin with a byte stream of which nothing has been read or written yet."""
        self._rest = b""
        old, self._decoder = self._decoder, FrameDecoder()
        self._decoder.session = old.session
        self._garbled += old.garbled

    def _frame(self, frame: Frame, now: float) -> None:
        if frame.kind in (Kind.ACK, Kind.NAK):
            if self.is_open and 1 <= len(frame.payload) <= 1 + -(-EARLY // 8):
                limit, early = frame.payload[0], int.from_bytes(frame.payload[1:], "little")
                garbled = frame.kind is Kind.NAK
                self.sender.acknowledge(frame.sequence, limit, early, garbled=garbled, now=now)
        elif frame.kind is Kind.DATA:
            if self.is_open:
                self._unacknowledged += 1
                self._respond(self.receiver.accept(frame.sequence, frame.payload))
        else:
            self._own_frame(frame, now)

    def _respond(self, response: Response) -> None:
        if response is Response.AT_ONCE:
            self._unacknowledged = UNACKNOWLEDGED
        elif response is Response.IDLE:
            self._due = True

    def _next(self, now: float) -> bytes | None:
        own = self._own_next(now)
        if own is not None or not self.is_open:
            return own
        if self._unacknowledged >= UNACKNOWLEDGED or now >= self._beat:
            return self._acknowledgement(now)
        data = self.sender.next_frame(now)
        if data is not None:
            return data
        if self._due or self._told != self._news:
            return self._acknowledgement(now)
        return None

    @property
    def _news(self) -> tuple[int, int, int]:
        """What an acknowledgement says: the expected frame, the first without room, early ones."""
        return self.receiver.expected, self.receiver.limit, self.receiver.early

    def _acknowledgement(self, now: float) -> bytes:
        kind = Kind.NAK if self._suspect else Kind.ACK
        self._asked += self._suspect
        self._told = self._news
        self._suspect, self._due, self._unacknowledged = False, False, 0
        self._beat = now + self.timing.heartbeat
        expected, limit, early = self._told
        told = early.to_bytes(-(-early.bit_length() // 8), "little")  # its last bytes are not zero
        frame = Frame(kind, expected, bytes((limit,)) + told)
        return encode_frame(frame, self.sender.session)


# The host's end of a link: it begins and resumes sessions, and reads and writes registers.


class Answer(NamedTuple):
    """Answer to a register request: whether the register refused, and what was read."""

    refused: bool
    data: int


class HostEndpoint(Endpoint):
    """Endpoint of a link on the host.

    Parameters
    ----------
    session : int
        Number of the session, of 32 bits, not zero; a random one, so that no other session has it.
    send_slots, receive_slots : int
        Most frames sent without an acknowledgement, and frames that there is room for.
    timing : Timing
        Times.

    Attributes
    ----------
    greeting : Greeting or None
        What the board says of itself, once it has answered. If its session is not this one's, or
        its version is unknown, the endpoint is not open.
    """

    def __init__(
        self,
        session: int,
        *,
        send_slots: int = 32,
        receive_slots: int = 64,
        timing: Timing | None = None,
    ) -> None:
        if not 0 < session < 1 << 32:
            raise ValueError(f"Number of a session must be 1 to 2**32 - 1, not {session!r}")
        super().__init__(
            send_slots=send_slots, receive_slots=receive_slots, timing=timing or Timing()
        )
        self.session = session
        self.greeting: Greeting | None = None
        self._known = False  # the board has been in this session
        self._hello = 0.0  # when HELLO is due, while there is no answer
        self._request: tuple[Kind, bytes] | None = None
        self._tag = -1
        self._request_due = 0.0
        self._answer: Answer | None = None
        self._begin(session)

    @property
    def is_open(self) -> bool:
        """Whether the board is in this session."""
        greeting = self.greeting
        return (
            greeting is not None
            and greeting.session == self.session
            and greeting.version == VERSION
        )

    @property
    def deadline(self) -> float:
        """See :attr:`Endpoint.deadline`."""
        if not self.is_open:
            return self._hello
        due = super().deadline
        return due if self._request is None else min(due, self._request_due)

    def reconnect(self, now: float) -> None:
        """Greet the board again, over a byte stream that is new or had failed.

        If the board is still in this session, both sides go on exactly where they stood. If not,
        :attr:`greeting` says in which session it is, and the endpoint is not open.
        """
        self.greeting = None
        self._hello = self._request_due = now
        self._forget_bytes()

    def request(self, address: int, data: int | None = None, strobe: int = 0xF) -> None:
        """Read a register, or write ``data`` to it; see :meth:`answer`.

        Raises
        ------
        RuntimeError
            If the last request was not answered yet.
        """
        if self._request is not None:
            raise RuntimeError("The last register request was not answered yet.")
        place = address.to_bytes(2, "little")
        if data is None:
            self._request = Kind.READ, place
        else:
            self._request = Kind.WRITE, place + data.to_bytes(4, "little") + bytes((strobe,))
        self._tag = (self._tag + 1) & 0xFF
        self._request_due = 0.0
        self._answer = None

    def answer(self) -> Answer | None:
        """Return the answer to the last request; None while there is none."""
        return self._answer

    def _own_frame(self, frame: Frame, now: float) -> None:
        if frame.kind is Kind.WELCOME:
            self._welcome(Greeting.unpack(frame.sequence, frame.payload), now)
        elif frame.kind is Kind.ANSWER and self.is_open:
            self._answered(frame)

    def _answered(self, frame: Frame) -> None:
        """Take the answer to the request, unless it is one to an earlier request."""
        asked = self._request is not None and frame.sequence == self._tag
        if asked and len(frame.payload) == 5:
            data = int.from_bytes(frame.payload[1:], "little")
            self._answer = Answer(bool(frame.payload[0] & 1), data)
            self._request = None

    def _welcome(self, greeting: Greeting | None, now: float) -> None:
        if greeting is None or self.is_open:
            return
        self.greeting = greeting
        if not self.is_open:
            return
        self.sender.word_bytes = greeting.input_bytes
        self.sender.payload_bytes = greeting.payload_bytes
        self.receiver.word_bytes = greeting.result_bytes
        if self._known:
            self._resumed += 1
        else:
            self._begin(self.session)
        self._known = True
        self._resume(now)

    def _own_next(self, now: float) -> bytes | None:
        if self.greeting is None:
            if now < self._hello:
                return None
            self._hello = now + self.timing.timeout
            hello = Hello(self.session, begin=not self._known)
            # The zero in front ends whatever the board has read so far.
            return b"\0" + encode_frame(Frame(Kind.HELLO, VERSION, hello.pack()), 0)
        if self.is_open and self._request is not None and now >= self._request_due:
            self._request_due = now + self.timing.timeout
            kind, payload = self._request
            return encode_frame(Frame(kind, self._tag, payload), self.session)
        return None
