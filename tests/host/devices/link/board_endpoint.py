# SPDX-License-Identifier: Apache-2.0
"""The board's end of a link in Python: the model of the circuit, and a board for tests."""

from collections.abc import Callable
from dataclasses import replace

from host.devices.link import Endpoint, Frame, Greeting, Kind, Timing, encode_frame
from host.devices.link.frames import Hello

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
