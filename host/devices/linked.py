# SPDX-License-Identifier: Apache-2.0
"""A device behind a byte link: its URI, registers, and a session that survives a broken line."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
import secrets
import threading
import time
from typing import Generic, TypeVar

import numpy as np

from host.arrays import UInt64s
from host.devices.contract import (
    Device,
    Exchange,
    Stamps,
    check_words,
    require_bundle,
    uri_options,
)
from host.devices.link import Greeting, HostEndpoint, LinkCounters, Timing
from host.devices.link.endpoint import Answer
from host.devices.link.frames import VERSION as LINK_VERSION
from host.devices.link.transport import Transport, open_serial, open_tcp, open_udp
from host.errors import DeviceError, unusable_uri
from host.protocol.bit_fields import unpack_field
from host.protocol.manifest import Manifest, Word

__all__ = [
    "CONTROL",
    "COUNTERS",
    "ENABLE_ERROR",
    "ENABLE_MARK",
    "ID",
    "INTERRUPT_ENABLE",
    "LinkAddress",
    "LinkSession",
    "LinkedDevice",
    "MAGIC",
    "MAJOR",
    "MANIFEST_HASH",
    "RemoteDevice",
    "SNAPSHOT",
    "VERSION",
    "words_of_bytes",
    "words_to_bytes",
]

# The registers of a shell that the host uses, by their addresses.
#
# The manifest does not list them, because every shell has the same ones (`docs/axi.md`).

#: Register that identifies the map, and its value: the letters "SJKT", the first one lowest.
ID, MAGIC = 0x000, int.from_bytes(b"SJKT", "little")
#: Register with the version of the map: minor in the lower half, major in the upper half. The host
#: knows maps with this major version; minor versions only add registers.
VERSION, MAJOR = 0x004, 1
#: First of eight registers with the manifest's hash, its first byte in the lowest byte.
MANIFEST_HASH = 0x020
#: Register with commands, and the one that copies all counters.
CONTROL, SNAPSHOT = 0x040, 1 << 1
#: Register that can be written and read without any effect on words, and its bits.
INTERRUPT_ENABLE, ENABLE_MARK, ENABLE_ERROR = 0x04C, 1 << 0, 1 << 1
#: Register with the lower half of counter 0; every counter has eight bytes.
COUNTERS = 0x100


# URIs of devices behind a link.
#
# They are ``tcp:HOST:PORT?bundle=DIR``, ``udp:HOST:PORT?bundle=DIR`` and
# ``serial:PATH?baud=N&bundle=DIR``. A server in front of a UART is as slow as that: its URI
# should say ``baud=N`` as well.

#: Longest time for a connection and for a greeting to be answered, in seconds.
SECONDS = 10.0
#: Bytes per second of a network, at the least. Only the times of the link depend on it.
NETWORK_RATE = 1_000_000.0
#: Kinds whose place is a host and a port.
NETWORK_KINDS = ("tcp", "udp")
#: Bits that a UART sends for a byte.
UART_BITS = 10


@dataclass(frozen=True)
class LinkAddress:
    """Address of a device behind a link, as its URI says it.

    Attributes
    ----------
    uri : str
        The whole URI.
    kind : str
        ``tcp``, ``udp`` or ``serial``.
    place : str
        Host and port, or path of the serial port.
    bundle : Path
        Folder of the bundle.
    baud : int
        Baud rate, of a server that of the line behind it; zero if there is no such line.
    reconnect : float
        Seconds for which a lost link is opened again; zero for never.
    """

    uri: str
    kind: str
    place: str
    bundle: Path
    baud: int = 0
    reconnect: float = 0.0

    @classmethod
    def parse(cls, uri: str) -> "LinkAddress":
        """Read a URI.

        Raises
        ------
        UsageError
            If it lacks something, or has an option that is unknown or no number.
        """
        kind = uri.partition(":")[0]
        place, options = uri_options(uri, {"bundle", "reconnect", "baud"})
        if kind in NETWORK_KINDS:
            host, _, port = place.rpartition(":")
            if not host or not port.isdecimal() or int(port) > 0xFFFF:
                raise unusable_uri(uri, f"lacks its host and port, '{kind}:HOST:PORT'")
        elif not place:
            raise unusable_uri(uri, "lacks the path of its serial port")
        baud = _number(uri, options, "baud", "115200" if kind == "serial" else "0")
        if baud != int(baud) or ("baud" in options and baud < 1):
            raise unusable_uri(uri, f"has the baud rate {options['baud']!r}, which is none")
        reconnect = _number(uri, options, "reconnect", "0")
        bundle = Path(options["bundle"])
        return cls(uri, kind, place, bundle, int(baud), reconnect)

    @property
    def bytes_per_second(self) -> float:
        """Bytes that the line carries each way."""
        return self.baud / UART_BITS if self.baud else NETWORK_RATE

    def connect(self, seconds: float) -> Transport:
        """Open the byte stream.

        Raises
        ------
        OSError
            If it cannot be opened.
        UsageError
            If the system has no such baud rate.
        """
        if self.kind in NETWORK_KINDS:
            host, _, port = self.place.rpartition(":")
            if self.kind == "udp":
                return open_udp(host, int(port))
            return open_tcp(host, int(port), seconds)
        try:
            return open_serial(self.place, self.baud)
        except ValueError as error:
            raise unusable_uri(self.uri, f"has a baud rate that {error}") from error


def _number(uri: str, options: dict[str, str], name: str, default: str) -> float:
    text = options.get(name, default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise unusable_uri(uri, f"has the option {name}={text!r}, which is no number from 0 on")
    return number


# A session over a byte stream that may break: greeting, waiting, and opening it again.

#: Frames of the window that the times of the link allow for.
SLOTS = 16
#: Bytes handed to the operating system at once. What it holds cannot be overtaken.
CHUNK = 4096
#: Times that something is sent, at the least, before nobody seems to listen: on a line that damages
#: one byte in a hundred, one greeting or register request in four is lost, or its answer.
TRIES = 8
#: Seconds between two attempts to open a lost byte stream again.
PAUSE = 0.05


#: What to look at when nobody answers, by the scheme of the URI.
_CHECKS = {
    "serial": "that it is connected, that the bitstream is loaded, that the baud rate is the "
    "bitstream's, and that no other program uses it",
    "tcp": "that the server of the board runs there, that the bitstream is loaded, that the URI "
    "has the baud rate of the line behind the server (baud=N), and that no other program uses it",
    "udp": "that the board has this address, that a network card of this machine is in the same "
    "network and no firewall between them, and that the bitstream is loaded",
}


def _silent(uri: str, told: str, fault: str = "") -> DeviceError:
    """Return the error of a board that did not answer."""
    return DeviceError(f"Device {uri!r} {told}; check {_CHECKS[uri.partition(':')[0]]}.", fault)


def _older(uri: str, what: str, board: object, kit: object) -> DeviceError:
    """Return the error of a board whose bitstream another version of the kit has made."""
    return DeviceError(
        f"Device {uri!r} has the {what} {board}, but this kit has {kit}: another version of the "
        f"kit made the bitstream; make it again (`make bitstream BOARD=...`) and load it, or use "
        f"that version.",
        "other",
    )


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
    DeviceError
        If the board does not answer, or is another one than the manifest says.
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
            told = f"could not be opened within {SECONDS:g} s: {error}"
            raise _silent(address.uri, told) from error
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
        DeviceError
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
        DeviceError
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
        DeviceError
            If no answer comes.
        """
        self.endpoint.request(address, data, strobe)
        self.until(
            lambda: self.endpoint.answer() is not None, f"an answer from register {address:#x}"
        )
        answer = self.endpoint.answer()
        assert answer is not None
        return answer

    def lost(self, reason: str, *, can_resume: bool = True) -> DeviceError:
        """Return the error that says what was answered and what not.

        Parameters
        ----------
        reason : str
            How the link was lost.
        can_resume : bool
            Whether the board may still know the session.
        """
        remedy = (
            "add reconnect=SECONDS to the URI, and a run continues where it stood"
            if can_resume
            else "nothing can be continued; open the device again and run the join again"
        )
        return DeviceError(
            f"Link to device {self.address.uri!r} was lost: {reason}. Of {self.accepted} input "
            f"words, the board has acknowledged {self.endpoint.sender.delivered}; {self.results} "
            f"result words have come; {remedy}.",
            "lost",
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
        DeviceError, OSError
        """
        end = time.monotonic() + seconds
        while self.endpoint.greeting is None:
            self._step(0.05)
            if self.endpoint.greeting is None and time.monotonic() > end:
                garbled = self.endpoint.counters().garbled
                heard = f"{garbled} pieces came that were no frame" if garbled else "no byte came"
                raise _silent(
                    self.address.uri,
                    f"did not answer the greeting within {seconds:g} s ({heard})",
                    "garbled" if garbled else "silent",
                )
        self._heard = time.monotonic()
        self._check(self.endpoint.greeting)

    def _check(self, greeting: Greeting) -> None:
        manifest = self.manifest
        sizes = (manifest.input_word.bits, manifest.result_word.bits)
        if greeting.version != LINK_VERSION:
            raise _older(self.address.uri, "link version", greeting.version, LINK_VERSION)
        for what, board, bundle in [
            ("manifest hash", greeting.hash.hex(), manifest.hash),
            ("input word bytes", str(greeting.input_bytes), str(-(-sizes[0] // 8))),
            ("result word bytes", str(greeting.result_bytes), str(-(-sizes[1] // 8))),
        ]:
            require_bundle(self.address.uri, board, bundle, what)

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
            except DeviceError as error:
                if error.fault not in ("silent", "garbled", "lost"):
                    raise
                break
            if self.endpoint.is_open:
                return
            greeting = self.endpoint.greeting
            assert greeting is not None
            other = f"is in session {greeting.session:#x}" if greeting.session else "was reset"
            raise self.lost(f"{reason}; the board {other} meanwhile", can_resume=False)
        raise self.lost(reason)


# A device behind a byte link: a board at a serial port, or at a port of TCP or UDP.


def words_to_bytes(words: UInt64s, word: Word) -> bytes:
    """Return words as they pass a link: whole bytes, the lowest first."""
    rows = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return rows.reshape(-1, 8 * word.columns)[:, : -(-word.bits // 8)].tobytes()


def words_of_bytes(data: bytes, word: Word) -> UInt64s:
    """Return the words that :func:`words_to_bytes` made ``data`` of."""
    size = -(-word.bits // 8)
    rows = np.zeros((len(data) // size, 8 * word.columns), np.uint8)
    rows[:, :size] = np.frombuffer(data, np.uint8).reshape(-1, size)
    return rows.view("<u8").astype(np.uint64, copy=False)


# A device behind a connection: words are offered, and results given out up to a mark.

C = TypeVar("C")


class RemoteDevice(Device, Generic[C]):
    """An accelerator behind a connection, which threads use one after another.

    Stamps are zero, because the cycles of words are not known to the host. A subclass opens the
    connection, and says how words go and come.

    Parameters
    ----------
    uri : str
        What the device was opened with.
    manifest : Manifest
        Description of the accelerator.

    Attributes
    ----------
    quiet_seconds : float
        Time without any progress after which :meth:`exchange` returns.
    returns_early : bool
        Whether :meth:`exchange` also returns when all words are accepted, if there are no more
        ``cycles`` than words.
    """

    quiet_seconds = 0.02
    returns_early = False

    def __init__(self, uri: str, manifest: Manifest) -> None:
        self.uri, self.manifest = uri, manifest
        self._kind = manifest.result_word["kind"]
        self._mark = manifest.result_kinds["MARK"]
        self._running = threading.RLock()
        self._connection: C | None = None
        self._ready = np.zeros((0, manifest.result_word.columns), np.uint64)

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """See :meth:`Device.exchange`.

        It returns when ``results`` is full or ends with a mark, or when nothing has happened for
        :attr:`quiet_seconds`.
        """
        check_words(self.manifest, words, results)
        with self._running:
            connection = self._opened()
            accepted = produced = 0
            quiet = time.monotonic() + self.quiet_seconds
            while True:
                taken = self._offer(connection, words[accepted:])
                delivered, marked = self._deliver(connection, results[produced:])
                accepted, produced = accepted + taken, produced + delivered
                done = marked or produced == len(results)
                if self.returns_early and cycles <= len(words):
                    done |= 0 < len(words) == accepted and not delivered
                now = time.monotonic()
                moved = bool(taken or delivered)
                if moved:
                    quiet = now + self.quiet_seconds
                came = self._wait(connection, 0.0 if done or moved else max(0.0, quiet - now))
                if done or not (moved or came or time.monotonic() < quiet):
                    break
        return Exchange.uncounted(accepted, produced, stamps)

    def close(self) -> None:
        """Close the connection; closing it again has no effect."""
        with self._running:
            connection, self._connection = self._connection, None
            if connection is not None:
                self._release(connection)

    def _opened(self) -> C:
        if self._connection is None:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        return self._connection

    def _deliver(self, connection: C, results: UInt64s) -> tuple[int, bool]:
        """Give out results up to a mark; return how many, and whether the last one is a mark."""
        if not len(self._ready):
            self._ready = self._arrived(connection)
        some = self._ready[: len(results)]
        marks = np.flatnonzero(unpack_field(some, self._kind) == self._mark)
        count = int(marks[0]) + 1 if len(marks) else len(some)
        results[:count] = some[:count]
        self._ready = self._ready[count:]
        return count, len(marks) > 0

    @abstractmethod
    def _offer(self, connection: C, words: UInt64s) -> int:
        """Begin to send the first of these words; return how many are accepted."""

    @abstractmethod
    def _arrived(self, connection: C) -> UInt64s:
        """Return the result words that have come since the last call."""

    @abstractmethod
    def _wait(self, connection: C, seconds: float) -> bool:
        """Wait for at most so long until something happens; return whether anything has come."""

    @abstractmethod
    def _release(self, connection: C) -> None:
        """Close the connection."""


class LinkedDevice(RemoteDevice[LinkSession]):
    """An accelerator behind a link (``docs/link.md``).

    A device begins a session of its own, with which the accelerator is reset. An accepted word is
    in the host's window: it is sent, and sent again if it must be, in this call or a later one. If
    the link was lost, the error says how many words the board has acknowledged.

    Parameters
    ----------
    uri : str
        ``tcp:HOST:PORT?bundle=DIR``, ``udp:HOST:PORT?bundle=DIR`` or
        ``serial:PATH?baud=N&bundle=DIR``; see
        :class:`LinkAddress`.

    Raises
    ------
    UsageError
        If the URI lacks something.
    ManifestError
        If the bundle cannot be used.
    DeviceError
        If there is no board, or another one.
    """

    def __init__(self, uri: str) -> None:
        address = LinkAddress.parse(uri)
        super().__init__(uri, Manifest.load(address.bundle))
        if len(self.manifest.result_ports) != 1:
            raise DeviceError(
                f"Device {uri!r} names a bundle with {len(self.manifest.result_ports)} result "
                f"ports, but a link carries one; use a bundle with result_streams=1."
            )
        self._connection = LinkSession(address, self.manifest)
        try:
            self._check_registers()
        except BaseException:
            self.close()
            raise

    def counters(self) -> dict[str, int]:
        """Return the performance counters, copied at one moment and read one after the other."""
        with self._running:
            session = self._opened()
            # Only the lowest byte, because the second one holds CONTROL.ENABLE.
            session.request(CONTROL, SNAPSHOT, strobe=0b0001)
            found = {}
            for counter in self.manifest.counters:
                low, high = (session.request(COUNTERS + 8 * counter.address + at) for at in (0, 4))
                if low.refused or high.refused:
                    raise DeviceError(
                        f"Device {self.uri!r} has no counter {counter.name!r} at register "
                        f"{COUNTERS + 8 * counter.address:#x}; load the bundle's bitstream."
                    )
                found[counter.name] = low.data | high.data << 32
            return found

    def request(self, address: int, data: int | None = None, strobe: int = 0xF) -> Answer:
        """Read a register of the board's shell, or write to it.

        Parameters
        ----------
        address : int
            Address of the register in bytes.
        data : int, optional
            What to write, 32 bits; without it, the register is read.
        strobe : int
            Which of the four bytes to write, the lowest bit for the lowest byte.

        Raises
        ------
        DeviceError
            If no answer comes.
        """
        with self._running:
            return self._opened().request(address, data, strobe)

    @property
    def greeting(self) -> Greeting:
        """What the board has said about itself."""
        greeting = self._opened().endpoint.greeting
        assert greeting is not None
        return greeting

    def _check_registers(self) -> None:
        """Raise :exc:`DeviceError` unless the board has registers that this kit knows."""
        found = self.request(ID)
        if found.refused or found.data != MAGIC:
            board = "none" if found.refused else f"{found.data:#010x}"
            raise _older(self.uri, "register map", board, f"{MAGIC:#010x}")
        version = self.request(VERSION).data
        if version >> 16 != MAJOR:
            board = f"{version >> 16}.{version & 0xFFFF}"
            raise _older(self.uri, "register map version", board, f"{MAJOR}.x")

    def link_counters(self) -> LinkCounters:
        """Return what happened on this side of the link."""
        with self._running:
            return self._opened().endpoint.counters()

    def _offer(self, connection: LinkSession, words: UInt64s) -> int:
        sender = connection.endpoint.sender
        count = min(len(words), sender.room // sender.word_bytes)
        if count:
            sender.offer(words_to_bytes(words[:count], self.manifest.input_word))
            connection.accepted += count
        return count

    def _arrived(self, connection: LinkSession) -> UInt64s:
        receiver = connection.endpoint.receiver
        words = words_of_bytes(receiver.take(receiver.waiting), self.manifest.result_word)
        connection.results += len(words)
        return words

    def _wait(self, connection: LinkSession, seconds: float) -> bool:
        return connection.step(seconds)

    def _release(self, connection: LinkSession) -> None:
        connection.close()
