# SPDX-License-Identifier: Apache-2.0
"""One end of a link: bytes in, bytes out, words in, words out; time is passed in."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass

from host.link.frames import Frame, FrameDecoder, Kind, encode_frame
from host.link.receiver import Receiver, Response
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
        Pieces of the byte stream that were no frame, and frames of words that came too early or
        again.
    asked : int
        Times that the other side was asked to send again.
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
        self._told = 0, 0  # expected and limit of the last acknowledgement
        self._again = False  # a NAK is due
        self._due = False  # an acknowledgement is due, even if it says nothing new
        self._unacknowledged = 0
        self._beat = 0.0  # when the next heartbeat is due

    # ---- the byte stream

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes of the byte stream."""
        self._in += len(data)
        for frame in self._decoder.feed(data):
            if frame is None:
                self._respond(self.receiver.garbled())
            else:
                self.heard = now
                self._frame(frame, now)

    def transmit(self, now: float, room: int) -> bytes:
        """Return bytes for the byte stream, whole frames.

        Parameters
        ----------
        now : float
            Time in seconds.
        room : int
            Number of bytes after which no further frame is added.
        """
        parts: list[bytes] = []
        total = 0
        while total < room and (part := self._next(now)) is not None:
            parts.append(part)
            total += len(part)
        self._out += total
        return b"".join(parts)

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
        self._again, self._unacknowledged = False, 0

    def _resume(self, now: float) -> None:
        """Send again what may have been lost, and tell what is expected."""
        self.sender.go_back(now)
        self._due = True

    def _forget_bytes(self) -> None:
        """Begin with a byte stream of which nothing has been read yet."""
        old, self._decoder = self._decoder, FrameDecoder()
        self._decoder.session = old.session
        self._garbled += old.garbled

    def _frame(self, frame: Frame, now: float) -> None:
        if frame.kind in (Kind.ACK, Kind.NAK):
            if self.is_open and len(frame.payload) == 1:
                again = frame.kind is Kind.NAK
                self.sender.acknowledge(frame.sequence, frame.payload[0], again=again, now=now)
        elif frame.kind is Kind.DATA:
            if self.is_open:
                self._unacknowledged += 1
                self._respond(self.receiver.accept(frame.sequence, frame.payload))
        else:
            self._own_frame(frame, now)

    def _respond(self, response: Response) -> None:
        if response is Response.NAK:
            self._again = True
        elif response is Response.ACK:
            self._due = True

    def _next(self, now: float) -> bytes | None:
        own = self._own_next(now)
        if own is not None or not self.is_open:
            return own
        if self._again or self._unacknowledged >= UNACKNOWLEDGED or now >= self._beat:
            return self._acknowledgement(now)
        data = self.sender.next_frame(now)
        if data is not None:
            return data
        if self._due or self._told != (self.receiver.expected, self.receiver.limit):
            return self._acknowledgement(now)
        return None

    def _acknowledgement(self, now: float) -> bytes:
        kind = Kind.NAK if self._again else Kind.ACK
        self._asked += self._again
        self._told = self.receiver.expected, self.receiver.limit
        self._again, self._due, self._unacknowledged = False, False, 0
        self._beat = now + self.timing.heartbeat
        frame = Frame(kind, self._told[0], bytes((self._told[1],)))
        return encode_frame(frame, self.sender.session)
