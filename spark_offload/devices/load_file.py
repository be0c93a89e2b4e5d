# SPDX-License-Identifier: Apache-2.0
"""The file in which the tasks of a machine share the load of a streaming join.

It lies beside the lock files of the devices, where everybody can write, so what does not look like
a load counts as none.
"""

import os
import time
from typing import Self

from host.devices.locks import LockFolder
from host.errors import DeviceLockError
from spark_offload.devices.pool_load import PoolLoad

__all__ = ["LoadFile"]

LONGEST_TEXT = 1 << 16
"""Bytes of a file that are looked at; the kit writes fewer."""

LONGEST_WAIT_SECONDS = 10.0
"""For the file, which every task holds for a moment only."""


class LoadFile:
    """The file of a load, locked while its context is entered.

    Parameters
    ----------
    name : str
        Name of the query and of the join.

    Raises
    ------
    DeviceLockError
        If the file cannot be used, or another process does not let go of it.
    """

    def __init__(self, name: str) -> None:
        self._folder = LockFolder()
        self._name = name

    def read(self, now: float) -> PoolLoad | None:
        """Return the load; None if there is none that is sound at this time."""
        text = os.pread(self._descriptor, LONGEST_TEXT + 1, 0)
        return PoolLoad.parse(text, now) if len(text) <= LONGEST_TEXT else None

    def write(self, load: PoolLoad) -> None:
        """Replace the load."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, load.text.encode(), 0)
        except OSError:  # a full disk is no reason to fail: the load begins anew
            os.ftruncate(self._descriptor, 0)

    def __enter__(self) -> Self:
        end = time.monotonic() + LONGEST_WAIT_SECONDS
        while (descriptor := self._folder.lock(self._name)) is None:
            if time.monotonic() >= end:
                raise DeviceLockError(
                    f"The file of the load of {self._name} in {str(self._folder.path)!r} has been "
                    f"locked for {LONGEST_WAIT_SECONDS:g} s, and a task needs it for a moment "
                    f"only; find the process that holds it (fuser), and end it."
                )
            time.sleep(0.005)
        self._descriptor = descriptor
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)
