# SPDX-License-Identifier: Apache-2.0
"""A file of the decisions of an elastic join: a JSON document per line."""

from collections.abc import Callable
from dataclasses import asdict
import json
from pathlib import Path
from typing import Any

from host.errors import UsageError

__all__ = ["REPLAY", "note_into", "read_epochs"]

#: Beginning of the name of a controller that takes its epochs from a file.
REPLAY = "replay:"


def note_into(path: str | Path) -> Callable[[Any], None]:
    """Empty a file, and return what appends each decision and each change to it, at once.

    A decision has its ``cycle``, the observation ``seen`` and the number ``active`` of cores; a
    change has its ``cycle``, its place ``tuples`` and the ``cores``.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    path = Path(path)
    try:
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Decisions cannot be written to {str(path)!r}: {error}.") from error

    def note(entry: Any) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    return note


def read_epochs(path: str | Path) -> list[tuple[int, tuple[int, ...]]]:
    """Return the places and cores of the changes in a file of decisions.

    Raises
    ------
    UsageError
        If the file cannot be read, or a line is no decision and no change.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The decisions in {str(path)!r} cannot be read: {error}.") from error
    epochs = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            if "cores" in entry:
                epochs.append((int(entry["tuples"]), tuple(int(core) for core in entry["cores"])))
            elif "seen" not in entry:
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                f"Line {number} of {str(path)!r} is no decision of an elastic join; give a file "
                f"that --elastic-log has written."
            ) from None
    return epochs
