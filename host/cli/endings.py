# SPDX-License-Identifier: Apache-2.0
"""Turn the error that ended a command into one sentence and an exit code."""

import argparse
import os

import pyarrow as pa

from host.errors import JoinError

__all__ = ["INTERRUPTED", "OutputFile", "ending", "was_interrupted"]

#: Exit code after an interrupt from the keyboard, as in shells.
INTERRUPTED = 130


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
