# SPDX-License-Identifier: Apache-2.0
"""Exchanges with a device in a thread beside its caller, their deadlines, and memory errors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
import threading
import time

import numpy as np

from host.arrays import Bools, UInt64s
from host.devices.contract import Device, Exchange, Stamps, WordDevice
from host.errors import DeviceError, DeviceTimeoutError

__all__ = [
    "Conversation",
    "Deadline",
    "DeviceThread",
    "DeviceWatch",
    "MemoryWatch",
    "Turn",
    "Work",
]

# Run the exchanges of a device in a thread beside its caller.

_START_SECONDS = 1.0
"""Longest wait, in seconds, for an exchange to begin. The wait only saves time."""


@dataclass
class Turn:
    """An exchange that a :class:`DeviceThread` makes, and its result once it has ended.

    Parameters
    ----------
    words, results, cycles, stamps
        What the exchange gets.

    Attributes
    ----------
    done : Exchange
        Result of the exchange.
    error : BaseException or None
        What the exchange raised.
    seconds : float
        Duration of the exchange.
    waited : float
        Seconds that the caller waited for the end of the exchange.
    began, ended : threading.Event
        Set when the exchange has begun, and when it has ended.
    """

    words: UInt64s
    results: UInt64s
    cycles: int
    stamps: Stamps | None
    done: Exchange = field(init=False)
    error: BaseException | None = None
    seconds: float = 0.0
    waited: float = 0.0
    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self, device: WordDevice) -> None:
        """Make the exchange, in the thread of the device."""
        start = time.monotonic()
        self.began.set()
        try:
            self.done = device.exchange(
                self.words, self.results, cycles=self.cycles, stamps=self.stamps
            )
        except BaseException as error:
            self.error = error
        self.seconds = time.monotonic() - start
        self.ended.set()


class DeviceThread:
    """Runs the exchanges of a device in a separate thread, one at a time.

    A card works while its host prepares the next words and decodes the last results. So does a
    simulated device, which releases the interpreter's lock. A device that keeps the lock alternates
    with its host, as it would without a thread.

    Parameters
    ----------
    device : WordDevice
        An open device, which nobody else may use during an exchange.

    Attributes
    ----------
    is_stuck : bool
        Whether the device's driver did not return from an exchange in time.
    close_seconds : float
        Longest time for which :meth:`close` waits for a running exchange.
    """

    close_seconds = 30.0

    def __init__(self, device: WordDevice) -> None:
        self._device = device
        self._requests: SimpleQueue[Turn | None] = SimpleQueue()
        self._running: Turn | None = None
        self.is_stuck = False
        self._thread = threading.Thread(
            target=_serve, args=(device, self._requests), name=f"device {device.uri}", daemon=True
        )
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether an exchange has begun and not been finished."""
        return self._running is not None

    def begin(
        self, words: UInt64s, results: UInt64s, *, cycles: int, stamps: Stamps | None = None
    ) -> None:
        """Begin an exchange; the arrays must not be used until it is finished."""
        assert self._running is None
        self._running = Turn(words, results, cycles, stamps)
        self._requests.put(self._running)
        # Without this wait, the thread would have to wait for the interpreter's lock.
        self._running.began.wait(_START_SECONDS)

    def finish(self, seconds: float) -> Turn:
        """Wait for the running exchange, and return it.

        Parameters
        ----------
        seconds : float
            Longest time to wait.

        Raises
        ------
        DeviceTimeoutError
            If the device's driver has not returned in time. Its counters cannot be read, because
            the device is still in use.
        Exception
            Any error that the exchange raised.
        """
        turn = self._running
        assert turn is not None
        start = time.monotonic()
        if not turn.ended.wait(seconds):
            self.is_stuck = True
            raise self._timeout(seconds)
        self._running = None
        if turn.error is not None:
            raise turn.error
        turn.waited = time.monotonic() - start
        return turn

    def close(self) -> None:
        """End the thread; closing it again has no effect.

        A thread whose device's driver is stuck cannot be interrupted. The thread ends when the
        driver returns. It is a daemon, so the program can exit before that.

        Raises
        ------
        DeviceTimeoutError
            If the driver does not return from an unfinished exchange. Its counters cannot be read,
            because the device is still in use.
        """
        self._requests.put(None)
        if self.is_stuck:
            return  # the caller of `finish` got the error
        self._thread.join(self.close_seconds)
        if self._thread.is_alive():
            self.is_stuck = True
            raise self._timeout(self.close_seconds)

    def _timeout(self, seconds: float) -> DeviceTimeoutError:
        waited = f"{seconds:.1f} s, in which its driver has not returned"
        return DeviceTimeoutError(self._device.uri, waited, {})


def _serve(device: WordDevice, requests: "SimpleQueue[Turn | None]") -> None:
    while (request := requests.get()) is not None:
        request.run(device)


# A deadline for every wait for a device.


