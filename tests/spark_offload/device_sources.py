# SPDX-License-Identifier: Apache-2.0
"""Devices and sources of devices for tests, most of which run the code of tasks without Spark."""

from host.query.quantities import Duration
from spark_offload.cluster.machines import DeviceSource

__all__ = ["made_by_task", "pool"]


def made_by_task(uri):
    """Return the source of a device that each task makes for itself."""
    return DeviceSource({uri: uri}, None, False, Duration(0))


def pool(*uris, seconds=0):
    """Return the source of a pool, whose devices are waited for so long."""
    return DeviceSource({uri: uri for uri in uris}, None, True, Duration(round(seconds * 1e9)))
