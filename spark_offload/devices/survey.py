# SPDX-License-Identifier: Apache-2.0
"""What the devices of a join are: looked at here if they can be made here, else asked of a task.

A device that is not made by whoever wants it may be on the machines of executors only, and Spark
assigns its resources to tasks alone.
"""

from collections.abc import Callable, Iterator
import json

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from host import Manifest, UsageError, open_device
from host.protocol.manifest import join_manifest
from spark_offload.cluster import cluster_of
from spark_offload.cluster.shipping import ship_packages
from spark_offload.devices.sources import DeviceSource
from spark_offload.devices.task_device import take_device
from spark_offload.failures.translation import task_error

__all__ = ["survey"]


def survey(source: DeviceSource, session: SparkSession) -> Manifest:
    """Return the manifest of the devices of a source.

    Raises
    ------
    JoinError
        If a device does not open, or those that were looked at are different accelerators.
    """
    here = source.made_by_tasks
    if not here:
        return _asked_of_a_task(source, session)
    found: list[Manifest] = []
    for address in here:
        with open_device(address.uri) as device:
            found.append(device.manifest)
        if found[-1].hash != found[0].hash:
            raise UsageError(
                f"Devices {here[0].name!r} and {address.name!r} are different accelerators; any "
                f"task may get any device of a pool, so name such as have one bundle."
            )
    return found[0]


def _asked_of_a_task(source: DeviceSource, session: SparkSession) -> Manifest:
    cluster = cluster_of(session)
    ship_packages(cluster)
    describe = _describing(source.shipped(cluster))
    try:
        row = session.range(0, 1, 1, 1).mapInArrow(describe, "manifest string").first()
    except PySparkException as error:
        raise task_error(error) from error
    assert row is not None  # every task gives one
    return join_manifest(json.loads(row.manifest), name=source.text)


def _describing(
    source: DeviceSource,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``."""

    def splitjoin_device(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        with take_device(source) as taken:
            manifest = json.dumps(taken.device.manifest.values)
        yield pa.record_batch({"manifest": pa.array([manifest])})

    return splitjoin_device
