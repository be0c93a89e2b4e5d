# SPDX-License-Identifier: Apache-2.0
"""Open a device when it is this process's turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from host.device import Device, is_shared, open_device
from host.device.lock import claim_device
from host.errors import UsageError
from host.query.durations import Duration, parse_duration

__all__ = ["WAIT_DEFAULT", "open_in_turn", "parse_wait"]

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
    DeviceBusyError
        If the device did not become free.
    DeviceError
        If the device cannot be opened, or its lock cannot be used.
    """
    if not is_shared(uri):
        with open_device(uri) as device:
            yield device
        return
    claim = claim_device([uri], holder=holder, seconds=seconds, remedy=remedy, report=report)
    with claim, open_device(uri) as device:
        yield device
