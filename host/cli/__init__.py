# SPDX-License-Identifier: Apache-2.0
"""The commands of `python -m host`, and what they share.

Each command is a file with its parser and its work. What commands do is in the folders below:
nothing here is needed by a program.

This file is loaded before any other one of the kit. It makes a command that is interrupted while
its modules are loaded say so in one line: loading takes seconds on a busy machine, and happens
before the command's own ``try`` statement. It changes nothing in programs other than
``python -m host`` and ``python -m spark_offload``.
"""

import sys
from types import TracebackType

__all__ = [
    "command_package",
]

_PACKAGES = ("host", "spark_offload")


def command_package() -> str | None:
    """Return the package of the kit that runs as this process's command; None in other programs."""
    words = sys.orig_argv
    if "-m" not in words[:-1]:
        return None
    package = words[words.index("-m") + 1]
    return package if package in _PACKAGES else None


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print(f"python -m {command_package()}: interrupted; nothing was written.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


if command_package() is not None:
    sys.excepthook = _tell
