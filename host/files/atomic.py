# SPDX-License-Identifier: Apache-2.0
"""Write files and folders that appear whole or not at all, however the writing process ends.

The writer works under a temporary name beside the final place, and moves the result there in one
step. Meanwhile it holds a lock on the temporary file or folder. The operating system frees the lock
when the process ends, even if it is killed. The next writer can therefore distinguish an abandoned
file from one that another process is still writing, and removes only the abandoned one.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import fcntl
import os
from pathlib import Path
import re
import secrets
import shutil

__all__ = ["atomic_file", "workplace"]

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
