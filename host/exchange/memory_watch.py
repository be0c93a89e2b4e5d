# SPDX-License-Identifier: Apache-2.0
"""Watch over windows in external memory: no result is handed on after an error of the memory."""

from host.device import Device
from host.errors import MemoryFaultError

__all__ = ["MemoryWatch"]


class MemoryWatch:
    """Compares the accelerator's count of errors of its memories with that at the beginning.

    It costs nothing if windows are on the chip.

    Parameters
    ----------
    device : Device
        An open device that is idle.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._before = self._errors()

    def _errors(self) -> int:
        if self._device.manifest.memory is None:
            return 0
        return self._device.counters().get("memory_errors", 0)

    def check(self) -> None:
        """Raise an error if a memory has answered with one; the device is idle.

        Raises
        ------
        MemoryFaultError
        """
        errors = self._errors() - self._before
        if errors:
            raise MemoryFaultError(self._device.uri, errors)
