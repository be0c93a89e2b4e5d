# SPDX-License-Identifier: Apache-2.0
"""Where the tasks of a join get their devices from, what these are, and the device of one task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import json
import os
import time
from types import TracebackType
from typing import Self, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from host import Device, Manifest, UsageError, open_device
from host.devices import device_kind, is_shared
from host.devices.bundles import DEVICE_VARIABLE
from host.devices.locks import WAIT_DEFAULT, DeviceClaim, claim_device, parse_wait
from host.errors import DeviceError, DeviceTimeoutError, unusable_uri
from host.protocol.manifest import join_manifest
from host.query.quantities import Duration
from spark_offload.cluster.machines import (
    Cluster,
    cluster_of,
    local_device_uri,
    ship_bundle,
    ship_packages,
)
from spark_offload.errors import task_error

__all__ = [
    "DEVICE",
    "DeviceSource",
    "Devices",
    "OURS",
    "TaskDevice",
    "WAIT",
    "device_source",
    "named_devices",
    "survey",
    "take_device",
]

# Where the tasks of a join get their devices from: made by each, from a pool, or from Spark.

Devices: TypeAlias = "str | Sequence[str] | None"
"""The address of a device, ``"resource:NAME"``, or several addresses, which are a pool."""

_RESOURCE = "resource"
"""Scheme of devices that Spark assigns to tasks."""

OURS = "splitjoin"
"""Name of the resource of Spark that is used where no device is named."""

DEVICE = "spark.splitjoin.device"
"""Option of the session: the device where none is named; several, with commas, are a pool."""

WAIT = "spark.splitjoin.device.wait"
"""Option of the session: how long a task waits for a device that another one holds."""


@dataclass(frozen=True)
class DeviceSource:
    """Where each task gets a device; shipped with the tasks.

    Parameters
    ----------
    devices : mapping of str to str
        Addresses, any of which will do, as given, by which machines know their locks and messages
        call them; and as executors open them. None if Spark assigns them.
    resource : str or None
        Name of the resource that Spark assigns.
    is_locked : bool
        Whether a device serves one task of a machine at a time.
    wait : Duration
        How long a task waits for a device that another one holds.
    manifest_hash : str or None
        The accelerator that the join was planned for.
    """

    devices: Mapping[str, str]
    resource: str | None
    is_locked: bool
    wait: Duration
    manifest_hash: str | None = None

    @property
    def text(self) -> str:
        """The devices as the user knows them."""
        if self.resource is not None:
            return f"{_RESOURCE}:{self.resource}"
        return ", ".join(self.devices)

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
        return f"every machine has {len(self.devices)}; {turns} for any of them"

    def shipped(self, cluster: Cluster) -> "DeviceSource":
        """Send the bundles of the devices to the executors; return the source as it is there."""
        devices = {name: ship_bundle(cluster, uri) for name, uri in self.devices.items()}
        return replace(self, devices=devices)

    def of_task(self, context: TaskContext | None) -> Mapping[str, str]:
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
        return {address: address for address in resources[self.resource].addresses}


def named_devices(session: SparkSession) -> tuple[str | list[str] | None, str]:
    """Return the devices that the surroundings of a session name, and what names them.

    Parameters
    ----------
    session : SparkSession
        For its options.
    """
    option = session.conf.get(DEVICE, None)
    if option:
        names = [name.strip() for name in option.split(",")]
        return names[0] if len(names) == 1 else names, f"named by {DEVICE}"
    if not os.environ.get(DEVICE_VARIABLE) and session.conf.get(_amount(OURS), None) is not None:
        return f"{_RESOURCE}:{OURS}", f"Spark assigns the resource {OURS!r} to tasks"
    return None, ""


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
        if scheme == _RESOURCE:
            _check_resource(name, session)
            return DeviceSource({}, name, True, wait)
        return DeviceSource({devices: devices}, None, is_shared(devices), wait)
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
        if device.partition(":")[0] == _RESOURCE:
            raise UsageError(
                f"{device!r} cannot be one of several devices; give it alone: Spark chooses among "
                f"all addresses of the resource."
            )
        device_kind(device)
    return DeviceSource({device: device for device in pool}, None, True, wait)


def _check_resource(name: str, session: SparkSession) -> None:
    if not name:
        raise unusable_uri(f"{_RESOURCE}:", "lacks the name of Spark's resource")
    if session.conf.get(_amount(name), None) is None:
        raise UsageError(
            f"Device '{_RESOURCE}:{name}' asks for a resource that Spark does not assign to tasks; "
            f"{_resource_remedy(name)}."
        )


def _amount(name: str) -> str:
    return f"spark.task.resource.{name}.amount"


def _resource_remedy(name: str) -> str:
    return (
        f"start the session with {_amount(name)} and spark.executor.resource.{name}.amount, on a "
        f"cluster whose workers have a discovery script (see docs/spark-cluster.md)"
    )


# The device of one task, from when it gets it until it lets go of it.

_REMEDY = (
    f"let tasks wait longer ({WAIT}), run fewer of them at a time on a machine, give more devices, "
    f"or end that process"
)


@dataclass(eq=False)
class TaskDevice:
    """An open device that belongs to a task; made by :func:`take_device`.

    A context manager that closes itself. If the task fails because the device did, the error gets
    the device's name and counters, and the next tasks prefer other devices.

    Parameters
    ----------
    device : Device
        The device.
    name : str
        Its address.
    attempt : int
        How many attempts at the task had failed before.
    claim : DeviceClaim or None
        The lock on it, if it has one.
    waited : float
        Seconds that the task has waited for it.
    """

    device: Device
    name: str
    attempt: int
    claim: DeviceClaim | None = None
    waited: float = 0.0

    def close(self, error: BaseException | None = None) -> None:
        """Let go of the device; doing it again does nothing.

        Parameters
        ----------
        error : BaseException, optional
            What the task fails with.

        Raises
        ------
        DeviceError
            If nothing else has failed before, and the device is still at work or its lock file was
            removed meanwhile.
        """
        claim, self.claim = self.claim, None
        try:
            if isinstance(error, DeviceError):
                self._complete(error)
            self.device.close_after(error)
        except BaseException as refusal:
            error = refusal
            raise
        finally:
            if claim is not None:
                claim.release_after(error)

    def _complete(self, error: DeviceError) -> None:
        """Add the device's name and counters to an error that does not tell them."""
        if isinstance(error, DeviceTimeoutError):
            said = "" if error.uri == self.name else f"Device {self.name!r}."
        else:
            said = f"Device {self.name!r}; its counters: {self._counters()}."
        if said:
            error.args = (f"{error} ({said})",)

    def _counters(self) -> str:
        try:
            counters = self.device.counters()
        except (DeviceError, OSError) as refusal:
            return f"cannot be read, {str(refusal).rstrip('.')}"
        return ", ".join(f"{name} {value}" for name, value in counters.items()) or "none"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(error)


