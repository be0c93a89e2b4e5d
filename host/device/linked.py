# SPDX-License-Identifier: Apache-2.0
"""A device behind a byte link: a board at a serial port, or at a port of TCP or UDP."""

import threading
import time

import numpy as np

from host.device.contract import Device, Exchange, Stamps, check_words
from host.device.link_address import LinkAddress
from host.device.link_session import LinkSession
from host.device.shell_registers import (
    CONTROL,
    COUNTERS,
    ID,
    MAGIC,
    MAJOR,
    SNAPSHOT,
    VERSION,
)
from host.errors import DeviceError, LinkError, LinkMismatchError
from host.link import Greeting, LinkCounters
from host.link.host_endpoint import Answer
from host.manifest import Manifest, Word
from host.reference.exact import UInt64s
from host.words import unpack_field

__all__ = ["LinkedDevice", "words_of_bytes", "words_to_bytes"]


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


class LinkedDevice(Device):
    """An accelerator behind a link (``docs/link.md``).

    A device begins a session of its own, with which the accelerator is reset. Stamps are zero,
    because the cycles of a board are not known to its host.

    Parameters
    ----------
    uri : str
        ``tcp:HOST:PORT?bundle=DIR``, ``udp:HOST:PORT?bundle=DIR`` or
        ``serial:PATH?baud=N&bundle=DIR``; see
        :class:`host.device.link_address.LinkAddress`.

    Raises
    ------
    DeviceUriError
        If the URI lacks something.
    ManifestError
        If the bundle cannot be used.
    LinkError
        If there is no board, or another one.

    Attributes
    ----------
    quiet_seconds : float
        Time without any progress after which :meth:`exchange` returns.
    """

    quiet_seconds = 0.02

    def __init__(self, uri: str) -> None:
        self.uri = uri
        address = LinkAddress.parse(uri)
        self.manifest = Manifest.load(address.bundle)
        if len(self.manifest.result_ports) != 1:
            raise LinkError(
                f"Device {uri!r} names a bundle with {len(self.manifest.result_ports)} result "
                f"ports, but a link carries one; use a bundle with result_streams=1."
            )
        self._kind = self.manifest.result_word["kind"]
        self._mark = self.manifest.result_kinds["MARK"]
        self._running = threading.RLock()
        self._session: LinkSession | None = LinkSession(address, self.manifest)
        try:
            self._check_registers()
        except BaseException:
            self.close()
            raise
        self._ready = np.zeros((0, self.manifest.result_word.columns), np.uint64)

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
        :attr:`quiet_seconds`. An accepted word is in the host's window: it is sent, and sent again
        if it must be, in this call or a later one.

        Raises
        ------
        LinkLostError
            If the link was lost; the error says how many words the board has acknowledged.
        """
        check_words(self.manifest, words, results)
        with self._running:
            session = self._opened()
            accepted, produced = 0, 0
            quiet = time.monotonic() + self.quiet_seconds
            while True:
                taken = self._offer(session, words[accepted:])
                delivered, marked = self._deliver(session, results[produced:])
                accepted, produced = accepted + taken, produced + delivered
                done = marked or produced == len(results)
                now = time.monotonic()
                if taken or delivered:
                    quiet = now + self.quiet_seconds
                received = session.step(0.0 if done else quiet - now)
                if done or (not received and time.monotonic() >= quiet):
                    break
        if stamps is not None:
            stamps.accepted[:accepted] = 0
            stamps.produced[:produced] = 0
        return Exchange(accepted, produced, 0)

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
        LinkLostError
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
        """Raise :exc:`LinkMismatchError` unless the board has registers that this kit knows."""
        found = self.request(ID)
        if found.refused or found.data != MAGIC:
            board = "none" if found.refused else f"{found.data:#010x}"
            raise LinkMismatchError(self.uri, "register map", board, f"{MAGIC:#010x}", older=True)
        version = self.request(VERSION).data
        if version >> 16 != MAJOR:
            board = f"{version >> 16}.{version & 0xFFFF}"
            raise LinkMismatchError(
                self.uri, "register map version", board, f"{MAJOR}.x", older=True
            )

    def link_counters(self) -> LinkCounters:
        """Return what happened on this side of the link."""
        with self._running:
            return self._opened().endpoint.counters()

    def close(self) -> None:
        """Close the byte stream; closing it again has no effect."""
        with self._running:
            session, self._session = self._session, None
            if session is not None:
                session.close()

    def _opened(self) -> LinkSession:
        if self._session is None:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        return self._session

    def _offer(self, session: LinkSession, words: UInt64s) -> int:
        """Put words into the window; return how many."""
        sender = session.endpoint.sender
        count = min(len(words), sender.room // sender.word_bytes)
        if count:
            sender.offer(words_to_bytes(words[:count], self.manifest.input_word))
            session.accepted += count
        return count

    def _deliver(self, session: LinkSession, results: UInt64s) -> tuple[int, bool]:
        """Give out results up to a mark; return how many, and whether the last one is a mark."""
        if not len(self._ready):
            receiver = session.endpoint.receiver
            data = receiver.take(receiver.waiting)
            self._ready = words_of_bytes(data, self.manifest.result_word)
            session.results += len(self._ready)
        some = self._ready[: len(results)]
        marks = np.flatnonzero(unpack_field(some, self._kind) == self._mark)
        count = int(marks[0]) + 1 if len(marks) else len(some)
        results[:count] = some[:count]
        self._ready = self._ready[count:]
        return count, len(marks) > 0
