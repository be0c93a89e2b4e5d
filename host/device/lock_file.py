# SPDX-License-Identifier: Apache-2.0
"""The lock files of devices, in a folder that all users of a machine share.

Everybody can write to that folder, so nothing in it is trusted. Symbolic links are not followed. A
file that is not a regular file with a single name is refused before any of it is changed.
"""

from contextlib import suppress
import fcntl
import hashlib
import os
from pathlib import Path
import stat
import time
from urllib.parse import quote

from host.errors import DeviceLockError

__all__ = ["LOCK_FOLDER", "LockFolder"]

LOCK_FOLDER = "SPLITJOIN_LOCK_FOLDER"
"""Environment variable that names another folder, for all processes that share devices."""

_DEFAULT = Path("/tmp/splitjoin-devices")
"""Default folder. It ignores ``TMPDIR``, so that processes with different values share devices.

It is not below ``/run/lock``, which ordinary users cannot write to on every system.
"""

_SHARED = 0o1777
"""Permissions as those of ``/tmp``: anyone may add files, but not remove another user's files."""

_SETTLING_SECONDS = 1.0
"""Seconds for which the folder may lack its permissions, which its creator sets after making it."""

LONGEST_NAME = 200
"""Largest number of characters in a file name; a longer URI is replaced by its hash."""


class LockFolder:
    """The folder of the lock files, opened and checked.

    Parameters
    ----------
    path : Path, optional
        Path of the folder, which is made if it does not exist. By default, the folder named by
        ``SPLITJOIN_LOCK_FOLDER``, or else a folder in ``/tmp``.

    Raises
    ------
    DeviceLockError
        If another user could remove lock files from the folder, or the folder cannot be used.
    """

    def __init__(self, path: Path | None = None) -> None:
        named = os.environ.get(LOCK_FOLDER)
        self.path = path if path is not None else Path(named) if named else _DEFAULT
        end = time.monotonic() + _SETTLING_SECONDS
        while (fault := self._fault()) is not None:
            if time.monotonic() >= end:
                raise DeviceLockError(
                    f"Devices cannot be locked in the folder {str(self.path)!r}, which {fault}; "
                    f"let its owner or root remove it, or name another folder by {LOCK_FOLDER} "
                    f"for all processes that share devices."
                )
            time.sleep(0.01)

    def lock(self, device: str) -> int | None:
        """Lock the file of a device; return its descriptor, or None if another process holds it.

        Raises
        ------
        DeviceLockError
            If the file's name belongs to something that cannot be used as a lock file.
        """
        while True:
            descriptor = self.open(device)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            if self.has(device, descriptor):
                return descriptor
            # The file was removed or replaced before it was locked; other processes lock the new
            # file.
            os.close(descriptor)

    def has(self, device: str, descriptor: int) -> bool:
        """Return whether an open file is still the one that others find under the device's name."""
        try:
            found = os.stat(self._place(device), follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(descriptor))

    def open(self, device: str) -> int:
        """Open the file of a device, which is made if it does not exist; return its descriptor."""
        place = self._place(device)
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        while True:
            try:
                # The first attempt omits O_CREAT, which Linux refuses for another user's file in
                # /tmp.
                try:
                    descriptor = os.open(place, flags)
                except FileNotFoundError:
                    descriptor = os.open(place, flags | os.O_CREAT | os.O_EXCL, 0o666)
                    os.fchmod(descriptor, 0o666)  # regardless of the umask
            except FileExistsError:
                continue  # another process has made the file meanwhile
            except OSError as error:
                reason = "is a symbolic link" if place.is_symlink() else f"cannot be used: {error}"
                raise self._refusal(device, reason) from error
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                return descriptor
            os.close(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._refusal(device, "is no regular file")
            if found.st_nlink:
                raise self._refusal(device, "has other names too (hard links)")
            # The file has just been removed.

    def _place(self, device: str) -> Path:
        name = quote(device, safe=" :,=", errors="surrogateescape")
        if len(name) > LONGEST_NAME or name in {"", ".", ".."}:
            name = hashlib.sha256(device.encode(errors="surrogateescape")).hexdigest()
        return self.path / name

    def _refusal(self, device: str, reason: str) -> DeviceLockError:
        return DeviceLockError(
            f"The lock file {str(self._place(device))!r} of device {device!r} {reason}; remove "
            f"it, for only lock files that this kit has made belong there."
        )

    def _fault(self) -> str | None:
        """Return what is wrong with the folder, or None; make the folder if it does not exist."""
        try:
            with suppress(FileExistsError):
                self.path.mkdir()
                self.path.chmod(_SHARED)  # regardless of the umask
            found = self.path.lstat()
        except OSError as error:
            return f"cannot be made: {error}"
        if not stat.S_ISDIR(found.st_mode):
            return "is no folder"
        if found.st_uid not in {0, os.geteuid()} and not found.st_mode & stat.S_ISVTX:
            return f"belongs to user {found.st_uid}, who may remove all files, for it is not sticky"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            return "others may write to and remove all files from, for it is not sticky"
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            return "this user may not write to"
        return None
