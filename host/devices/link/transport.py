# SPDX-License-Identifier: Apache-2.0
"""Byte streams that a link runs over: whatever has a file descriptor, and datagrams."""

from collections.abc import Callable
import os
import select
import socket
import sys
from typing import Any, Protocol

__all__ = [
    "DATAGRAM_BYTES",
    "DatagramTransport",
    "DescriptorTransport",
    "Numbering",
    "Transport",
    "await_events",
    "open_serial",
    "open_tcp",
    "open_udp",
]

# Byte streams that a link runs over: whatever has a file descriptor.

#: Most bytes read at once.
READ_BYTES = 1 << 16


class Transport(Protocol):
    """A byte stream as a session uses it."""

    def exchange(self, data: bytes, seconds: float) -> tuple[int, bytes]:
        """Send from the front of ``data`` and receive what is there, whatever is possible at once.

        Parameters
        ----------
        data : bytes
            May be empty.
        seconds : float
            Longest time to wait until something is possible.

        Returns
        -------
        tuple of int and bytes
            Number of bytes sent, and the bytes received.

        Raises
        ------
        OSError
            If the byte stream was closed, has ended or failed.
        """

    def close(self) -> None:
        """Close the byte stream; closing it again has no effect."""


def await_events(descriptor: int, *, sends: bool, seconds: float) -> int:
    """Wait until something can be received, or sent if ``sends``; return the events of poll.

    The result is zero if nothing has become possible within so many seconds.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | (select.POLLOUT if sends else 0))
    events = poll.poll(max(0.0, seconds) * 1000)
    return events[0][1] if events else 0


class DescriptorTransport:
    """A byte stream over a file descriptor: a socket, a serial port, a pseudo-terminal.

    Parameters
    ----------
    descriptor : int
        Open for reading and writing. It is made non-blocking.
    close : callable
        Closes it.
    """

    def __init__(self, descriptor: int, close: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._close = close
        self._is_open = True
        os.set_blocking(descriptor, False)

    def exchange(self, data: bytes, seconds: float) -> tuple[int, bytes]:
        """See :meth:`Transport.exchange`."""
        if not self._is_open:
            raise ConnectionError("it was closed on this side")
        events = await_events(self._descriptor, sends=bool(data), seconds=seconds)
        sent, received = 0, b""
        if data and events & select.POLLOUT:
            try:
                sent = os.write(self._descriptor, data)
            except BlockingIOError:
                sent = 0
        if events & ~select.POLLOUT:
            try:
                received = os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                return sent, b""
            if not received:
                raise ConnectionError("the other side closed it")
        return sent, received

    def close(self) -> None:
        """See :meth:`Transport.close`."""
        if self._is_open:
            self._is_open = False
            self._close()


def open_tcp(host: str, port: int, seconds: float) -> DescriptorTransport:
    """Connect to a TCP server.

    Parameters
    ----------
    seconds : float
        Longest time until the connection stands.

    Raises
    ------
    OSError
        If nobody listens there.
    """
    connected = socket.create_connection((host, port), timeout=seconds)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return DescriptorTransport(connected.fileno(), connected.close)


def open_serial(path: str, baud: int) -> DescriptorTransport:
    """Open a serial port or pseudo-terminal: 8 data bits, no parity, 1 stop bit, no translation.

    Raises
    ------
    OSError
        If it cannot be opened, is no terminal, or another program has locked it.
    ValueError
        If the system has no such baud rate.
    """
    if sys.platform == "win32":
        raise OSError("serial ports need termios, which this system lacks")
    import fcntl
    import termios

    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        known = sorted(int(n[1:]) for n in dir(termios) if n[0] == "B" and n[1:].isdecimal())
        raise ValueError(f"must be one of {', '.join(map(str, known[1:]))}, not {baud}")
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        # Two sessions at once would end one another.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        *_, characters = termios.tcgetattr(descriptor)
        characters[termios.VMIN], characters[termios.VTIME] = 0, 0
        control = termios.CS8 | termios.CREAD | termios.CLOCAL
        raw = [0, 0, control, 0, speed, speed, characters]
        termios.tcsetattr(descriptor, termios.TCSANOW, raw)
        termios.tcflush(descriptor, termios.TCIOFLUSH)
    except termios.error as error:
        os.close(descriptor)
        raise OSError(*error.args) from error
    except BaseException:
        os.close(descriptor)
        raise
    return DescriptorTransport(descriptor, lambda: os.close(descriptor))


# The byte stream of a link in datagrams: how they are numbered, and a transport over UDP.

#: Most bytes of the byte stream in a datagram. A board stores a datagram before it sends it.
DATAGRAM_BYTES = 1024
#: Bytes of the number in front of them, the lowest first.
NUMBER_BYTES = 4
#: Most datagrams received at once.
BURST = 64
#: Bytes of the longest datagram of UDP.
LONGEST = 1 << 16

Address = tuple[Any, ...]


class Numbering:
    """Numbers the datagrams of one side, and refuses those of the other side that come late.

    The link repeats what is lost, but its frames are numbered modulo 256: a copy of a frame that
    came hundreds of frames late could pass for a new one. So a datagram is taken only if its number
    is ahead of all that came before. Number 0 is always taken, because the other side has begun
    anew with it.

    Parameters
    ----------
    first : int
        Number of the first datagram of this side.
    """

    def __init__(self, first: int = 0) -> None:
        self._sent = first
        self._last: int | None = None

    def pack(self, data: bytes) -> bytes:
        """Return the next datagram, with ``data`` in it."""
        number, self._sent = self._sent, (self._sent + 1) & 0xFFFF_FFFF
        return number.to_bytes(NUMBER_BYTES, "little") + data

    def unpack(self, datagram: bytes) -> bytes:
        """Return the bytes of a datagram; none if it is late or has no number."""
        if len(datagram) < NUMBER_BYTES:
            return b""
        number = int.from_bytes(datagram[:NUMBER_BYTES], "little")
        if self._last is not None and number:
            ahead = (number - self._last) & 0xFFFF_FFFF
            if not 0 < ahead < 1 << 31:
                return b""
        self._last = number
        return datagram[NUMBER_BYTES:]

    def forget(self) -> None:
        """Take any number next, because another peer sends it."""
        self._last = None


class DatagramTransport:
    """A byte stream in datagrams of UDP. Datagrams may be lost, doubled and overtaken.

    Parameters
    ----------
    link : socket.socket
        A UDP socket. If it is not connected, datagrams go to the peer that spoke last, and nothing
        is sent before one has spoken. It is made non-blocking, and closed by :meth:`close`.
    """

    def __init__(self, link: socket.socket) -> None:
        self._socket = link
        self._numbering = Numbering()
        self._peer: Address | None = _connected_to(link)
        self._is_connected = self._peer is not None
        self._is_open = True
        link.setblocking(False)

    def exchange(self, data: bytes, seconds: float) -> tuple[int, bytes]:
        """See :meth:`Transport.exchange`.

        It also fails if the system says that nobody is there.
        """
        if not self._is_open:
            raise ConnectionError("it was closed on this side")
        peer = self._peer if data else None
        if not await_events(self._socket.fileno(), sends=peer is not None, seconds=seconds):
            return 0, b""
        # A system reports with the next call that an earlier datagram found nobody.
        sent = 0 if peer is None else self._send(data, peer)
        return sent, self._receive()

    def close(self) -> None:
        """See :meth:`Transport.close`."""
        if self._is_open:
            self._is_open = False
            self._socket.close()

    def _send(self, data: bytes, peer: Address) -> int:
        for at in range(0, len(data), DATAGRAM_BYTES):
            datagram = self._numbering.pack(data[at : at + DATAGRAM_BYTES])
            try:
                if self._is_connected:
                    self._socket.send(datagram)
                else:
                    self._socket.sendto(datagram, peer)
            except BlockingIOError:
                # Its number is not used again. To the other side, the datagram is a lost one.
                return at
        return len(data)

    def _receive(self) -> bytes:
        parts = []
        for _ in range(BURST):
            try:
                datagram, peer = self._socket.recvfrom(LONGEST)
            except BlockingIOError:
                break
            if not self._is_connected and peer != self._peer:
                self._peer = peer
                self._numbering.forget()
            parts.append(self._numbering.unpack(datagram))
        return b"".join(parts)


def _connected_to(link: socket.socket) -> Address | None:
    """Return the address that a socket is connected to; None if it is not connected."""
    try:
        address: Address = link.getpeername()
    except OSError:
        return None
    return address


def open_udp(host: str, port: int) -> DatagramTransport:
    """Open a transport to a UDP port. Nothing is sent, so nobody needs to be there.

    Raises
    ------
    OSError
        If the host has no address, or there is no route to it.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    link = socket.socket(family, kind, protocol)
    try:
        link.connect(address)
    except BaseException:
        link.close()
        raise
    return DatagramTransport(link)
