# SPDX-License-Identifier: Apache-2.0
"""The window of a side against a list of its tuples."""

import random

import pytest

from bench.handshake import HANDSHAKE
from bench.handshake.windows import SideWindow
from hdl.parameters import JoinParameters
from hdl.window.time_expiry import DeadlineQueue
from tests.halves import half
from tests.hdl.cycles import each_cycle

#: Cycles until the oldest deadline is known.
PATIENCE = 10


def parameters_of(cores, timestamp_bits):
    return JoinParameters.of(
        cores=cores,
        sub_window=2,
        timestamp_bits=timestamp_bits,
        architecture=HANDSHAKE,
    )


class Model:
    """The deadlines of the tuples in a window, and what the window may hold."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.held, self.timed, self.size = [], False, capacity

    def begin(self, timed, size):
        self.timed, self.size = timed, size

    def due(self, own, time):
        """Whether the oldest tuple leaves before the one at hand."""
        if self.timed:
            return bool(self.held) and self.held[0] < time
        return own and len(self.held) == self.size

    def full(self):
        return self.timed and len(self.held) == self.capacity


@pytest.mark.few(2)
@pytest.mark.parametrize(("timestamp_bits", "cores"), half([0, 9], [1, 2, 3, 5]))
def test_a_window_says_who_leaves_and_whether_there_is_room(cores, timestamp_bits):
    parameters = parameters_of(cores, timestamp_bits)
    dut = SideWindow(parameters)
    generator = random.Random(cores)
    seen = {"full": 0, "due by time": 0, "due by count": 0, "waited": 0}

    def steps(put, get):
        model, time, waited, emptying = Model(parameters.capacity), 0, 0, False
        for _ in range(3_000):
            own = generator.random() < 0.7
            time = min(time + generator.choice([0, 0, 1, 3]), 500) if timestamp_bits else 0
            put(own=own, time=time, add=0, drop=0, begin=0)
            assert get("empty") == (not model.held)
            assert get("full") == model.full()
            settled = get("settled")
            waited = 0 if settled else waited + 1
            assert waited <= PATIENCE
            seen["waited"] = max(seen["waited"], waited)
            emptying = emptying or generator.random() < 0.02
            if settled:
                due = model.due(own, time)
                assert get("due") == due
                seen["full"] += model.full()
                seen["due by time" if model.timed else "due by count"] += due
                if emptying and not model.held:
                    timed = bool(timestamp_bits) and generator.random() < 0.5
                    size = generator.choice([0, 4, 60] if timed else [1, 2, parameters.capacity])
                    put(begin=1, timed=timed, size=size)
                    model.begin(timed, size)
                    emptying, time = False, 0
                elif model.held and (due or emptying):
                    put(drop=1)
                    del model.held[0]
                elif own and not model.full() and generator.random() < 0.8:
                    put(add=1)
                    model.held.append(time + model.size)
            yield

    each_cycle(dut, steps)
    assert seen["due by count"] > 20
    if timestamp_bits:
        assert seen["full"] > 10
        assert seen["due by time"] > 20
        assert seen["waited"] > 0
    else:
        assert seen["waited"] == 0


def test_a_window_has_its_capacity_after_reset_and_answers_a_cycle_later():
    parameters = parameters_of(3, 0)
    dut = SideWindow(parameters)

    def steps(put, get):
        put(own=1)
        for count in range(parameters.capacity):
            assert (get("due"), get("empty")) == (0, count == 0)
            put(add=1)
            for _ in range(dut.latency):
                yield
        put(add=0)
        assert get("due")
        put(own=0)
        assert not get("due")

    each_cycle(dut, steps)


def test_a_deadline_is_known_after_the_stated_cycles():
    """One that has to go through the memory, behind others, is known as late as the queue says."""
    dut = SideWindow(parameters_of(5, 8))
    latency = DeadlineQueue(9, depth=16).latency

    def steps(put, get):
        put(begin=1, timed=1, size=0)
        yield
        put(begin=0, own=1, add=1)
        for time in range(6):
            put(time=time)
            yield
        put(add=0, time=100)
        waits = []
        for _ in range(6):
            wait = 0
            while not get("settled"):
                assert wait <= latency
                wait += 1
                yield
            assert get("due")
            waits.append(wait)
            put(drop=1)
            yield
            put(drop=0)
        assert get("empty")
        assert max(waits) <= PATIENCE

    each_cycle(dut, steps)


def test_a_lifespan_reaches_beyond_the_greatest_timestamp():
    """A deadline has one bit more than a timestamp, so its tuple stays."""
    dut = SideWindow(parameters_of(1, 4))

    def steps(put, get):
        put(begin=1, timed=1, size=15)
        yield
        put(begin=0, own=1, time=12, add=1)
        yield
        put(add=0, time=15)
        for _ in range(PATIENCE):
            yield
        assert get("settled")
        assert not get("due")

    each_cycle(dut, steps)
