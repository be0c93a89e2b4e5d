# SPDX-License-Identifier: Apache-2.0
"""Closing a device ends in time, whatever its driver does."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from host.devices import simulated
from host.devices.simulated import SimulatedDevice
from host.devices.software import SOFTWARE_MANIFEST
from host.devices.waiting import Deadline, DeviceThread
from host.errors import DeviceError, DeviceTimeoutError
from host.session.join import Join
from tests.host.devices.test_device_thread import QUERY, begin, gated, table


class BlockingLibrary:
    """A simulator library whose exchange lasts until it is let go."""

    def __init__(self):
        self.entered, self.gate = threading.Event(), threading.Event()
        self.destroyed = []

    def splitjoin_create(self, seed, stall_in, stall_out):
        return 7

    def splitjoin_destroy(self, handle):
        self.destroyed.append(handle)

    def splitjoin_exchange(self, *arguments):
        self.entered.set()
        assert self.gate.wait(60)


@pytest.fixture
def library(monkeypatch):
    """The library of a device that is inside an exchange."""
    result = BlockingLibrary()
    monkeypatch.setattr(simulated, "load_library", lambda bundle, manifest: result)
    monkeypatch.setattr(SimulatedDevice, "close_seconds", 0.2)
    monkeypatch.setattr(SimulatedDevice, "turn_seconds", 0.1)
    return result


def exchange(device):
    word, result = device.manifest.input_word, device.manifest.result_word
    room = (np.zeros((0, columns), np.uint64) for columns in (word.columns, result.columns))
    return device.exchange(*room, cycles=5)


def test_a_simulation_that_does_not_return_is_an_error_and_closes_when_it_does(library):
    device = SimulatedDevice(SOFTWARE_MANIFEST, uri="sim:stuck")
    worker = threading.Thread(target=exchange, args=[device])
    worker.start()
    assert library.entered.wait(60)
    with pytest.raises(DeviceError, match=r"'sim:stuck' is busy: .* within 0\.1 s"):
        device.counters()
    began = time.monotonic()
    with pytest.raises(DeviceError, match=r"'sim:stuck' did not close within 0\.2 s.*counters"):
        device.close()
    device.close()  # again: nothing to do, and nothing to wait for
    assert time.monotonic() - began < 10
    with pytest.raises(DeviceError, match="is closed"):
        exchange(device)
    assert not library.destroyed
    library.gate.set()
    worker.join(60)
    assert library.destroyed == [7]
    device.close()
    del device
    assert library.destroyed == [7]


def test_an_error_of_the_work_is_not_hidden_by_that_of_closing(library):
    device = SimulatedDevice(SOFTWARE_MANIFEST, uri="sim:stuck")
    device.counters = dict
    join = Join(table(9, 1), table(9, 2), QUERY, device, deadline=Deadline(seconds=1))
    with pytest.raises(DeviceTimeoutError, match="has not returned") as caught, device:
        list(join.batches())
    assert "did not close within" in caught.value.__notes__[0]
    library.gate.set()


def test_a_thread_whose_device_does_not_return_is_told_once(monkeypatch):
    monkeypatch.setattr(DeviceThread, "close_seconds", 0.2)
    with gated() as device:
        thread = DeviceThread(device)
        begin(thread, device)
        with pytest.raises(DeviceTimeoutError, match=r"'gated:'.*0\.2 s, in which its driver"):
            thread.close()
        assert thread.is_stuck
        thread.close()


def test_a_program_ends_although_a_simulation_does_not_return(root):
    """The call is a real one of C, which no Python thread can interrupt."""
    script = """
import ctypes, sys, threading, types
from host.devices import simulated
from host.devices.software import SOFTWARE_MANIFEST
from host.devices.waiting import DeviceThread
import numpy as np

libc, entered = ctypes.CDLL(None), threading.Event()

def forever(*arguments):
    entered.set()
    libc.sleep(600)

simulated.load_library = lambda bundle, manifest: types.SimpleNamespace(
    splitjoin_create=lambda *arguments: 7,
    splitjoin_destroy=lambda handle: print("destroyed"),
    splitjoin_exchange=forever,
)
device = simulated.SimulatedDevice(SOFTWARE_MANIFEST, uri="sim:stuck")
device.close_seconds = 0.2
thread = DeviceThread(device)
words, results = (np.zeros((0, layout.columns), np.uint64)
    for layout in (device.manifest.input_word, device.manifest.result_word))
thread.begin(words, results, cycles=5)
entered.wait()
try:
    if sys.argv[1] == "closed":
        device.close()
except Exception as error:
    print(type(error).__name__)
"""
    for how, said in (("closed", "DeviceError\n"), ("left", "")):
        done = subprocess.run(
            [sys.executable, "-c", script, how],
            cwd=root, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
