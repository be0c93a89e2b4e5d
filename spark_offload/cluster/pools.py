# SPDX-License-Identifier: Apache-2.0
"""Which devices of an elastic pool a streaming join uses: the load, the decisions and their log."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
import json
import math
import os
from pathlib import Path
import socket
import time
from typing import Any, Self
import zlib

from pyspark import TaskContext

from host.devices.locks import LockFolder, failed_devices
from host.errors import DeviceLockError, UsageError
from host.files.writing import atomic_output
from host.query.cores import REGIONS, Controller, CoreControl, Observation

__all__ = [
    "ElasticPool",
    "LoadFile",
    "MicroBatchTask",
    "PoolDecision",
    "PoolLoad",
    "PoolShare",
    "read_decisions",
    "repeat_decisions",
    "write_decisions",
]

# The load that a streaming join puts on the devices of a pool, from one micro-batch to the next.
#
# A controller sees a device of the pool as it sees a core of an accelerator. A device has no
# clock that all kinds of devices share, so a *cycle* of an observation is a microsecond here. A
# device is busy for as long as a task holds it, because it serves nobody else meanwhile.


@dataclass(frozen=True, kw_only=True)
class PoolLoad:
    """What is known at some moment of a micro-batch, and the number of devices that is in force.

    Times are in seconds since the epoch, durations in microseconds.

    Parameters
    ----------
    batch : int
        Number of the micro-batch.
    active : int
        Devices in force.
    calm : tuple of int
        The state of the control (:attr:`host.query.cores.CoreControl.calm`).
    seen : Observation or None
        What led to the number at the start of the micro-batch; None if no observation ended there.
    since : float
        When the interval of the observation began.
    started, ended : float
        When the first task of the micro-batch asked for a device, and when the last one so far let
        go of its own.
    batches : int
        Micro-batches of the interval that have ended.
    held : int
        Time for which tasks have held devices in the interval, summed over the devices.
    rows : int
        Rows of both sides that came in the interval.
    latency : int
        Time from ``started`` to ``ended``, summed over the micro-batches that have ended.
    peak : tuple of (int, int)
        Rows and duration of the interval with the highest rate so far.
    """

    batch: int
    active: int
    since: float
    started: float
    ended: float
    calm: tuple[int, ...] = ()
    seen: Observation | None = None
    batches: int = 0
    held: int = 0
    rows: int = 0
    latency: int = 0
    peak: tuple[int, int] = (0, 1)

    @classmethod
    def first(cls, batch: int, active: int, now: float) -> "PoolLoad":
        """Return the load before anything was observed."""
        return cls(batch=batch, active=active, since=now, started=now, ended=now)

    def used(self, held: float, rows: int, now: float) -> "PoolLoad":
        """Return the load after a task has held a device for ``held`` seconds, for these rows."""
        return replace(
            self,
            held=self.held + _microseconds(held),
            rows=self.rows + rows,
            ended=max(self.ended, now),
        )

    def at_border(self, batch: int, controller: Controller, devices: int, now: float) -> "PoolLoad":
        """Return the load at the start of another micro-batch, with the number for it.

        Parameters
        ----------
        batch : int
            Number of the micro-batch that begins.
        controller : Controller
            What decides, if its interval has passed.
        devices : int
            Devices of the pool.
        now : float
            The time.
        """
        ended = replace(
            self,
            batch=batch,
            active=min(devices, self.active),
            seen=None,
            started=now,
            ended=now,
            batches=self.batches + 1,
            latency=self.latency + _microseconds(self.ended - self.started),
        )
        cycles = max(1, _microseconds(now - self.since))
        if cycles < controller.interval:
            return ended
        rows, duration = peak = max(self.peak, (self.rows, cycles), key=lambda p: p[0] / p[1])
        seen = Observation(
            cores=ended.active,
            least=1,
            cycles=cycles,
            busy=REGIONS * ended.held,
            tuples=ended.rows,
            arrived=ended.rows,
            peak=math.ceil(rows * cycles / duration),
            latency=ended.latency // ended.batches,
        )
        control = CoreControl(controller, devices, active=ended.active, calm=self.calm)
        fresh = PoolLoad.first(batch, control.see(seen), now)
        return replace(fresh, calm=tuple(control.calm), seen=seen, peak=peak)

    @property
    def text(self) -> str:
        """The load as a JSON document, which :meth:`parse` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | bytes, now: float) -> "PoolLoad | None":
        """Return the load of a text; None unless all of it has the form that ``text`` has.

        A load of the future is none either, because the clock was set back since.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(values, dict) or values.keys() != {each.name for each in fields(cls)}:
            return None
        for name in ("calm", "peak"):
            if not isinstance(values[name], list):
                return None
            values[name] = tuple(values[name])
        if values["seen"] is not None:
            values["seen"] = _observation(values["seen"])
            if values["seen"] is None:
                return None
        load = cls(**values)
        return load if load._is_sound(now) else None

    def _is_sound(self, now: float) -> bool:
        counts = (self.batch, self.batches, self.held, self.rows, self.latency)
        times = (self.since, self.started, self.ended)
        return (
            all(map(_is_count, (*counts, self.active, *self.calm, *self.peak)))
            and self.active > 0
            and len(self.peak) == 2
            and self.peak[1] > 0
            and all(isinstance(time, float) and 0 <= time <= now for time in times)
        )


def _observation(values: Any) -> Observation | None:
    """Return the observation with these values; None unless they are counts with its names."""
    names = {each.name for each in fields(Observation)}
    if not isinstance(values, dict) or values.keys() != names:
        return None
    return Observation(**values) if all(map(_is_count, values.values())) else None


def _microseconds(seconds: float) -> int:
    return max(0, round(1e6 * seconds))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


# The file in which the tasks of a machine share the load of a streaming join.
#
# It lies beside the lock files of the devices, where everybody can write, so what does not look
# like a load counts as none.

LONGEST_TEXT = 1 << 16
"""Bytes of a file that are looked at; the kit writes fewer."""

LONGEST_WAIT_SECONDS = 10.0
"""For the file, which every task holds for a moment only."""


class LoadFile:
    """The file of a load, locked while its context is entered.

    Parameters
    ----------
    name : str
        Name of the query and of the join.

    Raises
    ------
    DeviceLockError
        If the file cannot be used, or another process does not let go of it.
    """

    def __init__(self, name: str) -> None:
        self._folder = LockFolder()
        self._name = name

    def read(self, now: float) -> PoolLoad | None:
        """Return the load; None if there is none that is sound at this time."""
        text = os.pread(self._descriptor, LONGEST_TEXT + 1, 0)
        return PoolLoad.parse(text, now) if len(text) <= LONGEST_TEXT else None

    def write(self, load: PoolLoad) -> None:
        """Replace the load."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, load.text.encode(), 0)
        except OSError:  # a full disk is no reason to fail: the load begins anew
            os.ftruncate(self._descriptor, 0)

    def __enter__(self) -> Self:
        end = time.monotonic() + LONGEST_WAIT_SECONDS
        while (descriptor := self._folder.lock(self._name)) is None:
            if time.monotonic() >= end:
                raise DeviceLockError(
                    f"The file of the load of {self._name} in {str(self._folder.path)!r} has been "
                    f"locked for {LONGEST_WAIT_SECONDS:g} s, and a task needs it for a moment "
                    f"only; find the process that holds it (fuser), and end it."
                )
            time.sleep(0.005)
        self._descriptor = descriptor
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


