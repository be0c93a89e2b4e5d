# SPDX-License-Identifier: Apache-2.0
"""A deadline for every wait for a device."""

from dataclasses import dataclass

from host.device import WordDevice
from host.device.thread import Finished
from host.errors import DeviceTimeoutError

__all__ = ["Deadline", "DeviceWatch"]


@dataclass(frozen=True)
class Deadline:
    """Longest time in which a device may accept and produce nothing.

    Parameters
    ----------
    cycles : int
        Clock cycles.
    seconds : float
        Wall-clock time.
    """

    cycles: int = 50_000_000
    seconds: float = 300.0

    @property
    def of_exchange(self) -> float:
        """Seconds within which the driver of a device must return from an exchange."""
        return max(self.seconds, 1.0)


class DeviceWatch:
    """Sums the work of a device, and raises if nothing has moved for too long.

    Parameters
    ----------
    device : WordDevice
        Device, for the error message.
    deadline : Deadline
        Longest time without progress.

    Attributes
    ----------
    cycles, seconds : int, float
        Clock cycles and seconds that the device has worked.
    waited : float
        Seconds in which the host had nothing else to do.
    """

    def __init__(self, device: WordDevice, deadline: Deadline) -> None:
        self._device = device
        self._deadline = deadline
        self._idle_cycles, self._idle_seconds = 0, 0.0
        self.cycles, self.seconds, self.waited = 0, 0.0, 0.0

    def see(self, finished: Finished) -> None:
        """Add the numbers of an exchange.

        Raises
        ------
        DeviceTimeoutError
            If several exchanges together exceed the deadline without any progress.
        """
        done = finished.done
        self.cycles += done.cycles
        self.seconds += finished.seconds
        self.waited += finished.waited
        if done.accepted or done.produced:
            self._idle_cycles, self._idle_seconds = 0, 0.0
            return
        self._idle_cycles += done.cycles
        self._idle_seconds += finished.seconds
        if self._idle_cycles >= self._deadline.cycles:
            waited = f"{self._idle_cycles} cycles"
        elif self._idle_seconds >= self._deadline.seconds:
            waited = f"{self._idle_seconds:.1f} s"
        else:
            return
        raise DeviceTimeoutError(self._device.uri, waited, self._device.counters())
