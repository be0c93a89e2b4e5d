# SPDX-License-Identifier: Apache-2.0
"""Devices and sources of devices for tests, most of which run the code of tasks without Spark."""

import shutil

from host.devices.software import SOFTWARE_MANIFEST
from host.query.quantities import Duration
from spark_offload.cluster.devices import DeviceAddress, DeviceSource

__all__ = ["made_by_task", "pool", "software_devices"]


def made_by_task(uri):
    """Return the source of a device that each task makes for itself."""
    return DeviceSource((DeviceAddress(uri, uri),), None, False, Duration(0))


def pool(*uris, seconds=0):
    """Return the source of a pool, whose devices are waited for so long."""
    devices = tuple(DeviceAddress(uri, uri) for uri in uris)
    return DeviceSource(devices, None, True, Duration(round(seconds * 1e9)))


def software_devices(folder, count):
    """Return the addresses of equal software devices, whose bundles are put into a folder."""
    bundles = [folder / f"device-{number}" for number in range(count)]
    for bundle in bundles:
        bundle.mkdir()
        shutil.copy(SOFTWARE_MANIFEST, bundle / "manifest.json")
    return [f"software:{bundle}" for bundle in bundles]
