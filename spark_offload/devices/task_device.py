# SPDX-License-Identifier: Apache-2.0
"""The device of one task, from when it gets it until it lets go of it."""

import time
from types import TracebackType
from typing import Self

from pyspark import TaskContext

from host import Device, open_device
from host.devices.locks import DeviceClaim, claim_device
from host.errors import DeviceError, DeviceTimeoutError, UsageError
from spark_offload.cluster.shipping import local_device_uri
from spark_offload.devices.pool_decision import PoolDecision
from spark_offload.devices.pool_share import MicroBatchTask, PoolShare
from spark_offload.devices.sources import WAIT, DeviceAddress, DeviceSource

__all__ = ["TaskDevice", "take_device"]

_REMEDY = (
    f"let tasks wait longer ({WAIT}), run fewer of them at a time on a machine, give more devices, "
    f"or end that process"
)


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
    share : PoolShare, optional
        The devices of the pool that are in use, which the load of the task is told.

    Attributes
    ----------
    rows : int
        Rows that the task has joined on it; counted by the task.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        attempt: int,
        claim: DeviceClaim | None,
        *,
        waited: float = 0.0,
        share: PoolShare | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self.attempt = attempt
        self.waited = waited
        self.rows = 0
        self._claim = claim
        self._share = share
        self._since = time.monotonic()

    @property
    def decision(self) -> PoolDecision | None:
        """How many devices of the pool are in use, and why; None if all are, always."""
        return None if self._share is None else self._share.decision

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
        claim, self._claim = self._claim, None
        share, self._share = self._share, None
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
        if share is not None and error is None:
            share.note(time.monotonic() - self._since, self.rows)

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
    one that runs again begins with another device. Of an elastic pool, a first attempt takes a
    device that is in use in the micro-batch, and a later one any device.

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
    share = _share(source)
    if share is not None and attempt == 0:
        named = {device.name: device for device in devices}
        devices = tuple(named[name] for name in share.devices)
    first = (partition + attempt) % len(devices)
    named = {device.name: device for device in devices[first:] + devices[:first]}
    if not source.is_locked:
        return TaskDevice(_opened(devices[first], source), devices[first].name, attempt, None)
    began = time.monotonic()
    claim = claim_device(
        list(named),
        holder=f"partition {partition} of a Spark job, attempt {attempt}",
        seconds=source.wait.nanoseconds / 1e9,
        remedy=_REMEDY,
    )
    waited = time.monotonic() - began
    try:
        device = _opened(named[claim.name], source)
    except BaseException as error:
        claim.release(failed=isinstance(error, Exception))
        raise
    return TaskDevice(device, claim.name, attempt, claim, waited=waited, share=share)


def _share(source: DeviceSource) -> PoolShare | None:
    """Return the devices of the pool that are in use; None if all are, always."""
    here = MicroBatchTask.here()
    if source.elastic is None or here is None:
        return None
    return PoolShare(source.elastic, [device.name for device in source.devices], here)


def _opened(address: DeviceAddress, source: DeviceSource) -> Device:
    try:
        device = open_device(local_device_uri(address.uri))
    except OSError as error:
        raise DeviceError(f"Device {address.name!r} did not open: {error}.") from error
    if source.manifest_hash not in (None, device.manifest.hash):
        device.close()
        raise UsageError(
            f"Device {address.name!r} is the accelerator {device.manifest.hash[:12]}, and the join "
            f"was planned for {str(source.manifest_hash)[:12]}; configure all devices alike."
        )
    return device
