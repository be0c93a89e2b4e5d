# SPDX-License-Identifier: Apache-2.0
"""Give every device of a machine to one holder at a time, across processes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
import fcntl
import hashlib
import json
import math
import os
from pathlib import Path
import stat
import time
from typing import Any, Self
from urllib.parse import quote

from host.devices.contract import Device, is_shared, open_device
from host.errors import DeviceError, UsageError
from host.query.quantities import Duration, parse_duration

__all__ = [
    "AVOIDED_SECONDS",
    "DeviceClaim",
    "LOCK_FOLDER",
    "LockFolder",
    "LockNote",
    "WAIT_DEFAULT",
    "claim_device",
    "open_in_turn",
    "parse_wait",
    "read_note",
    "write_note",
]

# The note in a device's lock file: the holder of the device, and whether the device has failed.
#
# Every user of the machine can write to the file. The note is therefore used only if all of it
# has the form that this module writes. Anything else is treated as an empty note.

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


# The lock files of devices, in a folder that all users of a machine share.
#
# Everybody can write to that folder, so nothing in it is trusted. Symbolic links are not
# followed. A file that is not a regular file with a single name is refused before any of it is
# changed.

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
    DeviceError
        If another user could remove lock files from the folder, or the folder cannot be used.
    """

    def __init__(self, path: Path | None = None) -> None:
        named = os.environ.get(LOCK_FOLDER)
        self.path = path if path is not None else Path(named) if named else _DEFAULT
        end = time.monotonic() + _SETTLING_SECONDS
        while (fault := self._fault()) is not None:
            if time.monotonic() >= end:
                raise DeviceError(
                    f"Devices cannot be locked in the folder {str(self.path)!r}, which {fault}; "
                    f"let its owner or root remove it, or name another folder by {LOCK_FOLDER} "
                    f"for all processes that share devices."
                )
            time.sleep(0.01)

    def lock(self, device: str) -> int | None:
        """Lock the file of a device; return its descriptor, or None if another process holds it.

        Raises
        ------
        DeviceError
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

    def _refusal(self, device: str, reason: str) -> DeviceError:
        return DeviceError(
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


# Give every device of a machine to one holder at a time, across processes.
#
# A device has a file that is named after its URI. The holder of the file's lock holds the device.
# The operating system frees the lock when its process ends, however it ends. The file says who
# holds the device, and whether the device failed while its last holder used it.

AVOIDED_SECONDS = 600.0
"""Seconds for which a device that has failed is taken only if all others have failed too."""

PAUSE_SECONDS = 0.05
"""Seconds between two attempts to get a device that is held."""


class DeviceClaim:
    """A claim on a device from :func:`claim_device`; a context manager that releases the device.

    Parameters
    ----------
    name : str
        URI of the device.
    folder : LockFolder
        Folder of the lock file.
    descriptor : int
        Descriptor of the open and locked file.
    holder : str
        Description of the holder, for processes that wait.
    """

    def __init__(self, name: str, folder: LockFolder, descriptor: int, holder: str) -> None:
        self.name = name
        self._folder = folder
        self._descriptor: int | None = descriptor
        # A recorded failure stays in the note until the device has been used without an error.
        self._note = replace(
            read_note(descriptor), holder=holder, process=os.getpid(), since=time.time()
        )
        write_note(descriptor, self._note)

    def release(self, *, failed: bool = False) -> None:
        """Release the device; releasing it again has no effect.

        Parameters
        ----------
        failed : bool
            Whether the device failed, so that other devices are preferred for some time.

        Raises
        ------
        DeviceError
            If the lock file was removed or replaced meanwhile, so that another process may have
            used the device too.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        is_sole = self._folder.has(self.name, descriptor)
        write_note(descriptor, LockNote(failed=time.time() if failed else None))
        os.close(descriptor)
        if not is_sole:
            raise DeviceError(
                f"The lock file of device {self.name!r} in {str(self._folder.path)!r} was removed "
                f"while the device was in use, so another process may have used it too and the "
                f"results may be wrong; run again, and let nobody remove files there."
            )

    def release_after(self, error: BaseException | None) -> None:
        """Release the device after work that ended with ``error``, or without one.

        A :exc:`~host.errors.DeviceError` means that the device has failed. An error raised by the
        release is added to ``error`` as a note, because ``error`` came first.
        """
        try:
            self.release(failed=isinstance(error, DeviceError))
        except DeviceError as loss:
            if error is None:
                raise
            error.add_note(str(loss))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.release_after(error)


