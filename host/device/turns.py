# SPDX-License-Identifier: Apache-2.0
"""A device opened when it is this process's turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from host.device import Device, is_shared, open_device
from host.device.lock import claim_device
from host.durations import Duration, parse_duration
from host.errors import UsageError

__all__ = ["WAIT_DEFAULT", "open_in_turn", "parse_wait"]

WAIT_DEFAULT = "10min"
"""For so long a device is waited for unless the user says otherwise."""


def parse_wait(text: str, option: str) -> Duration:
    """Read how long to wait for a device, as the value of an option.

    Raises
    ------
    UsageError
        If it is no duration, or a negative one.
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
        The device.
    holder : str
        Who wants it, for those who will have to wait.
    seconds : float
        How long to wait for a device that another process holds.
    remedy : str
        What the user can do if that is not enough.
    report : callable, optional
        Is called once with a sentence, if there is something to wait for.

    Raises
    ------
    DeviceBusyError
        If the device did not become free.
    DeviceError
        If it does not open, or its lock cannot be used.
    """
    if not is_shared(uri):
        with open_device(uri) as device:
            yield device
        return
    claim = claim_device([uri], holder=holder, seconds=seconds, remedy=remedy, report=report)
    with claim, open_device(uri) as device:
        yield device
