# SPDX-License-Identifier: Apache-2.0
from collections import deque
import random

import pytest

from hdl.window.time_expiry import DeadlineQueue
from tests.halves import half
from tests.hdl.cycles import each_cycle
from tests.hdl.hostile_column import HostileColumn


@pytest.fixture(autouse=True)
def hostile(monkeypatch):
    monkeypatch.setattr("hdl.window.time_expiry.KeyColumn", HostileColumn)


@pytest.mark.parametrize(("depth", "seed"), half([1, 2, 4, 16], range(3), of=3))
def test_numbers_leave_in_order_within_the_latency(depth, seed):
    """Whether they go through the memory or past it, in times of plenty and of want."""
    generator = random.Random(seed)
    dut = DeadlineQueue(9, depth=depth)

    def steps(put, get):
        queue = deque()  # number, and the cycle in which it was added
        waited = taken = straight = full = 0
        before, rose = [None] * 3, [1, 1]  # what the last three registers showed a cycle ago
        for cycle in range(3_000):
            oldest, following = get("oldest_valid"), get("following_valid")
            assert oldest + following <= len(queue)
            if oldest:
                assert get("oldest") == queue[0][0]
                straight += cycle == queue[0][1] + 4
                waited = 0
            else:
                waited = waited + 1 if queue else 0
                assert waited <= dut.latency
            if following:
                assert get("following") == queue[oldest][0]
            # A number was in the register before for at least a cycle, and rose as was told.
            if rose[0] and oldest:
                assert get("oldest") == before[1]
            if rose[1] and following:
                assert get("following") == before[2]
            if not rose[0]:
                assert (oldest, get("oldest")) == (1, before[0])
            if not rose[1]:
                assert (following, get("following")) == (1, before[1])
            number = generator.randrange(512)
            add = len(queue) < depth and generator.random() < (0.9 if cycle // 100 % 2 else 0.3)
            take = oldest and generator.random() < (0.4 if cycle // 200 % 2 else 0.9)
            full += len(queue) == depth
            put(add=add, last=number, take=take)
            before = [get(name) for name in ("oldest", "following", "coming")]
            rose = [get("rises") >> n & 1 for n in range(2)]
            yield
            if take:
                queue.popleft()
                taken += 1
            if add:
                queue.append((number, cycle))
        assert taken > 400
        assert straight > 10
        assert full > 10

    each_cycle(dut, steps)


def test_a_number_a_cycle_goes_through():
    dut = DeadlineQueue(9, depth=16)

    def steps(put, get):
        for n in range(100):
            put(add=1, last=n, take=n > 9)
            if n > 9:
                assert get("oldest") == n - 10
                assert get("following_valid")
            yield

    each_cycle(dut, steps)


def test_latency_of_the_first_numbers_and_of_one_that_goes_through_the_memory():
    dut = DeadlineQueue(9, depth=16)

    def steps(put, get):
        for cycle in range(7):
            put(add=cycle < 5, last=cycle + 1)
            assert get("following_valid") == (cycle >= 3)
            assert get("oldest_valid") == (cycle >= 4)
            yield
        put(take=1)
        for number in range(1, 5):
            assert get("oldest") == number
            yield
        put(take=0)
        cycle = 11
        while not get("oldest_valid"):
            assert cycle < 20
            yield
            cycle += 1
        assert get("oldest") == 5
        assert cycle == 4 + dut.latency

    each_cycle(dut, steps)
