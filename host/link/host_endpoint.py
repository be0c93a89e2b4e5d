# SPDX-License-Identifier: Apache-2.0
"""The host's end of a link: it begins and resumes sessions, and reads and writes registers."""

from typing import NamedTuple

from host.link.endpoint import Endpoint, Timing
from host.link.frames import Frame, Kind, encode_frame
from host.link.greeting import VERSION, Greeting, Hello

__all__ = ["Answer", "HostEndpoint"]


class Answer(NamedTuple):
    """Answer to a register request: whether the register refused, and what was read."""

    refused: bool
    data: int


class HostEndpoint(Endpoint):
    """The host's end of a link.

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