@dataclass(frozen=True)
class Deadline:
    """Longest time in which a device may accept and produce nothing.

    Parameters
    ----------
    cycles : int
        Clock cycles.
    seconds : float
        Wall-clock time.
    """

    cycles: int = 50_000_000
    seconds: float = 300.0

    @property
    def of_exchange(self) -> float:
        """Seconds within which the driver of a device must return from an exchange."""
        return max(self.seconds, 1.0)


@dataclass
class Work:
    """What an engine took; one without a clock leaves ``cycles`` at zero.

    Parameters
    ----------
    cycles, seconds : int, float
        Clock cycles and seconds that the engine has worked, mostly in parallel to the host.
    waited : float
        Seconds in which the host had nothing else to do.
    """

    cycles: int = 0
    seconds: float = 0.0
    waited: float = 0.0


class DeviceWatch:
    """Sums the work of a device, and raises if nothing has moved for too long.

    Parameters
    ----------
    device : WordDevice
        Device, for the error message.
    deadline : Deadline
        Longest time without progress.
    work : Work, optional
        What the numbers are added to; by default a new one.

    Attributes
    ----------
    work : Work
        The sum.
    """

    def __init__(self, device: WordDevice, deadline: Deadline, work: Work | None = None) -> None:
        self._device = device
        self._deadline = deadline
        self._idle_cycles, self._idle_seconds = 0, 0.0
        self.work = Work() if work is None else work

    def see(self, finished: Turn) -> None:
        """Add the numbers of an exchange.

        Raises
        ------
        DeviceTimeoutError
            If several exchanges together exceed the deadline without any progress.
        """
        done = finished.done
        self.work.cycles += done.cycles
        self.work.seconds += finished.seconds
        self.work.waited += finished.waited
        if done.accepted or done.produced:
            self._idle_cycles, self._idle_seconds = 0, 0.0
            return
        self._idle_cycles += done.cycles
        self._idle_seconds += finished.seconds
        if self._idle_cycles >= self._deadline.cycles:
            waited = f"{self._idle_cycles} cycles"
        elif self._idle_seconds >= self._deadline.seconds:
            waited = f"{self._idle_seconds:.1f} s"
        else:
            return
        raise DeviceTimeoutError(self._device.uri, waited, self._device.counters())


class Conversation:
    """Sends words to a device that answers some of them with marks, and takes all of its results.

    The device stays open when the conversation is closed.

    Parameters
    ----------
    device : WordDevice
        An open device, which nobody else uses meanwhile.
    deadline : Deadline
        Longest time without progress.
    marks : callable
        Returns which result words are marks.
    room : array of uint64
        Room for the results of an exchange, a word in each row.
    cycles : int
        Most clock cycles of an exchange.
    work : Work, optional
        What the device took is added to it; by default to a new one.
    """

    def __init__(
        self,
        device: WordDevice,
        deadline: Deadline,
        marks: Callable[[UInt64s], Bools],
        room: UInt64s,
        cycles: int,
        work: Work | None = None,
    ) -> None:
        self._deadline, self._marks, self._room, self._cycles = deadline, marks, room, cycles
        self._watch = DeviceWatch(device, deadline, work)
        self._thread = DeviceThread(device)
        self.work = self._watch.work

    def send(
        self, words: UInt64s, marks: int = 1, check: Callable[[UInt64s], None] | None = None
    ) -> UInt64s:
        """Send words; return all results up to the last of so many marks.

        Raises
        ------
        DeviceTimeoutError
            If nothing moves for too long.
        Exception
            What ``check`` raises for the results of an exchange.
        """
        arrived = []
        while marks > 0:
            self._thread.begin(words, self._room, cycles=self._cycles)
            finished = self._thread.finish(self._deadline.of_exchange)
            self._watch.see(finished)
            words = words[finished.done.accepted :]
            results = self._room[: finished.done.produced].copy()
            if check is not None:
                check(results)
            arrived.append(results)
            marks -= int(self._marks(results).sum())
        return np.concatenate(arrived)

    def close(self) -> None:
        """End the thread that drives the device."""
        self._thread.close()


# Watch over windows in external memory: no result is handed on after an error of the memory.


class MemoryWatch:
    """Compares the accelerator's count of errors of its memories with that at the beginning.

    It costs nothing if windows are on the chip.

    Parameters
    ----------
    device : Device
        An open device that is idle.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._before = self._errors()

    def _errors(self) -> int:
        if self._device.manifest.memory is None:
            return 0
        return self._device.counters().get("memory_errors", 0)

    def check(self) -> None:
        """Raise an error if a memory has answered with one; the device is idle.

        Raises
        ------
        DeviceError
        """
        errors = self._errors() - self._before
        if errors:
            raise DeviceError(
                f"An external memory of device {self._device.uri!r} answered {errors} beats or "
                f"bursts with an error, so its windows lack tuples and its answer may lack pairs; "
                f"check the address ranges behind the ports m_axi_* and the memory itself, then "
                f"run the join again."
            )
