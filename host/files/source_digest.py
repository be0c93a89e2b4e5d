# SPDX-License-Identifier: Apache-2.0
"""Digests of files that hardly ever change, so that each is read once a process."""

from collections.abc import Collection, Iterator
import hashlib
import os
from pathlib import Path
import time

__all__ = ["file_digest", "files_below"]

_SETTLED = 2_000_000_000
"""Nanoseconds after which a change of a file has another time than the one before, for certain."""

_known: dict[str, tuple[tuple[int, int, int], bytes]] = {}


def files_below(folder: Path, suffixes: Collection[str]) -> list[os.DirEntry[str]]:
    """Return the files below a folder whose names have one of the suffixes, sorted by their paths.

    Every plan of a join without a device asks for several hundred files. Entries of a folder know
    their kind and their status, which saves most of the time that objects of :class:`Path` take.

    Raises
    ------
    OSError
        If a folder cannot be read.
    """

    def found(place: str | Path) -> Iterator[os.DirEntry[str]]:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from found(entry.path)
                elif os.path.splitext(entry.name)[1] in suffixes and entry.is_file():
                    yield entry

    return sorted(found(folder), key=lambda entry: entry.path)


def file_digest(path: Path | os.DirEntry[str]) -> bytes:
    """Return the SHA-256 of a file's contents, as of its last change.

    A file with the times and the size that it had before is not read again, unless it was changed
    so shortly before that a second change could have the same time.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    stat = path.stat()
    state = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size
    name = os.fspath(path)
    known = _known.get(name)
    if known is not None and known[0] == state:
        return known[1]
    digest = hashlib.sha256(Path(name).read_bytes()).digest()
    if time.time_ns() - max(state[:2]) > _SETTLED:
        _known[name] = state, digest
    return digest
