# SPDX-License-Identifier: Apache-2.0
"""Files and folders that appear whole or not at all, however the process that writes them ends.

The writer works beside the final place, under a name of its own, and moves the result there in one
step. Meanwhile it holds a lock on what it writes. The operating system frees the lock of a process
that ends, even of a killed one, so the next writer can tell an abandoned file from one that another
process is still writing, and removes only the abandoned one.
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

#: Characters of the final name that a name of work in progress begins with.
STEM = 40
LOCK = "lock"


@contextmanager
def atomic_file(path: str | Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Yield a file to write, which takes the place of ``path`` if the block ends well.

    If the block raises, or the process is killed, an older file stays as it was. Where ``path`` is
    a symbolic link, the file that it leads to is replaced.

    Parameters
    ----------
    path : path-like
        The final place; its folder must exist.
    mode : int
        Permissions of the file, from which the process's umask is taken away.

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
        # The kernel applies the umask; asking for it would change it for every other thread.
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

    Work that any killed process has left in ``folder`` is removed first.

    Parameters
    ----------
    folder : Path
        An existing folder, used for nothing but such work and its results.
    name : str
        What is made, for those who look into the folder meanwhile.

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    _remove_abandoned(folder)
    while True:
        place = folder / _new_name(name[:STEM])
        place.mkdir()
        try:
            descriptor = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:
            continue  # another process took the empty folder for an abandoned one
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
    """Lock a new file; False if another process has removed it as abandoned before that."""
    # Without locks, as on some network file systems, nothing is ever taken for abandoned.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def _remove_abandoned(folder: Path, stem: str | None = None) -> None:
    """Remove what killed processes have left in ``folder``, of one stem or of all."""
    prefix = ".*" if stem is None else re.escape(stem)
    pattern = re.compile(rf"\.{prefix}\.[0-9a-f]{{16}}\.partial", re.DOTALL)
    with suppress(PermissionError):  # files can be made there, but not listed
        for name in os.listdir(folder):
            if pattern.fullmatch(name):
                with suppress(OSError):  # it is another user's, or has just been removed
                    _remove_unless_held(folder / name)


def _remove_unless_held(place: Path) -> None:
    """Remove a file or folder that no process holds.

    A symbolic link is none that this module has made. In a folder that others can write to, it may
    lead to anything, so nothing that it leads to is touched.
    """
    if place.is_symlink():
        return
    is_folder = place.is_dir()
    try:
        descriptor = os.open(place / LOCK if is_folder else place, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        place.rmdir()  # its process ended before it made the lock; succeeds only if it is empty
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
    """Remove a workplace; what cannot be removed yet keeps its lock file, for the next attempt."""
    shutil.rmtree(place / "work", ignore_errors=True)
    if not (place / "work").exists():
        shutil.rmtree(place, ignore_errors=True)
