# SPDX-License-Identifier: Apache-2.0
"""The load that a streaming join puts on the devices of a pool, from one micro-batch to the next.

A controller sees a device of the pool as it sees a core of an accelerator. A device has no clock
that all kinds of devices share, so a *cycle* of an observation is a microsecond here. A device is
busy for as long as a task holds it, because it serves nobody else meanwhile.
"""

from dataclasses import asdict, dataclass, fields, replace
import json
import math
from typing import Any

from host.query.cores import REGIONS, Controller, CoreControl, Observation

__all__ = ["PoolLoad"]


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
