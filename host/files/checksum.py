# SPDX-License-Identifier: Apache-2.0
"""Files with a checksum beside them, so that a damaged file is noticed before it is used.

The checksum of ``NAME`` is in ``NAME.sha256``, in the format that ``sha256sum --check`` reads.
"""

import hashlib
from pathlib import Path

from host.files.atomic import atomic_file

__all__ = ["checksum_file", "is_intact", "matches", "publish"]


def checksum_file(path: Path) -> Path:
    """Return the path of the checksum of ``path``."""
    return path.with_name(f"{path.name}.sha256")


def matches(contents: bytes, path: Path) -> bool:
    """Return whether ``contents``, read from ``path``, agree with the recorded checksum."""
    return hashlib.sha256(contents).hexdigest() in _recorded(path)


def is_intact(path: Path) -> bool:
    """Return whether there is a file at ``path`` that agrees with its checksum."""
    try:
        return matches(path.read_bytes(), path)
    except OSError:
        return False


def publish(source: Path, place: Path) -> None:
    """Copy ``source``, an executable file, to ``place`` and record its checksum.

    At every moment, the file at ``place`` is either the old or the new one, and its checksum is
    recorded.

    Raises
    ------
    OSError
        If a file cannot be written, for example because the disk is full.
    """
    contents = source.read_bytes()
    digest = hashlib.sha256(contents).hexdigest()
    _record(place, {digest, *_recorded(place)})
    with atomic_file(place, mode=0o777) as partial:
        partial.write_bytes(contents)
    _record(place, {digest})


def _recorded(path: Path) -> set[str]:
    """Return the recorded checksums of ``path``; there are two while the file is being replaced."""
    try:
        lines = checksum_file(path).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {line.split()[0] for line in lines if line.strip()}


def _record(place: Path, digests: set[str]) -> None:
    with atomic_file(checksum_file(place)) as partial:
        lines = [f"{digest}  {place.name}\n" for digest in sorted(digests)]
        partial.write_text("".join(lines), "utf-8")
