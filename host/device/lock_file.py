# SPDX-License-Identifier: Apache-2.0
"""The lock files of devices, in a folder that all users of a machine share.

Because everybody can write into that folder, nothing in it is trusted: symbolic links are not
followed, and whatever is no regular file with one name is refused before a byte of it is changed.
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
"""One place, whatever ``TMPDIR`` says, for two processes with different ones share devices too.

It is not below ``/run/lock``, which ordinary users cannot write to on every system.
"""

_SHARED = 0o1777
"""As ``/tmp`` itself: anyone may add files, and none may remove another's."""

_SETTLING_SECONDS = 1.0
"""For so long the folder may lack its rights, which its maker sets after having made it."""

LONGEST_NAME = 200
"""Characters of a file name; the name of a longer address is its hash."""


class LockFolder:
    """The folder of the lock files, opened and checked.

    Parameters
    ----------
    path : Path, optional
        Where it is; unless given, what ``SPLITJOIN_LOCK_FOLDER`` names, or a folder in ``/tmp``.
        It is made if there is none.

    Raises
    ------
    DeviceLockError
        If somebody else could remove lock files there, or it cannot be used.
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
        """Lock the file of a device; return its descriptor, or None if another one holds it.

        Raises
        ------
        DeviceLockError
            If what has the file's name is no file to write a note into.
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
            # The file was removed or replaced before it was locked: others lock the new one.
            os.close(descriptor)

    def has(self, device: str, descriptor: int) -> bool:
        """Whether an open file is still the one that others find under the device's name."""
        try:
            found = os.stat(self._place(device), follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(descriptor))

    def open(self, device: str) -> int:
        """Open the file of a device, which is made if there is none; return its descriptor."""
        place = self._place(device)
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        while True:
            try:
                # Without O_CREAT first: Linux refuses that for another user's file in /tmp.
                try:
                    descriptor = os.open(place, flags)
                except FileNotFoundError:
                    descriptor = os.open(place, flags | os.O_CREAT | os.O_EXCL, 0o666)
                    os.fchmod(descriptor, 0o666)  # whatever the umask is
            except FileExistsError:
                continue  # somebody else has made it meanwhile
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
            # It has just been removed.

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
        """Say what is wrong with the folder, which is made if there is none."""
        try:
            with suppress(FileExistsError):
                self.path.mkdir()
                self.path.chmod(_SHARED)  # whatever the umask is
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
