# SPDX-License-Identifier: Apache-2.0
"""Where the tasks of a join get their devices from: made by each, from a pool, or from Spark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark import TaskContext
from pyspark.sql import SparkSession

from host import UsageError
from host.devices import device_kind, is_shared
from host.devices.locks import WAIT_DEFAULT, parse_wait
from host.errors import DeviceUriError
from host.query.cores import Controller
from host.query.quantities import Duration
from spark_offload.cluster import Cluster
from spark_offload.cluster.shipping import ship_bundle
from spark_offload.devices.pool_share import ElasticPool

__all__ = ["RESOURCE", "WAIT", "DeviceAddress", "DeviceSource", "Devices", "device_source"]

Devices: TypeAlias = "str | Sequence[str] | None"
"""The address of a device, ``"resource:NAME"``, or several addresses, which are a pool."""

RESOURCE = "resource"
"""Scheme of devices that Spark assigns to tasks."""

WAIT = "spark.splitjoin.device.wait"
"""Option of the session: how long a task waits for a device that another one holds."""


@dataclass(frozen=True)
class DeviceAddress:
    """A device.

    Parameters
    ----------
    name : str
        Its address as given, by which machines know its lock and messages call it.
    uri : str
        Its address on executors, as :func:`~spark_offload.cluster.shipping.ship_bundle` returned
        it.
    """

    name: str
    uri: str


@dataclass(frozen=True)
class DeviceSource:
    """Where each task gets a device; shipped with the tasks.

    Parameters
    ----------
    devices : tuple of DeviceAddress
        Any of which will do; none if Spark assigns them.
    resource : str or None
        Name of the resource that Spark assigns.
    is_locked : bool
        Whether a device serves one task of a machine at a time.
    wait : Duration
        How long a task waits for a device that another one holds.
    manifest_hash : str or None
        The accelerator that the join was planned for.
    elastic : ElasticPool or None
        How many devices of the pool are used, if that may change from one micro-batch to the next.
    """

    devices: tuple[DeviceAddress, ...]
    resource: str | None
    is_locked: bool
    wait: Duration
    manifest_hash: str | None = None
    elastic: ElasticPool | None = None

    @property
    def text(self) -> str:
        """The devices as the user knows them."""
        if self.resource is not None:
            return f"{RESOURCE}:{self.resource}"
        return ", ".join(device.name for device in self.devices)

    @property
    def supply(self) -> str:
        """How a task comes by its device, for the explanation."""
        turns = f"tasks of a machine take turns, each waits up to {self.wait}"
        if self.resource is not None:
            return f"Spark assigns each task one of its resource {self.resource!r}; {turns}"
        if not self.is_locked:
            return "each task makes one of its own"
        if len(self.devices) == 1:
            return f"every machine has one; {turns}"
        text = f"every machine has {len(self.devices)}; {turns} for any of them"
        if self.elastic is not None:
            text += (
                f"; elastic, {self.elastic.controller}: the load decides how many of them are used "
                f"in a micro-batch"
            )
        return text

    @property
    def made_by_tasks(self) -> tuple[DeviceAddress, ...]:
        """Those devices that any process can make, the driver too."""
        return tuple(device for device in self.devices if not is_shared(device.name))

    def with_elastic(self, controller: Controller, join: str) -> "DeviceSource":
        """Return the source of a streaming join that uses more or fewer devices of its pool.

        Parameters
        ----------
        controller : Controller
            What decides how many.
        join : str
            Name of the join.

        Raises
        ------
        UsageError
            If there is no pool to choose from.
        """
        if len(self.devices) < 2:
            raise UsageError(
                f"elastic decides how many devices of a pool a streaming join uses, and device is "
                f"{self.text!r}, not a pool; give a list of two or more devices, or leave elastic "
                f"out."
            )
        return replace(self, elastic=ElasticPool(controller, join))

    def shipped(self, cluster: Cluster) -> "DeviceSource":
        """Send the bundles of the devices to the executors; return the source as it is there."""
        devices = [replace(device, uri=ship_bundle(cluster, device.uri)) for device in self.devices]
        return replace(self, devices=tuple(devices))

    def of_task(self, context: TaskContext | None) -> tuple[DeviceAddress, ...]:
        """Return the devices that a task may use, on its executor.

        Raises
        ------
        UsageError
            If Spark has assigned none to the task.
        """
        if self.resource is None:
            return self.devices
        resources = {} if context is None else context.resources()
        if self.resource not in resources:
            raise UsageError(
                f"Spark has assigned no resource {self.resource!r} to this task, only "
                f"{', '.join(map(repr, resources)) or 'none'}; {_resource_remedy(self.resource)}."
            )
        addresses = resources[self.resource].addresses
        return tuple(DeviceAddress(address, address) for address in addresses)


def device_source(devices: str | Sequence[str], session: SparkSession) -> DeviceSource:
    """Return the source of devices that a user asks for.

    Parameters
    ----------
    devices : str or sequence of str
        An address, ``"resource:NAME"``, or the addresses of a pool.
    session : SparkSession
        For its options.

    Raises
    ------
    UsageError
        If it is none, or one of an unknown kind.
    """
    wait = parse_wait(session.conf.get(WAIT, None) or WAIT_DEFAULT, WAIT)
    if isinstance(devices, str):
        scheme, _, name = devices.partition(":")
        if scheme == RESOURCE:
            _check_resource(name, session)
            return DeviceSource((), name, True, wait)
        addresses = (DeviceAddress(devices, devices),)
        return DeviceSource(addresses, None, is_shared(devices), wait)
    pool = tuple(devices) if isinstance(devices, Sequence) else ()
    if not pool or not all(isinstance(device, str) for device in pool):
        raise UsageError(
            f"device must be a text such as 'sim:BUNDLE' or a list of such texts, not {devices!r}."
        )
    for index, device in enumerate(pool):
        if device in pool[:index]:
            raise UsageError(
                f"The pool of devices names {device!r} twice; name every device once, for a task "
                f"has it to itself."
            )
        if device.partition(":")[0] == RESOURCE:
            raise UsageError(
                f"{device!r} cannot be one of several devices; give it alone: Spark chooses among "
                f"all addresses of the resource."
            )
        device_kind(device)
    return DeviceSource(tuple(DeviceAddress(device, device) for device in pool), None, True, wait)


def _check_resource(name: str, session: SparkSession) -> None:
    if not name:
        raise DeviceUriError(f"{RESOURCE}:", "lacks the name of Spark's resource")
    if session.conf.get(_amount(name), None) is None:
        raise UsageError(
            f"Device '{RESOURCE}:{name}' asks for a resource that Spark does not assign to tasks; "
            f"{_resource_remedy(name)}."
        )


def _amount(name: str) -> str:
    return f"spark.task.resource.{name}.amount"


def _resource_remedy(name: str) -> str:
    return (
        f"start the session with {_amount(name)} and spark.executor.resource.{name}.amount, on a "
        f"cluster whose workers have a discovery script (see docs/spark-cluster.md)"
    )
