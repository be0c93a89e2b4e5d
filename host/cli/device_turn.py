# SPDX-License-Identifier: Apache-2.0
"""The option for how long a command waits for a device, and the device opened in its turn."""

import argparse
from contextlib import AbstractContextManager
import sys

from host.device import Device
from host.device.turns import WAIT_DEFAULT, open_in_turn, parse_wait
from host.query.durations import Duration

__all__ = ["add_wait", "open_for_command", "wait_of"]

_OPTION = "--device-wait"


def add_wait(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option to a command."""
    parser.add_argument(
        _OPTION, default=WAIT_DEFAULT, metavar="DURATION",
        help="how long to wait for a device that another process uses; default: %(default)s",
    )  # fmt: skip


def wait_of(options: argparse.Namespace) -> Duration:
    """Return the value of the option.

    Raises
    ------
    UsageError
        If it is not a duration, or is a negative one.
    """
    return parse_wait(options.device_wait, _OPTION)


def open_for_command(uri: str, command: str, wait: Duration) -> AbstractContextManager[Device]:
    """Return a context with the device, which says on standard error if it has to wait.

    Parameters
    ----------
    uri : str
        URI of the device.
    command : str
        What other processes are told that holds the device, such as ``python -m host join``.
    wait : Duration
        Longest time to wait.
    """
    return open_in_turn(
        uri,
        holder=command,
        seconds=wait.nanoseconds / 1e9,
        remedy=f"wait longer ({_OPTION}), or end that process",
        report=lambda text: print(f"device: {text}", file=sys.stderr),
    )