def claim_device(
    names: Sequence[str],
    *,
    holder: str,
    seconds: float,
    remedy: str = "wait longer, or end that process",
    folder: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> DeviceClaim:
    """Wait until one of several devices is free, and claim it.

    A device that has failed recently is taken only if all devices have, or when the time is up.

    Parameters
    ----------
    names : sequence of str
        URIs of the devices, the preferred one first.
    holder : str
        Description of the holder, for processes that will have to wait.
    seconds : float
        Longest time to wait.
    remedy : str
        What the user can do if no device becomes free.
    folder : Path, optional
        Folder of the lock files; see :class:`LockFolder`.
    report : callable, optional
        Called once with a sentence if it is necessary to wait.

    Raises
    ------
    DeviceError
        If no device became free, or the lock files cannot be used.
    """
    place = LockFolder(folder)
    began = time.monotonic()
    while True:
        failed: list[tuple[float, str]] = []
        awaited: list[str] = []
        for name in names:
            descriptor = place.lock(name)
            failure = _failure(place, name, descriptor)
            if time.time() - failure >= AVOIDED_SECONDS:
                if descriptor is not None:
                    return DeviceClaim(name, place, descriptor, holder)
                awaited.append(name)
            elif descriptor is not None:
                failed.append((failure, name))
                os.close(descriptor)
        late = time.monotonic() - began >= seconds
        if failed and (late or not awaited):
            name = min(failed)[1]
            descriptor = place.lock(name)
            if descriptor is not None:
                return DeviceClaim(name, place, descriptor, holder)
        if late:
            raise _busy(names, f"{seconds:g} s", _held(place, names), remedy)
        if report is not None:
            listing = ", ".join(map(repr, names))
            report(f"waiting up to {seconds:g} s for {listing}; {_held(place, names)}")
            report = None
        time.sleep(PAUSE_SECONDS)


def _busy(devices: Sequence[str], waited: str, held: str, remedy: str) -> DeviceError:
    """Return the error of devices none of which became free."""
    several = len(devices) > 1
    listing = ", ".join(repr(device) for device in devices)
    return DeviceError(
        f"{'None of the devices' if several else 'Device'} {listing} "
        f"{'became' if several else 'did not become'} free within {waited}; "
        f"{held}; {remedy}.",
        "busy",
    )


def _failure(folder: LockFolder, name: str, descriptor: int | None) -> float:
    """Return when a device failed, by its locked file or, if None, by a look at the file."""
    note = _note(folder, name) if descriptor is None else read_note(descriptor)
    return note.failed or 0.0


def _note(folder: LockFolder, name: str) -> LockNote:
    descriptor = folder.open(name)
    try:
        return read_note(descriptor)
    finally:
        os.close(descriptor)


def _held(folder: LockFolder, names: Sequence[str]) -> str:
    """Say who holds the devices, as far as the lock files name them."""
    notes = ((name, _note(folder, name).text) for name in names)
    held = "; ".join(f"{name!r} is held by {text}" for name, text in notes if text is not None)
    return held or "no holder is recorded"


# Open a device when it is this process's turn.

WAIT_DEFAULT = "10min"
"""Default of the longest wait for a device."""


def parse_wait(text: str, option: str) -> Duration:
    """Read the longest wait for a device from the value of an option.

    Raises
    ------
    UsageError
        If the text is not a duration, or is a negative one.
    """
    try:
        wait = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"Option {option}: {error}") from error
    if wait < Duration(0):
        raise UsageError(f"Option {option} must be a time to wait, not {text!r}.")
    return wait


@contextmanager
def open_in_turn(
    uri: str,
    *,
    holder: str,
    seconds: float,
    remedy: str = "wait longer, or end that process",
    report: Callable[[str], None] | None = None,
) -> Iterator[Device]:
    """Open a device for a block of code, with its lock if the machine's processes share it.

    Parameters
    ----------
    uri : str
        URI of the device.
    holder : str
        Description of the holder, for processes that will have to wait.
    seconds : float
        Longest time to wait for a device that another process holds.
    remedy : str
        What the user can do if the device does not become free.
    report : callable, optional
        Called once with a sentence if it is necessary to wait.

    Raises
    ------
    DeviceError
        If the device did not become free or cannot be opened, or its lock cannot be used.
    """
    if not is_shared(uri):
        with open_device(uri) as device:
            yield device
        return
    claim = claim_device([uri], holder=holder, seconds=seconds, remedy=remedy, report=report)
    with claim, open_device(uri) as device:
        yield device
