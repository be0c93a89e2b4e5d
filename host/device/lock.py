# SPDX-License-Identifier: Apache-2.0
"""One holder at a time for every device of a machine, whichever processes want it.

A device has a file named after its address, and whoever has the file's lock has the device. The
operating system frees the lock of a process that ends, however it ends. The file tells who holds
the device, and whether it failed in the hands of its last holder.
"""

from collections.abc import Mapping, Sequence
import fcntl
import hashlib
import json
import os
from pathlib import Path
import tempfile
import time
from typing import Any
from urllib.parse import quote

from host.errors import DeviceBusyError

__all__ = ["AVOIDED_SECONDS", "DeviceClaim", "claim_device", "lock_folder"]

AVOIDED_SECONDS = 600.0
"""For so long a device that has failed is taken only if all others have failed too."""

PAUSE_SECONDS = 0.05
"""Between two looks at devices that are held."""

LONGEST_NAME = 200
"""Characters of a file name; the name of a longer address is its hash."""


class DeviceClaim:
    """A device that is held; made by :func:`claim_device`.

    Parameters
    ----------
    name : str
        Address of the device.
    descriptor : int
        The open and locked file.
    holder : str
        Who holds it, for those who wait.
    """

    def __init__(self, name: str, descriptor: int, holder: str) -> None:
        self.name = name
        self._descriptor: int | None = descriptor
        earlier = _read(descriptor)
        # A failure stands until the device has served someone.
        self._note = {"holder": holder, "process": os.getpid(), "since": time.time()}
        _write(descriptor, self._note | {"failed": earlier.get("failed")})

    def release(self, *, failed: bool = False) -> None:
        """Let go of the device; releasing it again does nothing.

        Parameters
        ----------
        failed : bool
            Whether the device failed, so that others are preferred for some time.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _write(descriptor, self._note | {"failed": time.time()} if failed else {})
            os.close(descriptor)


def claim_device(
    names: Sequence[str],
    *,
    holder: str,
    seconds: float,
    remedy: str = "wait longer, or end that process",
    folder: Path | None = None,
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
        Where the files are; :func:`lock_folder` unless given.

    Raises
    ------
    DeviceBusyError
        If none became free.
    """
    place = lock_folder() if folder is None else folder
    began = time.monotonic()
    while True:
        failed: list[tuple[float, str]] = []
        awaited: list[str] = []
        for name in names:
            descriptor = _open(place, name)
            is_free = _lock(descriptor)
            failure = float(_read(descriptor).get("failed") or 0)
            if time.time() - failure < AVOIDED_SECONDS:
                failed += [(failure, name)] if is_free else []
            elif is_free:
                return DeviceClaim(name, descriptor, holder)
            else:
                awaited.append(name)
            os.close(descriptor)
        late = time.monotonic() - began >= seconds
        if failed and (late or not awaited):
            name = min(failed)[1]
            descriptor = _open(place, name)
            if _lock(descriptor):
                return DeviceClaim(name, descriptor, holder)
            os.close(descriptor)
        if late:
            raise DeviceBusyError(names, f"{seconds:g} s", _holders(place, names), remedy)
        time.sleep(PAUSE_SECONDS)


def lock_folder() -> Path:
    """Return the folder of the files, which all users of the machine share."""
    folder = Path(tempfile.gettempdir()) / "splitjoin-devices"
    try:
        folder.mkdir()
        folder.chmod(0o1777)  # as of the folder it is in: anyone may add, none remove another's
    except FileExistsError:
        pass
    return folder


def _open(folder: Path, name: str) -> int:
    file = quote(name, safe=" :,=")
    if len(file) > LONGEST_NAME:
        file = hashlib.sha256(name.encode()).hexdigest()
    while True:
        try:
            # Without O_CREAT first: Linux refuses that for another user's file in such a folder.
            return os.open(folder / file, os.O_RDWR)
        except FileNotFoundError:
            try:
                descriptor = os.open(folder / file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue  # somebody was faster
            os.fchmod(descriptor, 0o666)
            return descriptor


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> Mapping[str, Any]:
    """Return what stands in the file; nothing if it is being written."""
    try:
        note = json.loads(os.pread(descriptor, 1 << 16, 0))
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _write(descriptor: int, note: Mapping[str, Any]) -> None:
    os.ftruncate(descriptor, 0)
    if note:
        os.pwrite(descriptor, json.dumps(note).encode(), 0)


def _holders(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return who holds the devices, as far as the files tell."""
    holders = {}
    for name in names:
        descriptor = _open(folder, name)
        note = _read(descriptor)
        os.close(descriptor)
        if "process" in note:
            since = time.strftime("%H:%M:%S", time.localtime(float(note["since"])))
            holders[name] = f"process {note['process']} ({note['holder']}) since {since}"
    return holders
