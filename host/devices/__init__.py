# SPDX-License-Identifier: Apache-2.0
"""Devices, and functions to open them: what takes words and gives words back.

Here are the contract, the devices (simulated, software, behind a link), their locks, the bundles on
this machine and the self test. What words mean is in :mod:`host.protocol`; what to send next, and
what to do about an answer, is decided in :mod:`host.session`.
"""

from host.devices.contract import (
    Device,
    Exchange,
    Stamps,
    WordDevice,
    device_kind,
    is_shared,
    open_aggregate,
    open_device,
)

__all__ = [
    "Device",
    "Exchange",
    "Stamps",
    "WordDevice",
    "device_kind",
    "is_shared",
    "open_aggregate",
    "open_device",
]
