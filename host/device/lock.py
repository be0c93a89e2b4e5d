# SPDX-License-Identifier: Apache-2.0
"""Give every device of a machine to one holder at a time, across processes.

A device has a file that is named after its URI. The holder of the file's lock holds the device. The
operating system frees the lock when its process ends, however it ends. The file says who holds the
device, and whether the device failed while its last holder used it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
import os
from pathlib import Path
import time
from types import TracebackType
from typing import Self

from host.device.lock_file import LockFolder
from host.device.lock_note import LockNote, read_note, write_note
from host.errors import DeviceBusyError, DeviceError, DeviceLockError

__all__ = ["AVOIDED_SECONDS", "DeviceClaim", "claim_device", "failed_devices"]

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
        DeviceLockError
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
            raise DeviceLockError(
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
        except DeviceLockError as loss:
            if error is None:
                raise
            error.add_note(str(loss))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        Folder of the lock files; see :class:`~host.device.lock_file.LockFolder`.
    report : callable, optional
        Called once with a sentence if it is necessary to wait.

    Raises
    ------
    DeviceBusyError
        If no device became free.
    DeviceLockError
        If the lock files cannot be used.
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
            raise DeviceBusyError(names, f"{seconds:g} s", _holders(place, names), remedy)
        if report is not None:
            report(_waiting(place, names, seconds))
            report = None
        time.sleep(PAUSE_SECONDS)


def failed_devices(names: Sequence[str], *, folder: Path | None = None) -> set[str]:
    """Return those of several devices that have failed recently, by their lock files.

    Raises
    ------
    DeviceLockError
        If the lock files cannot be used.
    """
    place = LockFolder(folder)
    return {name for name in names if time.time() - _failure(place, name, None) < AVOIDED_SECONDS}


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


def _holders(folder: LockFolder, names: Sequence[str]) -> dict[str, str]:
    """Return the holders of the devices, as far as the lock files name them."""
    notes = ((name, _note(folder, name).text) for name in names)
    return {name: text for name, text in notes if text is not None}


def _waiting(folder: LockFolder, names: Sequence[str], seconds: float) -> str:
    held = "; ".join(f"{name!r} is held by {by}" for name, by in _holders(folder, names).items())
    listing = ", ".join(map(repr, names))
    return f"waiting up to {seconds:g} s for {listing}; {held or 'no holder is recorded'}"
