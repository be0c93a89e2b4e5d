# SPDX-License-Identifier: Apache-2.0
"""Errors of devices that cannot be addressed, are busy, or fail."""

from collections.abc import Mapping, Sequence

from host.errors.base import FailureError, UsageError
from host.installation import command

__all__ = [
    "CoreFailureError",
    "DeviceBusyError",
    "DeviceError",
    "DeviceLockError",
    "DeviceTimeoutError",
    "DeviceUriError",
    "IllegalWordError",
    "MemoryFaultError",
]


class DeviceUriError(UsageError):
    """A device URI has no known scheme, or lacks what its scheme needs.

    Parameters
    ----------
    uri : str
        The URI as given.
    reason : str
        What is wrong with the URI.
    """

    def __init__(self, uri: str, reason: str) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(
            f"Device {uri!r} {reason}; a device is 'sim:BUNDLE', 'software:' or 'software:BUNDLE', "
            f"where BUNDLE is a folder that `{command('sim build --output BUNDLE')}` wrote (for "
            f"'software:', `{command('hdl generate')}` is enough), "
            f"'serial:PATH?baud=N&bundle=BUNDLE', "
            f"'tcp:HOST:PORT?bundle=BUNDLE' or 'udp:HOST:PORT?bundle=BUNDLE' for a board, or "
            f"'PACKAGE.MODULE:PLACE', where that module has a function open_device(PLACE)."
        )


class DeviceError(FailureError):
    """A device broke its contract or stopped working."""


class DeviceLockError(DeviceError):
    """The lock file that reserves a device for one process cannot be trusted."""


class DeviceTimeoutError(DeviceError):
    """A device made no progress before the deadline.

    Parameters
    ----------
    uri : str
        URI of the device.
    waited : str
        How long the caller waited, with its unit.
    counters : Mapping of str to int
        The device's counters at that moment.
    """

    def __init__(self, uri: str, waited: str, counters: Mapping[str, int]) -> None:
        self.uri = uri
        self.waited = waited
        self.counters = dict(counters)
        listing = ", ".join(f"{name} {value}" for name, value in self.counters.items())
        super().__init__(
            f"Device {uri!r} made no progress within {waited}; its counters: {listing or 'none'}."
        )


class CoreFailureError(DeviceError):
    """A core of the accelerator failed, and the answer lacks its pairs.

    Parameters
    ----------
    uri : str
        URI of the device.
    core : int
        Number of the core.
    reason : str
        Why the join cannot go on, and what can be done.
    """

    def __init__(self, uri: str, core: int, reason: str) -> None:
        self.uri = uri
        self.core = core
        self.reason = reason
        super().__init__(f"Core {core} of device {uri!r} failed. {reason}")


class IllegalWordError(DeviceError):
    """A device received an input word that is illegal for it, and dropped the word.

    This package sends no illegal words: the word was changed on its way, or another writer sent it.

    Parameters
    ----------
    uri : str
        URI of the device.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"Device {uri!r} got an input word that is neither a tuple nor an operation it knows, "
            f"and dropped it, so its answer may lack pairs; check the link to the device, and that "
            f"nobody else writes to it, then run the join again, which begins with CLEAR."
        )


class MemoryFaultError(DeviceError):
    """An external memory answered with an error, so tuples of the windows were lost.

    Parameters
    ----------
    uri : str
        URI of the device.
    errors : int
        Beats and bursts that were answered with an error since the join began.
    """

    def __init__(self, uri: str, errors: int) -> None:
        self.uri = uri
        self.errors = errors
        super().__init__(
            f"An external memory of device {uri!r} answered {errors} beats or bursts with an "
            f"error, so its windows lack tuples and its answer may lack pairs; check the address "
            f"ranges behind the ports m_axi_* and the memory itself, then run the join again."
        )


class DeviceBusyError(DeviceError):
    """No device became free before the deadline; each can be used by one process at a time.

    Parameters
    ----------
    devices : sequence of str
        The devices, any of which would have sufficed.
    waited : str
        How long the caller waited, with its unit.
    holders : Mapping of str to str
        The known holders of the devices.
    remedy : str
        What the user can do.
    """

    def __init__(
        self, devices: Sequence[str], waited: str, holders: Mapping[str, str], remedy: str
    ) -> None:
        self.devices = tuple(devices)
        self.waited = waited
        self.holders = dict(holders)
        self.remedy = remedy
        several = len(self.devices) > 1
        listing = ", ".join(repr(device) for device in self.devices)
        held = "; ".join(f"{device!r} is held by {by}" for device, by in self.holders.items())
        super().__init__(
            f"{'None of the devices' if several else 'Device'} {listing} "
            f"{'became' if several else 'did not become'} free within {waited}; "
            f"{held or 'no holder is recorded'}; {remedy}."
        )
