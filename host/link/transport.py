# SPDX-License-Identifier: Apache-2.0
"""Byte streams that a link runs over: whatever has a file descriptor."""

from collections.abc import Callable
import os
import select
import socket
import sys
from typing import Protocol

__all__ = ["DescriptorTransport", "Transport", "await_events", "open_serial", "open_tcp"]

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
