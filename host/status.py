# SPDX-License-Identifier: Apache-2.0
"""What a command is doing, and how far it is, on standard error while it works."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import os
import shutil
import sys
import threading
import time
from typing import Self, TextIO

__all__ = ["Status"]

#: Seconds between two looks on a terminal, where the line is written over.
GLANCE = 0.2
#: Seconds between two lines where there is no terminal, as in a log.
PERIOD = 5.0


class Status:
    """A line that names the stage of a command, what has been counted, and the seconds so far.

    On a terminal the line is there from the first moment, is written over as the numbers grow, and
    goes when the command ends. Elsewhere a line is written every few seconds, so a command that is
    done sooner writes none. A thread of its own writes them, as what is waited for may be one
    long call.

    Parameters
    ----------
    command : str
        Begins every line.
    stream : text file, optional
        Where to write; default: standard error, as it is when the status is entered.
    shown : bool
        Whether to write at all.

    Examples
    --------
    >>> with Status("join") as status:
    ...     with status.stage("reading left.csv"):
    ...         left = read_table("left.csv")
    """

    def __init__(self, command: str, *, stream: TextIO | None = None, shown: bool = True) -> None:
        self._command = command
        self._stream = stream
        self._shown = shown
        self._stage: str | None = None
        self._count: Callable[[], str] | None = None
        self._ended = threading.Event()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._shown:
            stream = sys.stderr if self._stream is None else self._stream
            self._thread = threading.Thread(
                target=self._follow,
                args=(stream, _copied_descriptor(stream)),
                name="splitjoin-status",
                daemon=True,
            )
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def stage(self, name: str, count: Callable[[], str] | None = None) -> Iterator[None]:
        """Name what is done by the body.

        Parameters
        ----------
        name : str
            A few words, such as ``reading left.csv``.
        count : callable, optional
            Says how far it is; called now and then, by another thread.
        """
        before = self._stage, self._count
        self._set(name, count)
        try:
            yield
        finally:
            self._set(*before)

    def _set(self, stage: str | None, count: Callable[[], str] | None) -> None:
        with self._writing:
            self._stage, self._count = stage, count

    def _follow(self, stream: TextIO, descriptor: int | None) -> None:
        if descriptor is None:
            self._write(stream)
            return
        with open(descriptor, "w", encoding=stream.encoding, errors="replace") as own:
            self._write(own)

    def _write(self, stream: TextIO) -> None:
        is_terminal, began = _is_terminal(stream), time.monotonic()
        shown = False
        while not self._ended.wait(GLANCE if is_terminal else PERIOD):
            line = self._line(time.monotonic() - began)
            if line is None:
                continue
            if is_terminal:
                # The cursor goes back to where the line begins: what others write comes over it.
                width = shutil.get_terminal_size().columns - 1
                stream.write(f"\r\x1b[K{line[:width]}\r")
            else:
                stream.write(f"{line}\n")
            stream.flush()
            shown = True
        if shown and is_terminal:
            stream.write("\r\x1b[K")
            stream.flush()

    def _line(self, seconds: float) -> str | None:
        with self._writing:
            if self._stage is None:
                return None
            count = "" if self._count is None else self._count()
        told = f"{self._stage}, {count}" if count else self._stage
        return f"{self._command}: {told}, {seconds:.0f} s"


def _copied_descriptor(stream: TextIO) -> int | None:
    """Return a descriptor that stays where it is while standard error is turned elsewhere."""
    try:
        return os.dup(stream.fileno())
    except OSError:  # it has none, as in a test or a notebook
        return None


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"
