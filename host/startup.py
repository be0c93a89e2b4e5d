# SPDX-License-Identifier: Apache-2.0
"""A command that is interrupted while its modules are loaded says so in one line.

Loading takes seconds on a busy machine, and all of it comes before the command's own ``try``. This
module is loaded before any other of the kit, and changes nothing in programs that are not
``python -m host`` or ``python -m spark_offload``.
"""

import sys
from types import TracebackType

__all__ = ["command_package"]

_PACKAGES = ("host", "spark_offload")


def command_package() -> str | None:
    """Return the package of the kit that this process runs as a command; None in other programs."""
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
