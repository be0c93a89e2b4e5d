# SPDX-License-Identifier: Apache-2.0
"""One end of a link: bytes in, bytes out, words in, words out; time is passed in."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass

from host.link.frames import Frame, FrameDecoder, Kind, encode_frame
from host.link.receiver import EARLY, Receiver, Response
from host.link.sender import Sender

__all__ = ["Endpoint", "LinkCounters", "Timing"]

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
    """What a link has done and suffered.

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

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name."""
        return asdict(self)


class Endpoint(ABC):
    """What both ends of a link have in common.

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
