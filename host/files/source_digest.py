# SPDX-License-Identifier: Apache-2.0
"""Digests of files that hardly ever change, so that each is read once a process."""

import hashlib
from pathlib import Path
import time

__all__ = ["file_digest"]

_SETTLED = 2_000_000_000
"""Nanoseconds after which a change of a file has another time than the one before, for certain."""

_known: dict[Path, tuple[tuple[int, int, int], bytes]] = {}


def file_digest(path: Path) -> bytes:
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
    known = _known.get(path)
    if known is not None and known[0] == state:
        return known[1]
    digest = hashlib.sha256(path.read_bytes()).digest()
    if time.time_ns() - max(state[:2]) > _SETTLED:
        _known[path] = state, digest
    return digest