# What was decided of the devices of a pool for one micro-batch, as a value and as a text.


@dataclass(frozen=True)
class PoolDecision:
    """How many devices of a pool a streaming join uses in one micro-batch, on one machine.

    Parameters
    ----------
    machine : str
        Name of the machine, whose pool it is.
    batch : int
        Number of the micro-batch.
    devices : int
        Devices of the pool.
    active : int
        Number of them that are in use in this micro-batch.
    seen : Observation or None
        What was observed of the micro-batches before it, and led to the number; None if no
        observation ended here, so that the number stayed.
    """

    machine: str
    batch: int
    devices: int
    active: int
    seen: Observation | None

    @property
    def text(self) -> str:
        """The decision as a JSON document, which :meth:`parse` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> "PoolDecision":
        """Return the decision of a text."""
        values = json.loads(text)
        seen = values.pop("seen")
        return cls(**values, seen=None if seen is None else Observation(**seen))


# A log of what was decided of the devices of elastic pools, and the same decisions once more.


def write_decisions(decisions: Iterable[PoolDecision], path: str | Path) -> None:
    """Write decisions to a file, a JSON document a line, whole or not at all."""
    with atomic_output(Path(path)) as place:
        place.write_text("".join(f"{decision.text}\n" for decision in decisions), "utf-8")


def read_decisions(path: str | Path) -> list[PoolDecision]:
    """Return the decisions of a file.

    Raises
    ------
    UsageError
        If the file cannot be read, or a line is no decision.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The decisions in {str(path)!r} cannot be read: {error}.") from error
    decisions = []
    for number, line in enumerate(lines, 1):
        try:
            decisions.append(PoolDecision.parse(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(
                f"Line {number} of {str(path)!r} is no decision on the devices of a pool; give a "
                f"file that write_decisions has written."
            ) from None
    return decisions


def repeat_decisions(
    decisions: Iterable[PoolDecision], controller: Controller
) -> list[PoolDecision]:
    """Return what a controller decides on the observations of a log.

    With the controller that wrote the log, these are the same decisions. With another one, they are
    those that it would have made on what was observed, whose load is that of the devices which were
    in use at the time.

    Parameters
    ----------
    decisions : iterable of PoolDecision
        Decisions of one join, in the order of its micro-batches. The first one of each machine is
        where the control of that machine starts.
    controller : Controller
        What decides.
    """
    controls: dict[str, CoreControl] = {}
    repeated = []
    for decision in decisions:
        control = controls.get(decision.machine)
        if control is None:
            control = CoreControl(controller, decision.devices, active=decision.active)
            controls[decision.machine] = control
        elif decision.seen is not None:
            control.see(decision.seen)
        repeated.append(replace(decision, active=control.active))
    return repeated


# Which devices of a pool a streaming join uses on a machine, decided where micro-batches meet.
#
# A pool is the same list of devices on every machine, so every machine decides for itself. The
# tasks of a machine share the load that they put on its devices in a file beside the lock files
# of the devices. The first task of a micro-batch that asks for a device decides. All tasks of the
# micro-batches before it have ended by then, so their counters are complete.

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
