# SPDX-License-Identifier: Apache-2.0
"""Which devices of a pool a streaming join uses on a machine, decided where micro-batches meet.

A pool is the same list of devices on every machine, so every machine decides for itself. The tasks
of a machine share the load that they put on its devices in a file beside the lock files of the
devices. The first task of a micro-batch that asks for a device decides. All tasks of the
micro-batches before it have ended by then, so their counters are complete.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import socket
import time
import zlib

from pyspark import TaskContext

from host.devices.locks import failed_devices
from host.query.cores import Controller
from spark_offload.devices.load_file import LoadFile
from spark_offload.devices.pool_decision import PoolDecision
from spark_offload.devices.pool_load import PoolLoad

__all__ = ["ElasticPool", "MicroBatchTask", "PoolShare"]

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Properties by which Spark tells a task its query and its micro-batch."""


@dataclass(frozen=True)
class ElasticPool:
    """How a streaming join chooses among the devices of its pool; shipped with the tasks.

    Parameters
    ----------
    controller : Controller
        What decides how many devices are used.
    join : str
        Name of the join, by which joins of one query are told apart.
    """

    controller: Controller
    join: str


@dataclass(frozen=True)
class MicroBatchTask:
    """The micro-batch that a task is a part of.

    Parameters
    ----------
    query : str
        Spark's identity of the query, the same after a restart.
    batch : int
        Number of the micro-batch.
    """

    query: str
    batch: int

    @classmethod
    def here(cls) -> "MicroBatchTask | None":
        """Return that of the task that runs here; None outside of a streaming query."""
        context = TaskContext.get()
        query, batch = (
            (None, None) if context is None else map(context.getLocalProperty, (_QUERY, _BATCH))
        )
        return None if query is None or batch is None else cls(query, int(batch))


class PoolShare:
    """The devices that the tasks of a micro-batch use on this machine.

    Parameters
    ----------
    pool : ElasticPool
        What decides.
    devices : sequence of str
        Names of all devices of the pool.
    task : MicroBatchTask
        The micro-batch.
    clock : callable
        Returns the time, in seconds since the epoch.

    Attributes
    ----------
    decision : PoolDecision
        The number of devices in use, and why.
    devices : list of str
        These devices. Devices that have failed recently are the last to be used. Queries that
        share a pool begin at different devices of it.

    Raises
    ------
    DeviceLockError
        If the file of the load cannot be used.
    """

    def __init__(
        self,
        pool: ElasticPool,
        devices: Sequence[str],
        task: MicroBatchTask,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = f"streaming query {task.query}, {pool.join}"
        self._batch = task.batch
        self._clock = clock
        with LoadFile(self._name) as file:
            now = clock()
            load = file.read(now)
            if load is None:
                load = PoolLoad.first(task.batch, len(devices), now)
            elif task.batch > load.batch:
                load = load.at_border(task.batch, pool.controller, len(devices), now)
            file.write(load)
        active = min(load.active, len(devices))
        self.decision = PoolDecision(
            socket.gethostname(), task.batch, len(devices), active, load.seen
        )
        self.devices = _in_order(devices, self._name)[:active]

    def note(self, held: float, rows: int) -> None:
        """Add to the load: a task has held a device for ``held`` seconds, for so many rows."""
        with LoadFile(self._name) as file:
            now = self._clock()
            load = file.read(now)
            # A task that Spark has given up may still run while the next micro-batch does.
            if load is not None and load.batch == self._batch:
                file.write(load.used(held, rows, now))


def _in_order(devices: Sequence[str], name: str) -> list[str]:
    first = zlib.crc32(name.encode()) % len(devices)
    turned = [*devices[first:], *devices[:first]]
    failed = failed_devices(turned)
    return sorted(turned, key=lambda device: device in failed)
