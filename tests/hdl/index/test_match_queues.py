# SPDX-License-Identifier: Apache-2.0
"""Queues of matches in one memory, against lists."""

from collections import deque
import random

import pytest

from hdl.index.layouts import found_layout
from hdl.index.results import MatchQueues
from hdl.parameters import JoinParameters
from tests.halves import half
from tests.hdl.cycles import each_cycle
from tests.hdl.input_words import integer

IN_FLIGHT = 3


def queues_of(probes):
    """The queues of an index with groups of so many probes."""
    parameters = JoinParameters.of(
        engine="index", comparator="equality", sub_window=20, probes=probes, probe_bits=8
    )
    return MatchQueues(parameters, in_flight=IN_FLIGHT), found_layout(parameters)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("probes", "seed"),
    half([4, 16, 64], range(3), of=4),
)
def test_matches_of_a_queue_leave_in_order_in_its_turn(probes, seed):
    """With matches for every queue up to its end, and one taken in most cycles."""
    dut, layout = queues_of(probes)
    generator = random.Random(seed)

    def steps(put, get):
        queues = [deque() for _ in range(dut.queues)]
        reading = deque([None] * dut.READING)  # what was taken in each of the last cycles
        rooms = deque([0] * IN_FLIGHT)  # queues with room in the last cycles
        turn = found = taken = full = 0
        for cycle in range(6_000):
            expected = reading.popleft()
            if expected is not None:
                assert integer(layout, get("first")) == expected
            rooms.append(get("room"))
            rooms.popleft()
            queue = generator.choice([turn, generator.randrange(dut.queues)])
            match = generator.randrange(1 << layout.size)
            comes = bool(rooms[0] >> queue & 1) and generator.random() < 0.8
            full += not rooms[-1] >> queue & 1
            put(found_valid=comes, found_queue=queue, found=layout.from_bits(match))
            waiting = get("waiting")
            late = sum(when + dut.latency > cycle for when, _ in queues[turn])
            assert waiting == (len(queues[turn]) > late)
            take = waiting and generator.random() < (0.9 if cycle // 500 % 2 else 0.5)
            empty = not queues[turn] and not (comes and queue == turn)
            leaves = empty and generator.random() < 0.1
            put(take=take, leaves=leaves)
            reading.append(queues[turn].popleft()[1] if take else None)
            if comes:
                queues[queue].append((cycle, match))
            if leaves:
                turn = (turn + 1) % dut.queues
            found, taken = found + comes, taken + take
            yield
        assert taken > 1_000
        assert found > 1_000
        assert full > 100

    each_cycle(dut, steps)


def test_latency_of_a_match():
    dut, _ = queues_of(16)

    def steps(put, get):
        put(found_valid=1)
        for cycle in range(5):
            assert get("waiting") == (cycle >= dut.latency)
            yield
            put(found_valid=0)

    each_cycle(dut, steps)


def test_a_queue_that_is_full_has_no_room():
    dut, layout = queues_of(16)

    def steps(put, get):
        put(found_valid=1, found_queue=1, found=layout.from_bits(5))
        for _ in range(3):
            yield
        assert get("room") == (1 << dut.queues) - 1
        for _ in range(dut.depth - IN_FLIGHT - 3 - 1):
            yield
        put(found_valid=0)
        for _ in range(2):
            yield
        assert get("room") == (1 << dut.queues) - 1
        put(found_valid=1)
        yield
        put(found_valid=0)
        for _ in range(2):
            yield
        assert get("room") == (1 << dut.queues) - 1 - (1 << 1)
        assert not get("waiting")
        put(leaves=1)
        yield
        put(leaves=0)
        assert get("waiting")

    each_cycle(dut, steps)


def test_depth_is_shared_among_the_queues():
    assert [queues_of(probes)[0].depth for probes in (4, 16, 64)] == [64, 64, 256]
