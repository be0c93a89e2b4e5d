# SPDX-License-Identifier: Apache-2.0
"""One holder at a time for every device of a machine, whichever processes want it.

A device has a file named after its address, and whoever has the file's lock has the device. The
operating system frees the lock of a process that ends, however it ends. The file tells who holds
the device, and whether it failed in the hands of its last holder.
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

__all__ = ["AVOIDED_SECONDS", "DeviceClaim", "claim_device"]

AVOIDED_SECONDS = 600.0
"""For so long a device that has failed is taken only if all others have failed too."""

PAUSE_SECONDS = 0.05
"""Between two looks at devices that are held."""


class DeviceClaim:
    """A device that is held; made by :func:`claim_device`, a context manager that releases it.

    Parameters
    ----------
    name : str
        Address of the device.
    folder : LockFolder
        Where its lock file is.
    descriptor : int
        The open and locked file.
    holder : str
        Who holds it, for those who wait.
    """

    def __init__(self, name: str, folder: LockFolder, descriptor: int, holder: str) -> None:
        self.name = name
        self._folder = folder
        self._descriptor: int | None = descriptor
        # A failure stands until the device has served someone.
        self._note = replace(
            read_note(descriptor), holder=holder, process=os.getpid(), since=time.time()
        )
        write_note(descriptor, self._note)

    def release(self, *, failed: bool = False) -> None:
        """Let go of the device; releasing it again does nothing.

        Parameters
        ----------
        failed : bool
            Whether the device failed, so that others are preferred for some time.

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
        """Let go of the device at the end of work that ended with ``error``, or well.

        A :exc:`~host.errors.DeviceError` says that the device has failed. What releasing it raises
        is added to the error as a note, for the error came first.
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
    """Wait until one of several devices is free, and hold it.

    Devices that have failed lately are taken only if all of them have, or in the end.

    Parameters
    ----------
    names : sequence of str
        Addresses of the devices, the preferred one first.
    holder : str
        Who wants it, for those who will have to wait.
    seconds : float
        How long to wait, at most.
    remedy : str
        What the user can do if that is not enough.
    folder : Path, optional
        Where the files are; see :class:`~host.device.lock_file.LockFolder`.
    report : callable, optional
        Is called once with a sentence, if there is something to wait for.

    Raises
    ------
    DeviceBusyError
        If none became free.
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


def _failure(folder: LockFolder, name: str, descriptor: int | None) -> float:
    """Return when a device failed, as its locked file says, or the file as it is found."""
    note = _note(folder, name) if descriptor is None else read_note(descriptor)
    return note.failed or 0.0


def _note(folder: LockFolder, name: str) -> LockNote:
    descriptor = folder.open(name)
    try:
        return read_note(descriptor)
    finally:
        os.close(descriptor)


def _holders(folder: LockFolder, names: Sequence[str]) -> dict[str, str]:
    """Return who holds the devices, as far as the files tell."""
    notes = ((name, _note(folder, name).text) for name in names)
    return {name: text for name, text in notes if text is not None}


def _waiting(folder: LockFolder, names: Sequence[str], seconds: float) -> str:
    held = "; ".join(f"{name!r} is held by {by}" for name, by in _holders(folder, names).items())
    listing = ", ".join(map(repr, names))
    return f"waiting up to {seconds:g} s for {listing}; {held or 'nobody says that he holds it'}"
