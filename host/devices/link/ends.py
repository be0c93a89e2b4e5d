# SPDX-License-Identifier: Apache-2.0
"""The two ends of a link: the host's, and a board's in Python."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from host.devices.link.endpoint import Endpoint, Timing
from host.devices.link.frames import VERSION, Frame, Greeting, Hello, Kind, encode_frame

__all__ = [
    "Answer",
    "BoardEndpoint",
    "HostEndpoint",
]

# The host's end of a link: it begins and resumes sessions, and reads and writes registers.


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


# The board's end of a link in Python: the model of the circuit, and a board for tests.

Registers = Callable[[int, int | None, int], int | None]


def _no_registers(address: int, data: int | None, strobe: int) -> int | None:
    del address, data, strobe
    return None


class BoardEndpoint(Endpoint):
    """The board's end of a link. It sends result words, and takes input words.

    Parameters
    ----------
    greeting : Greeting
        What the board is.
    registers : callable, optional
        Gets the address of a register, what to write or None, and the byte enables. It returns what
        was read (anything for a write), or None to refuse.
    begun : callable, optional
        Called when a new session begins, to reset the accelerator.
    timing : Timing
        Times.
    """

    def __init__(
        self,
        greeting: Greeting,
        *,
        registers: Registers = _no_registers,
        begun: Callable[[], None] | None = None,
        timing: Timing | None = None,
    ) -> None:
        super().__init__(
            send_slots=greeting.send_slots,
            receive_slots=greeting.receive_slots,
            timing=timing or Timing(),
        )
        self.greeting = greeting
        self._registers = registers
        self._begun = begun
        self._session = 0
        self._welcome_due = False
        self._tag = -1  # of the last request
        self._answer = b""
        self._answer_due = False
        self.sender.word_bytes = greeting.result_bytes
        self.sender.payload_bytes = greeting.payload_bytes
        self.receiver.word_bytes = greeting.input_bytes

    @property
    def is_open(self) -> bool:
        """Whether a session has begun."""
        return self._session != 0

    def _own_frame(self, frame: Frame, now: float) -> None:
        if frame.kind is Kind.HELLO:
            hello = Hello.unpack(frame.payload)
            if hello is not None and hello.session:
                self._hello(hello, now)
        elif frame.kind in (Kind.READ, Kind.WRITE) and self.is_open:
            self._request(frame)

    def _hello(self, hello: Hello, now: float) -> None:
        """Begin a session, or resume the current one. A repeated HELLO resumes."""
        self._welcome_due = True
        if hello.session == self._session:
            self._resumed += 1
            self._resume(now)
        elif hello.begin:
            self._session = hello.session
            self._begin(hello.session)
            self._tag = -1
            self._answer_due = False
            self._due = True
            if self._begun is not None:
                self._begun()

    def _request(self, frame: Frame) -> None:
        """Execute a request once; a repeated one is answered again."""
        if frame.sequence == (self._tag + 1) & 0xFF:
            answer = self._executed(frame)
            if answer is None:
                return
            self._tag, self._answer = frame.sequence, answer
        self._answer_due = frame.sequence == self._tag

    def _executed(self, frame: Frame) -> bytes | None:
        body = frame.payload
        if len(body) != (2 if frame.kind is Kind.READ else 7):
            return None
        address = int.from_bytes(body[:2], "little")
        data, strobe = None, 0
        if frame.kind is Kind.WRITE:
            data, strobe = int.from_bytes(body[2:6], "little"), body[6]
        found = self._registers(address, data, strobe)
        read = 0 if found is None or frame.kind is Kind.WRITE else found
        return bytes((found is None,)) + read.to_bytes(4, "little")

    def _own_next(self, now: float) -> bytes | None:
        if self._welcome_due:
            self._welcome_due = False
            greeting = replace(self.greeting, session=self._session)
            return encode_frame(Frame(Kind.WELCOME, greeting.version, greeting.pack()), 0)
        if self._answer_due:
            self._answer_due = False
            return encode_frame(Frame(Kind.ANSWER, self._tag, self._answer), self._session)
        return None
