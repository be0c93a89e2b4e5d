# SPDX-License-Identifier: Apache-2.0
"""A device at work beside its caller."""

from dataclasses import dataclass, field
from queue import SimpleQueue
import threading
import time

from host.device.contract import Device, Exchange, Stamps
from host.errors import DeviceTimeoutError
from host.exact import UInt64s

__all__ = ["DeviceThread", "Finished"]

_START_SECONDS = 1.0
"""Waiting for an exchange to begin only saves time, so it is given up soon."""


@dataclass(frozen=True)
class Finished:
    """An exchange that has ended.

    Parameters
    ----------
    done : Exchange
        What the device did.
    words, results : array of uint64
        What it was given.
    stamps : Stamps or None
        Likewise.
    seconds : float
        How long the device worked.
    waited : float
        For how much of that the caller had nothing else to do.
    """

    done: Exchange
    words: UInt64s
    results: UInt64s
    stamps: Stamps | None
    seconds: float
    waited: float


@dataclass
class _Request:
    words: UInt64s
    results: UInt64s
    cycles: int
    stamps: Stamps | None
    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    done: Exchange | None = None
    error: BaseException | None = None
    seconds: float = 0.0

    def run(self, device: Device) -> None:
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
    """Runs the exchanges of a device in a thread of its own, one at a time.

    A card works while its host prepares the next words and decodes the last results, and so does a
    simulated device, which lets go of the interpreter's lock. A device that keeps the lock works in
    turn with its host, as it would without a thread.

    Parameters
    ----------
    device : Device
        An open device. Nobody else may use it while an exchange is under way.

    Attributes
    ----------
    is_stuck : bool
        Whether the device's driver had not returned from an exchange when that was waited for.
    close_seconds : float
        Longest time for which :meth:`close` waits for an exchange under way.
    """

    close_seconds = 30.0

    def __init__(self, device: Device) -> None:
        self._device = device
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._running: _Request | None = None
        self.is_stuck = False
        self._thread = threading.Thread(
            target=_serve, args=(device, self._requests), name=f"device {device.uri}", daemon=True
        )
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether there is an exchange that has not been finished."""
        return self._running is not None

    def begin(
        self, words: UInt64s, results: UInt64s, *, cycles: int, stamps: Stamps | None = None
    ) -> None:
        """Begin an exchange; the arrays belong to it until it is finished."""
        assert self._running is None
        self._running = _Request(words, results, cycles, stamps)
        self._requests.put(self._running)
        # Without this the thread would wait for the interpreter's lock until it is next let go.
        self._running.began.wait(_START_SECONDS)

    def finish(self, seconds: float) -> Finished:
        """Wait for the exchange that was begun, and return what it did.

        Parameters
        ----------
        seconds : float
            Longest time to wait.

        Raises
        ------
        DeviceTimeoutError
            If the device's driver has not returned by then. Its counters cannot be read, for the
            device is still in use.
        Exception
            What the exchange raised.
        """
        request = self._running
        assert request is not None
        start = time.monotonic()
        if not request.ended.wait(seconds):
            self.is_stuck = True
            raise self._timeout(seconds)
        self._running = None
        if request.error is not None:
            raise request.error
        assert request.done is not None
        return Finished(
            request.done,
            request.words,
            request.results,
            request.stamps,
            request.seconds,
            time.monotonic() - start,
        )

    def close(self) -> None:
        """Let the thread end; closing it again does nothing.

        A thread whose device's driver is stuck cannot be interrupted. It ends as soon as the driver
        returns; it is a daemon, so a program can exit before that.

        Raises
        ------
        DeviceTimeoutError
            If the driver does not return from an exchange that nobody has finished. Its counters
            cannot be read, for the device is still in use.
        """
        self._requests.put(None)
        if self.is_stuck:
            return  # whoever waited for the exchange has been told
        self._thread.join(self.close_seconds)
        if self._thread.is_alive():
            self.is_stuck = True
            raise self._timeout(self.close_seconds)

    def _timeout(self, seconds: float) -> DeviceTimeoutError:
        waited = f"{seconds:.1f} s, in which its driver has not returned"
        return DeviceTimeoutError(self._device.uri, waited, {})


def _serve(device: Device, requests: "SimpleQueue[_Request | None]") -> None:
    while (request := requests.get()) is not None:
        request.run(device)
