# SPDX-License-Identifier: Apache-2.0
"""Where a simulated board can be plugged in: a pseudo-terminal, or a TCP port."""

from contextlib import suppress
import os
from pathlib import Path
import pty
import socket
import tty

from host.devices.link.transport import DescriptorTransport

__all__ = ["PseudoTerminal", "TcpPort"]


class PseudoTerminal:
    """Pseudo-terminal that a host opens as a serial port, behind a symbolic link that stays.

    A host can open it as soon as the object exists.

    Parameters
    ----------
    path : path-like
        The symbolic link. Missing folders are created; another link in this place is replaced.

    Raises
    ------
    FileExistsError
        If there is a file in this place that is no link.
    """

    def __init__(self, path):
        self.path = Path(os.path.abspath(path))
        if self.path.exists() and not self.path.is_symlink():
            raise FileExistsError(
                f"{str(self.path)!r} is a file, and would become a link to a pseudo-terminal; "
                "name another path"
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._plugged = self._open()

    @property
    def place(self):
        """What a URI of a device has in this place."""
        return f"serial:{self.path}"

    def plug(self, seconds):
        """Return the byte stream to the host, which needs no time here."""
        del seconds
        plugged, self._plugged = self._plugged or self._open(), None
        return plugged

    def _open(self):
        master, slave = pty.openpty()
        tty.setraw(slave)

        def close():
            self._remove()
            os.close(master)
            os.close(slave)

        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        new.symlink_to(os.ttyname(slave))
        new.replace(self.path)
        # The slave stays open here. Without it, the master would fail until a host opens the port.
        return DescriptorTransport(master, close)

    def _remove(self):
        with suppress(FileNotFoundError):
            self.path.unlink()

    def close(self):
        """Leave nothing behind."""
        if self._plugged is not None:
            self._plugged.close()
            self._plugged = None


class TcpPort:
    """TCP server port of this machine, for one host at a time.

    Parameters
    ----------
    number : int
        Number of the port; zero for any that is free.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, number=0):
        self._listener = socket.create_server(("127.0.0.1", number))
        self.number = self._listener.getsockname()[1]

    @property
    def place(self):
        """What a URI of a device has in this place."""
        return f"tcp:127.0.0.1:{self.number}"

    def plug(self, seconds):
        """Return the byte stream to the next host; None if none came within so many seconds."""
        self._listener.settimeout(seconds)
        try:
            connected, _ = self._listener.accept()
        except TimeoutError:
            return None
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return DescriptorTransport(connected.fileno(), connected.close)

    def close(self):
        """Stop listening."""
        self._listener.close()
