# SPDX-License-Identifier: Apache-2.0
from contextlib import contextmanager
import threading

import numpy as np
import pyarrow as pa
import pytest

from host import open_device
from host.devices import Device, Exchange
from host.devices.waiting import Deadline, DeviceThread
from host.errors import DeviceError, DeviceTimeoutError
from host.query.queries import Query
from host.session.join import Join
from tests.host.tables import naive_join

QUERY = Query(on="x", time="t", rows=50)


class Gated(Device):
    """A device whose exchanges last until they are let go."""

    def __init__(self, inner):
        self.inner, self.uri, self.manifest = inner, "gated:", inner.manifest
        self.entered, self.gate = threading.Event(), threading.Event()
        self.threads = set()

    def exchange(self, words, results, *, cycles, stamps=None):
        self.threads.add(threading.get_ident())
        self.entered.set()
        assert self.gate.wait(60)
        return self.inner.exchange(words, results, cycles=cycles, stamps=stamps)

    def counters(self):
        return self.inner.counters()

    def close(self):
        pass


class Broken(Gated):
    """A device whose exchanges fail."""

    def exchange(self, words, results, *, cycles, stamps=None):
        raise DeviceError("The link is down.")


@contextmanager
def gated(kind=Gated):
    with open_device("software:") as inner:
        device = kind(inner)
        yield device
        device.gate.set()


def begin(thread, device):
    """Begin an exchange of no words."""
    word, result = device.manifest.input_word, device.manifest.result_word
    room = (np.zeros((0, columns), np.uint64) for columns in (word.columns, result.columns))
    thread.begin(*room, cycles=5)


def names():
    return [thread.name for thread in threading.enumerate()]


def pairs_of(result):
    return list(zip(*(rows.tolist() for rows in result.pairs), strict=True))


def table(rows, seed):
    rng = np.random.default_rng(seed)
    return pa.table({"t": np.arange(rows), "x": rng.integers(0, 20, rows)})


def test_the_caller_goes_on_while_the_device_works():
    with gated() as device:
        thread = DeviceThread(device)
        begin(thread, device)
        assert device.entered.is_set() or device.entered.wait(60)
        assert thread.is_busy
        device.gate.set()
        finished = thread.finish(60)
        assert (finished.done, thread.is_busy) == (Exchange(0, 0, 0), False)
        assert finished.waited >= 0
        assert device.threads.isdisjoint({threading.get_ident()})
        thread.close()
    assert "device gated:" not in names()


def test_what_an_exchange_raises_is_raised_where_it_is_finished():
    with gated(Broken) as device:
        thread = DeviceThread(device)
        begin(thread, device)
        with pytest.raises(DeviceError, match="link is down"):
            thread.finish(60)
        assert not thread.is_busy
        thread.close()


def test_a_driver_that_does_not_return_is_an_error_and_no_hang():
    with gated() as device:
        join = Join(table(9, 1), table(9, 2), QUERY, device, deadline=Deadline(seconds=0.1))
        with pytest.raises(DeviceTimeoutError, match=r"1\.0 s, in which its driver has not"):
            list(join.batches())
        assert names().count("device gated:") == 1
    for thread in threading.enumerate():
        if thread.name == "device gated:":
            thread.join(60)
    assert "device gated:" not in names()


def test_a_reader_that_stops_while_the_device_works_leaves_it_usable():
    left, right = table(400_000, 1), table(400_000, 2)
    with open_device("software:") as device:
        reader = Join(left, right, QUERY, device).batches()
        next(reader)
        reader.close()
        assert names().count("device software:") == 0
        few = left.slice(0, 300), right.slice(0, 200)
        assert pairs_of(Join(*few, QUERY, device).run()) == naive_join(*few, QUERY)


class Patient(Gated):
    """A device that stays in every exchange until the host has told of its progress."""

    def __init__(self, inner):
        super().__init__(inner)
        self.told = []
        self.report = threading.Event()

    def exchange(self, words, results, *, cycles, stamps=None):
        self.report.clear()
        done = self.inner.exchange(words, results, cycles=cycles, stamps=stamps)
        self.told.append(self.report.wait(1.0))
        return done


def test_results_are_decoded_while_the_device_works():
    rows = 20_000
    with gated(Patient) as device:
        join = Join(
            table(rows, 1),
            table(rows, 2),
            QUERY,
            device,
            report=lambda progress: device.report.set(),
            buffer_rows=1 << 11,
        )
        assert sum(batch.num_rows for batch in join.batches())
    # The first exchange has none before it, and the one with the end none behind it.
    assert len(device.told) > 4
    assert sum(device.told) >= len(device.told) - 2
    assert join.measured.waited <= join.measured.seconds
