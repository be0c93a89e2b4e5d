# SPDX-License-Identifier: Apache-2.0
"""What commands share: their status line, their turn at a device, and how an error ends them."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
import os
import shutil
import sys
import threading
import time
from typing import Self, TextIO

import pyarrow as pa

from host.devices import Device
from host.devices.locks import WAIT_DEFAULT, open_in_turn, parse_wait
from host.errors import FailureError, JoinError, UsageError
from host.query.quantities import Duration, parse_size, size_text

__all__ = [
    "INTERRUPTED",
    "LEAST_MEMORY",
    "OutputFile",
    "Status",
    "add_memory",
    "add_wait",
    "aligned",
    "ending",
    "memory_of",
    "memory_taken",
    "open_for_command",
    "tell_verdict",
    "tell_written",
    "wait_of",
    "was_interrupted",
]

# Show on standard error what a command is doing and how far it is.

#: Seconds between two updates of the line on a terminal.
GLANCE = 0.2
#: Bytes that a command needs in any case: libraries, a batch of each file, a block of the join.
LEAST_MEMORY = 384_000_000
#: Seconds between two lines if the output is not a terminal, as in a log.
PERIOD = 5.0


class Status:
    """Status line with the stage of a command, its progress, and the seconds since the start.

    On a terminal, the line appears within moments, is overwritten as the numbers grow, and
    disappears when the command ends. Elsewhere, a line is written every few seconds, so a command
    that takes less time writes none. A separate thread writes the lines, because the command may be
    inside one long call.

    Parameters
    ----------
    command : str
        Beginning of every line.
    stream : text file, optional
        Where to write; by default ``sys.stderr`` at the moment in which the status is entered.
    shown : bool
        Whether to write anything.

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
        """Set the stage of the command while the body runs.

        Parameters
        ----------
        name : str
            A few words, such as ``reading left.csv``.
        count : callable, optional
            Returns the progress as text; called from time to time by another thread.
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
                # The cursor returns to the beginning of the line, so that other output overwrites
                # the line.
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
    """Return a copied descriptor, which keeps its target when standard error is redirected."""
    try:
        return os.dup(stream.fileno())
    except OSError:  # the stream has no descriptor, as in a test or a notebook
        return None


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


# The option for how long a command waits for a device, and the device opened in its turn.

_OPTION = "--device-wait"


def add_wait(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option ``--wait`` to a command."""
    parser.add_argument(
        _OPTION, default=WAIT_DEFAULT, metavar="DURATION",
        help="how long to wait for a device that another process uses; default: %(default)s",
    )  # fmt: skip


def wait_of(options: argparse.Namespace) -> Duration:
    """Return the value of the option ``--wait``.

    Raises
    ------
    UsageError
        If it is not a duration, or is a negative one.
    """
    return parse_wait(options.device_wait, _OPTION)


def open_for_command(uri: str, command: str, wait: Duration) -> AbstractContextManager[Device]:
    """Return a context with the device, which says on standard error if it has to wait.

    Parameters
    ----------
    uri : str
        URI of the device.
    command : str
        What other processes are told that holds the device, such as ``python -m host join``.
    wait : Duration
        Longest time to wait.
    """
    return open_in_turn(
        uri,
        holder=command,
        seconds=wait.nanoseconds / 1e9,
        remedy=f"wait longer ({_OPTION}), or end that process",
        report=lambda text: print(f"device: {text}", file=sys.stderr),
    )


# What `--verify` has found.


def tell_verdict(agrees: bool, text: str) -> None:
    """Say what a comparison with a reference has found.

    Raises
    ------
    FailureError
        If the results differ.
    """
    print(f"verify: {text}", file=sys.stderr)
    if not agrees:
        raise FailureError(f"Verification failed: {text}.")


def tell_written(options: argparse.Namespace, done: str, began: float, more: str = "") -> None:
    """Say what a command has done, since when, and where its result is.

    Parameters
    ----------
    options : Namespace
        Options of the command.
    done : str
        What it has done.
    began : float
        The time at which it began, as :func:`time.monotonic` tells it.
    more : str
        What follows the time.
    """
    seconds = f"{time.monotonic() - began:.2f} s{more}"
    print(f"{done}, {seconds}, written to {options.output}{memory_taken()}", file=sys.stderr)


# The option for the memory of a command, and what it took.


def add_memory(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option ``--memory`` to a command."""
    parser.add_argument(
        "--memory", default="1GB", metavar="SIZE",
        help="memory for rows that are not sorted, besides the window: 1GB, 700MB; what does "
        "not fit goes through temporary files (TMPDIR); default: %(default)s",
    )  # fmt: skip


def memory_of(options: argparse.Namespace) -> int:
    """Return the value of the option ``--memory``, in bytes.

    Raises
    ------
    UsageError
        If it is no size, or a command cannot do with so little.
    """
    size = parse_size(options.memory, "--memory")
    if size < LEAST_MEMORY:
        raise UsageError(
            f"--memory is at least {size_text(LEAST_MEMORY)}, not {size_text(size)}: libraries, a "
            f"batch of each file and a block of the join take as much before a row is sorted."
        )
    return size


def memory_taken() -> str:
    """Say how much memory this process has taken at most; nothing where that is not known."""
    try:
        import resource
    except ImportError:  # there is no such module on Windows
        return ""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return f", {size_text(most * unit)} of memory at most"


# Turn the error that ended a command into one sentence and an exit code.

#: Exit code after an interrupt from the keyboard, as in shells.
INTERRUPTED = 130


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines, with the cells of a column below one another.

    The last cell of a row that has fewer than others is as long as it is.
    """
    most = max(map(len, rows))
    widths = [
        max(len(row[at]) for row in rows if at < len(row) - (len(row) < most)) for at in range(most)
    ]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    )


class OutputFile:
    """The output file of a command, to find out whether the command has changed it.

    Parameters
    ----------
    options : argparse.Namespace
        Options of the command. A command without the option ``output`` writes no file.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._path = getattr(options, "output", None)
        self._before = self._identity()

    @property
    def is_untouched(self) -> bool:
        """Whether the command has an output file, and that file is unchanged or still missing."""
        return self._path is not None and self._identity() == self._before

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def was_interrupted(error: BaseException) -> bool:
    """Return whether ``error`` is a keyboard interrupt, or was raised while handling one."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def ending(error: BaseException, output: OutputFile) -> tuple[str, int] | None:
    """Return the sentence to print for an error that ended a command, and the exit code.

    Returns
    -------
    tuple of (str, int) or None
        None for an error that neither the user nor the machine caused: a defect needs its
        traceback.
    """
    if was_interrupted(error):
        return f"interrupted{'; nothing was written' if output.is_untouched else ''}.", INTERRUPTED
    if isinstance(error, JoinError):
        return str(error), error.exit_code
    if isinstance(error, (OSError, MemoryError, pa.ArrowException)):
        lines = str(error).strip().splitlines()
        return lines[0] if lines else type(error).__name__, 1
    return None
