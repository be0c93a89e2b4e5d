# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, with checksums, and digests that are computed once."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
import fcntl
import hashlib
import os
from pathlib import Path
import re
import secrets
import shutil
import time

__all__ = [
    "atomic_file",
    "checksum_file",
    "file_digest",
    "files_below",
    "is_intact",
    "matches",
    "publish",
    "workplace",
]

# Write files and folders that appear whole or not at all, however the writing process ends.
#
# The writer works under a temporary name beside the final place, and moves the result there in
# one step. Meanwhile it holds a lock on the temporary file or folder. The operating system frees
# the lock when the process ends, even if it is killed. The next writer can therefore distinguish
# an abandoned file from one that another process is still writing, and removes only the abandoned
# one.

#: Length of the part of the final name with which a temporary name begins.
STEM = 40
LOCK = "lock"


@contextmanager
def atomic_file(path: str | Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` if the block raises no error.

    If the block raises, or the process is killed, an existing file stays unchanged. If ``path`` is
    a symbolic link, the file that the link points to is replaced.

    Parameters
    ----------
    path : path-like
        The final path; its folder must exist.
    mode : int
        Permissions of the file, before the process's umask is applied.

    Raises
    ------
    OSError
        If the file cannot be written or moved.
    """
    target = Path(os.path.realpath(path))
    stem = target.name[:STEM]
    _remove_abandoned(target.parent, stem)
    while True:
        place = target.parent / _new_name(stem)
        # The kernel applies the umask. Reading the umask would change it for all other threads.
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        if _hold(descriptor):
            break
        os.close(descriptor)
    try:
        yield place
        os.fsync(descriptor)
        place.replace(target)
    finally:
        place.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def workplace(folder: Path, name: str) -> Iterator[Path]:
    """Yield an empty folder below ``folder``, which is removed when the block ends.

    Folders that killed processes left in ``folder`` are removed first.

    Parameters
    ----------
    folder : Path
        An existing folder, used only for such work and its results.
    name : str
        Name of the work, for people who look into the folder meanwhile.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    _remove_abandoned(folder)
    while True:
        place = folder / _new_name(name[:STEM])
        place.mkdir()
        try:
            descriptor = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:
            continue  # another process removed the empty folder as abandoned
        if _hold(descriptor):
            break
        os.close(descriptor)
    try:
        work = place / "work"
        work.mkdir()
        yield work
    finally:
        _remove_work(place)
        os.close(descriptor)


def _new_name(stem: str) -> str:
    return f".{stem}.{secrets.token_hex(8)}.partial"


def _hold(descriptor: int) -> bool:
    """Lock a new file; return False if another process removed it as abandoned before that."""
    # Where locks are not supported, as on some network file systems, nothing counts as abandoned.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def _remove_abandoned(folder: Path, stem: str | None = None) -> None:
    """Remove the temporary files and folders of killed processes, of one stem or of all."""
    prefix = ".*" if stem is None else re.escape(stem)
    pattern = re.compile(rf"\.{prefix}\.[0-9a-f]{{16}}\.partial", re.DOTALL)
    with suppress(PermissionError):  # files can be created there, but not listed
        for name in os.listdir(folder):
            if pattern.fullmatch(name):
                with suppress(OSError):  # belongs to another user, or was just removed
                    _remove_unless_held(folder / name)


def _remove_unless_held(place: Path) -> None:
    """Remove a file or folder that no process holds.

    This module never makes symbolic links. In a folder that others can write to, a link may point
    anywhere, so neither the link nor its target is touched.
    """
    if place.is_symlink():
        return
    is_folder = place.is_dir()
    try:
        descriptor = os.open(place / LOCK if is_folder else place, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        place.rmdir()  # the process ended before it made the lock; only an empty folder goes
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_folder:
            _remove_work(place)
        else:
            place.unlink()
    finally:
        os.close(descriptor)


def _remove_work(place: Path) -> None:
    """Remove a workplace; keep its lock file for the next attempt if its work cannot be removed."""
    shutil.rmtree(place / "work", ignore_errors=True)
    if not (place / "work").exists():
        shutil.rmtree(place, ignore_errors=True)


# Files with a checksum beside them, so that a damaged file is noticed before it is used.
#
# The checksum of ``NAME`` is in ``NAME.sha256``, in the format that ``sha256sum --check`` reads.


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


# Digests of files that hardly ever change, so that each is read once a process.

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
