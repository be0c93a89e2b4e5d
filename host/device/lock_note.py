# SPDX-License-Identifier: Apache-2.0
"""The note in a device's lock file: who holds the device, and whether it has failed.

Every user of the machine can write into the file, so what stands there is only believed if all of
it is what this module writes. Anything else counts as no note at all.
"""

from dataclasses import asdict, dataclass, fields
import json
import math
import os
import time
from typing import Any

__all__ = ["LockNote", "read_note", "write_note"]

LONGEST_NOTE = 4096
"""Bytes of a note; a longer one is none of this kit's."""

LONGEST_HOLDER = 200
"""Characters of a holder's name, which messages quote."""

LARGEST_PROCESS = (1 << 31) - 1
"""Greatest number that a process can have."""


@dataclass(frozen=True)
class LockNote:
    """What the lock file of a device says.

    Parameters
    ----------
    holder, process, since : str, int, float
        Who holds the device, in which process, and since when (seconds of the epoch); None if
        nobody does.
    failed : float
        When the device failed in the hands of its last holder; None if it served.
    """

    holder: str | None = None
    process: int | None = None
    since: float | None = None
    failed: float | None = None

    @property
    def text(self) -> str | None:
        """The holder as messages name it; None if nobody says that he holds the device."""
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

    A full disk is no reason to refuse a device: the lock holds, and only the note is missing.
    """
    said = {name: value for name, value in asdict(note).items() if value is not None}
    if note.holder is not None:
        said["holder"] = _printable(note.holder)
    try:
        os.ftruncate(descriptor, 0)
        if said:
            os.pwrite(descriptor, json.dumps(said).encode(), 0)
    except OSError:
        os.ftruncate(descriptor, 0)  # half a note would be no note either


def _checked(values: Any) -> LockNote | None:
    """Return the note with these values, or None unless each of them is as it is written."""
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
    """Return a name without what would move the cursor of a terminal that it is printed on."""
    return "".join(each if each.isprintable() else "?" for each in holder)[:LONGEST_HOLDER]