def take_device(source: DeviceSource) -> TaskDevice:
    """Get a device for the task that runs here, and open it.

    Which one is preferred goes by the partition and the attempt, so tasks spread over a pool, and
    one that runs again begins with another device.

    Raises
    ------
    DeviceError
        If the device does not open, or none became free.
    UsageError
        If there is no such device, or it is another accelerator than the join was planned for.
    """
    context = TaskContext.get()
    partition, attempt = (
        (0, 0) if context is None else (context.partitionId(), context.attemptNumber())
    )
    devices = source.of_task(context)
    names = list(devices)
    first = (partition + attempt) % len(names)
    if not source.is_locked:
        return TaskDevice(_opened(names[first], devices, source), names[first], attempt)
    began = time.monotonic()
    claim = claim_device(
        names[first:] + names[:first],
        holder=f"partition {partition} of a Spark job, attempt {attempt}",
        seconds=source.wait.nanoseconds / 1e9,
        remedy=_REMEDY,
    )
    waited = time.monotonic() - began
    try:
        device = _opened(claim.name, devices, source)
    except BaseException as error:
        claim.release(failed=isinstance(error, Exception))
        raise
    return TaskDevice(device, claim.name, attempt, claim, waited)


def _opened(name: str, devices: Mapping[str, str], source: DeviceSource) -> Device:
    try:
        device = open_device(local_device_uri(devices[name]))
    except OSError as error:
        raise DeviceError(f"Device {name!r} did not open: {error}.") from error
    if source.manifest_hash not in (None, device.manifest.hash):
        device.close()
        raise UsageError(
            f"Device {name!r} is the accelerator {device.manifest.hash[:12]}, and the join "
            f"was planned for {str(source.manifest_hash)[:12]}; configure all devices alike."
        )
    return device


# What the devices of a join are: looked at here if they can be made here, else asked of a task.
#
# A device that is not made by whoever wants it may be on the machines of executors only, and
# Spark assigns its resources to tasks alone.


def survey(source: DeviceSource, session: SparkSession) -> Manifest:
    """Return the manifest of the devices of a source.

    Raises
    ------
    JoinError
        If a device does not open, or those that were looked at are different accelerators.
    """
    here = [name for name in source.devices if not is_shared(name)]
    if not here:
        return _asked_of_a_task(source, session)
    found: list[Manifest] = []
    for name in here:
        with open_device(source.devices[name]) as device:
            found.append(device.manifest)
        if found[-1].hash != found[0].hash:
            raise UsageError(
                f"Devices {here[0]!r} and {name!r} are different accelerators; any "
                f"task may get any device of a pool, so name such as have one bundle."
            )
    return found[0]


def _asked_of_a_task(source: DeviceSource, session: SparkSession) -> Manifest:
    cluster = cluster_of(session)
    ship_packages(cluster)
    shipped = source.shipped(cluster)

    def splitjoin_device(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        with take_device(shipped) as taken:
            manifest = json.dumps(taken.device.manifest.values)
        yield pa.record_batch({"manifest": pa.array([manifest])})

    try:
        row = session.range(0, 1, 1, 1).mapInArrow(splitjoin_device, "manifest string").first()
    except PySparkException as error:
        raise task_error(error) from error
    assert row is not None  # every task gives one
    return join_manifest(json.loads(row.manifest), name=source.text)
