# SPDX-License-Identifier: Apache-2.0
"""How a command ends that did not get to its end: one sentence, and an exit code."""

import argparse
import os

import pyarrow as pa

from host.errors import JoinError

__all__ = ["INTERRUPTED", "OutputFile", "ending", "was_interrupted"]

#: Exit code after an interrupt from the keyboard, as shells have it.
INTERRUPTED = 130


class OutputFile:
    """The file that a command is to write, to be able to say whether it has.

    Parameters
    ----------
    options : argparse.Namespace
        Of the command; one without ``output`` writes no file.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._path = getattr(options, "output", None)
        self._before = self._identity()

    @property
    def is_untouched(self) -> bool:
        """Whether there is such a file, and it is as it was, or still missing."""
        return self._path is not None and self._identity() == self._before

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def was_interrupted(error: BaseException) -> bool:
    """Whether ``error`` is an interrupt by the user, or came of one while things were put away."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def ending(error: BaseException, output: OutputFile) -> tuple[str, int] | None:
    """Return the sentence to print of an error that ended a command, and the exit code.

    Returns
    -------
    tuple of (str, int) or None
        None for what is no mistake of the user nor of the machine: a defect is to be seen whole.
    """
    if was_interrupted(error):
        return f"interrupted{'; nothing was written' if output.is_untouched else ''}.", INTERRUPTED
    if isinstance(error, JoinError):
        return str(error), error.exit_code
    if isinstance(error, (OSError, MemoryError, pa.ArrowException)):
        lines = str(error).strip().splitlines()
        return lines[0] if lines else type(error).__name__, 1
    return None
