# SPDX-License-Identifier: Apache-2.0
"""The note in a device's lock file: the holder of the device, and whether the device has failed.

Every user of the machine can write to the file. The note is therefore used only if all of it has
the form that this module writes. Anything else is treated as an empty note.
"""

from dataclasses import asdict, dataclass, fields
import json
import math
import os
import time
from typing import Any

__all__ = ["LockNote", "read_note", "write_note"]

LONGEST_NOTE = 4096
"""Largest size of a note in bytes; the kit does not write longer ones."""

LONGEST_HOLDER = 200
"""Largest number of characters in a holder's description, which messages quote."""

LARGEST_PROCESS = (1 << 31) - 1
"""Largest process number."""


@dataclass(frozen=True)
class LockNote:
    """The contents of a device's lock file.

    Parameters
    ----------
    holder, process, since : str, int, float
        Description and process number of the device's holder, and the time of the claim (seconds
        since the epoch); None if nobody holds the device.
    failed : float
        Time at which the device failed its last holder; None if it did not fail.
    """

    holder: str | None = None
    process: int | None = None
    since: float | None = None
    failed: float | None = None

    @property
    def text(self) -> str | None:
        """Description of the holder for messages; None if the note does not name one."""
        if self.holder is None or self.process is None or self.since is None:
            return None
        since = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"process {self.process} ({self.holder}) since {since}"


def read_note(descriptor: int) -> LockNote:
    """Return the note in a lock file; an empty one if the file holds anything else."""
    text = os.pread(descriptor, LONGEST_NOTE + 1, 0)
    try:
        values = json.loads(text) if len(text) <= LONGEST_NOTE else None
    except (ValueError, RecursionError):
        values = None
    return _checked(values) or LockNote()


def write_note(descriptor: int, note: LockNote) -> None:
    """Replace the note in a lock file.

    A full disk is no reason to refuse a device: the lock is effective, and only the note is
    missing.
    """
    said = {name: value for name, value in asdict(note).items() if value is not None}
    if note.holder is not None:
        said["holder"] = _printable(note.holder)
    try:
        os.ftruncate(descriptor, 0)
        if said:
            os.pwrite(descriptor, json.dumps(said).encode(), 0)
    except OSError:
        os.ftruncate(descriptor, 0)  # do not leave a part of a note


def _checked(values: Any) -> LockNote | None:
    """Return the note with these values; None unless each has the form that this module writes."""
    names = {each.name for each in fields(LockNote)}
    if not isinstance(values, dict) or not values.keys() <= names:
        return None
    note = LockNote(**values)
    if note.holder is not None and (
        not isinstance(note.holder, str) or note.holder != _printable(note.holder)
    ):
        return None
    if note.process is not None and (
        type(note.process) is not int or not 1 <= note.process <= LARGEST_PROCESS
    ):
        return None
    if not all(_is_past(moment) for moment in (note.since, note.failed) if moment is not None):
        return None
    return note


def _is_past(moment: Any) -> bool:
    return isinstance(moment, float) and math.isfinite(moment) and 0 <= moment <= time.time()


def _printable(holder: str) -> str:
    """Return a description without characters that would control a terminal."""
    return "".join(each if each.isprintable() else "?" for each in holder)[:LONGEST_HOLDER]
