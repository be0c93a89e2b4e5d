# SPDX-License-Identifier: Apache-2.0
"""A session over a byte stream that may break: greeting, waiting, and opening it again."""

from collections.abc import Callable
import secrets
import time

from host.device.link_address import SECONDS, LinkAddress
from host.errors import LinkLostError, LinkMismatchError, LinkSilentError
from host.link import Greeting, HostEndpoint, Timing
from host.link.greeting import VERSION
from host.link.host_endpoint import Answer
from host.link.transport import Transport
from host.manifest import Manifest

__all__ = ["LinkSession"]

#: Frames of the window that the times of the link allow for.
SLOTS = 16
#: Bytes handed to the operating system at once. What it holds cannot be overtaken.
CHUNK = 4096
#: Times that something is sent, at the least, before nobody seems to listen: on a line that damages
#: one byte in a hundred, one greeting or register request in four is lost, or its answer.
TRIES = 8
#: Seconds between two attempts to open a lost byte stream again.
PAUSE = 0.05


class LinkSession:
    """One session with a board.

    Parameters
    ----------
    address : LinkAddress
        Where the board is.
    manifest : Manifest
        What the board must be.

    Attributes
    ----------
    endpoint : HostEndpoint
        The host's end of the link.
    silence_seconds : float
        Longest time without a frame from the board, or without an answer: 10 s, or on a slow line
        the time for eight attempts.
    accepted, results : int
        Input words and result words so far.

    Raises
    ------
    LinkSilentError
        If the board does not answer.
    LinkMismatchError
        If it is another one than the manifest says.
    """

    def __init__(self, address: LinkAddress, manifest: Manifest) -> None:
        self.address = address
        self.manifest = manifest
        self.accepted = self.results = 0
        timing = Timing.at(address.bytes_per_second, slots=SLOTS)
        self.silence_seconds = max(SECONDS, TRIES * timing.timeout)
        self.endpoint = HostEndpoint(secrets.randbelow((1 << 32) - 1) + 1, timing=timing)
        self._waiting = b""
        self._transport: Transport | None = None
        self._heard = time.monotonic()
        try:
            self._transport = address.connect(SECONDS)
            self._greet(self.silence_seconds)
        except OSError as error:
            self.close()
            raise LinkSilentError(address.uri, SECONDS, 0, str(error)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the byte stream."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def step(self, seconds: float) -> bool:
        """Send and receive what is possible; return whether anything was received.

        Parameters
        ----------
        seconds : float
            Longest time to wait for bytes.

        Raises
        ------
        LinkLostError
            If the link is lost, and was not found again within the time that the URI allows.
        """
        try:
            return self._step(seconds)
        except OSError as error:
            self._find_again(str(error) or type(error).__name__)
            return True

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds.

        Raises
        ------
        LinkLostError
            If the link is lost, or the condition does not hold in time.
        """
        end = time.monotonic() + self.silence_seconds
        while not condition():
            self.step(0.1)
            if time.monotonic() > end:
                raise self.lost(f"{what} did not come within {self.silence_seconds:g} s")

    def request(self, address: int, data: int | None = None, strobe: int = 0xF) -> Answer:
        """Read or write a register.

        Raises
        ------
        LinkLostError
            If no answer comes.
        """
        self.endpoint.request(address, data, strobe)
        self.until(
            lambda: self.endpoint.answer() is not None, f"an answer from register {address:#x}"
        )
        answer = self.endpoint.answer()
        assert answer is not None
        return answer

    def lost(self, reason: str, *, can_resume: bool = True) -> LinkLostError:
        """Return the error that says what was answered and what not."""
        return LinkLostError(
            self.address.uri,
            reason,
            accepted=self.accepted,
            delivered=self.endpoint.sender.delivered,
            results=self.results,
            can_resume=can_resume,
        )

    def _step(self, seconds: float) -> bool:
        if self._transport is None:
            raise ConnectionError("it was closed")
        now = time.monotonic()
        if len(self._waiting) < CHUNK:
            self._waiting += self.endpoint.transmit(now, CHUNK - len(self._waiting))
        wait = max(0.0, min(seconds, self.endpoint.deadline - now))
        sent, received = self._transport.exchange(self._waiting, wait)
        self._waiting = self._waiting[sent:]
        now = time.monotonic()
        if received:
            self.endpoint.receive(received, now)
        heard = self.endpoint.heard
        self._heard = self._heard if heard is None else max(self._heard, heard)
        if self.endpoint.is_open and now - self._heard > self.silence_seconds:
            raise ConnectionError(f"the board was silent for {self.silence_seconds:g} s")
        return bool(received)

    def _greet(self, seconds: float) -> None:
        """Wait until the board has answered the greeting, and check what it says.

        Raises
        ------
        LinkSilentError, LinkMismatchError, OSError
        """
        end = time.monotonic() + seconds
        while self.endpoint.greeting is None:
            self._step(0.05)
            if self.endpoint.greeting is None and time.monotonic() > end:
                garbled = self.endpoint.counters().garbled
                raise LinkSilentError(self.address.uri, seconds, garbled)
        self._heard = time.monotonic()
        self._check(self.endpoint.greeting)

    def _check(self, greeting: Greeting) -> None:
        manifest = self.manifest
        sizes = (manifest.input_word.bits, manifest.result_word.bits)
        if greeting.version != VERSION:
            raise LinkMismatchError(
                self.address.uri, "link version", str(greeting.version), str(VERSION), older=True
            )
        for what, board, bundle in [
            ("manifest hash", greeting.hash.hex(), manifest.hash),
            ("input word bytes", str(greeting.input_bytes), str(-(-sizes[0] // 8))),
            ("result word bytes", str(greeting.result_bytes), str(-(-sizes[1] // 8))),
        ]:
            if board != bundle:
                raise LinkMismatchError(self.address.uri, what, board, bundle)

    def _find_again(self, reason: str) -> None:
        """Open the byte stream again and resume the session, for as long as the URI allows."""
        end = time.monotonic() + self.address.reconnect
        if self._transport is not None:
            self._transport.close()
        while time.monotonic() < end:
            try:
                self._waiting = b""
                self._transport = self.address.connect(max(0.1, end - time.monotonic()))
                self.endpoint.reconnect(time.monotonic())
                self._greet(max(0.1, end - time.monotonic()))
            except OSError:
                time.sleep(PAUSE)
                continue
            except LinkSilentError:
                break
            if self.endpoint.is_open:
                return
            greeting = self.endpoint.greeting
            assert greeting is not None
            other = f"is in session {greeting.session:#x}" if greeting.session else "was reset"
            raise self.lost(f"{reason}; the board {other} meanwhile", can_resume=False)
        raise self.lost(reason)
