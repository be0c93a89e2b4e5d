# SPDX-License-Identifier: Apache-2.0
from collections import deque
import random
import re

import pytest

from hdl.parameters import JoinParameters
from hdl.verilog.conversion import to_verilog
from hdl.window.time_expiry import TimeExpiry
from tests.halves import half
from tests.hdl.cycles import each_cycle

#: Cycles that the oldest deadline may be on its way into or out of memory.
ON_ITS_WAY = 10


@pytest.mark.parametrize(("lifespan", "sub_window"), half([0, 1, 7, 100], [1, 2, 5, 16]))
def test_keys_leave_once_they_have_outlived_the_lifespan(sub_window, lifespan):
    """Exactly these leave, oldest first, within the stated cycles."""
    dut = TimeExpiry(JoinParameters(cores=1, sub_window=sub_window, timestamp_bits=16))
    assert dut.latency == 0
    generator = random.Random(sub_window * 1000 + lifespan)

    def steps(put, get):
        put(begin=1, size=lifespan)
        yield
        put(begin=0, restart=1)
        yield
        put(restart=0, timed=1, vacant=1)
        now, keys = 0, deque()
        for _ in range(200):
            now += generator.choice([0, 0, 1, 3, lifespan])
            put(coming=[now], fills=1, moves=1)
            yield
            put(present=1, moves=0)
            outlived = [key for key in keys if key + lifespan < now]
            cycles = 0
            while not get("settled"):
                assert cycles <= len(outlived) + ON_ITS_WAY
                if get("aged"):
                    assert keys.popleft() + lifespan < now
                yield
                put(vacant=not keys)
                cycles += 1
            assert not get("aged")
            assert not keys or keys[0] + lifespan >= now
            if not outlived and not keys:
                assert cycles == dut.latency
            store = len(keys) < sub_window and generator.random() < 0.7
            yield
            put(present=0, store=store, arrival=now)
            if store:
                keys.append(now)
            yield
            put(store=0, vacant=not keys)

    each_cycle(dut, steps)


def test_the_first_key_of_a_window_is_known_four_cycles_after_it_was_stored():
    """So the tuple behind it, which is at hand while it is stored, waits for as long."""
    dut = TimeExpiry(JoinParameters(cores=1, sub_window=16, timestamp_bits=16))

    def steps(put, get):
        put(begin=1, size=10)
        yield
        put(begin=0, restart=1)
        yield
        put(restart=0, timed=1, coming=[7], fills=1, moves=1)
        yield
        put(moves=0, present=1, store=1, arrival=5)
        for cycle in range(5):
            assert get("settled") == (cycle >= 4)
            yield
            put(store=0)

    each_cycle(dut, steps)


def test_nothing_leaves_a_window_that_is_not_timed():
    dut = TimeExpiry(JoinParameters(cores=1, sub_window=4, timestamp_bits=8))

    def steps(put, get):
        put(restart=1)
        yield
        put(restart=0, store=1, arrival=0, present=1, coming=[200], fills=1, moves=1)
        yield
        for _ in range(10):
            assert get("settled")
            assert not get("aged")
            yield

    each_cycle(dut, steps)


@pytest.mark.parametrize("lifespan", [0, 1, 7])
def test_two_tuples_are_settled_together_if_no_key_may_leave_between_them(lifespan):
    """Neither one that is there, nor the first of the two, if it is to be stored."""
    parameters = JoinParameters(
        cores=1, sub_window=9, timestamp_bits=16, engine="index", tuples_per_word=2
    )
    dut = TimeExpiry(parameters)
    generator = random.Random(lifespan)

    def steps(put, get):
        put(begin=1, size=lifespan)
        yield
        put(begin=0, restart=1, between=1)
        assert not get("both_settled")  # it is not known yet whether the window is timed
        yield
        put(restart=0, timed=1, vacant=1)
        now, keys, together = 0, deque(), [0, 0]
        for _ in range(200):
            now += generator.choice([0, 1, 3])
            later = now + generator.choice([0, 0, 1, lifespan + 1])
            between = generator.randrange(2)
            put(coming=[now, later], fills=1, moves=1)
            yield
            put(present=1, moves=0, between=between)
            waited = 0
            while not get("settled"):
                assert waited < 20
                waited += 1
                if get("aged"):
                    keys.popleft()
                yield
                put(vacant=not keys)
            lives = [key for key in keys if key + lifespan >= later]
            expected = len(lives) == len(keys) and not (between and not keys)
            assert get("both_settled") == expected
            together[expected] += 1
            store = len(keys) < 9
            yield
            put(present=0, store=store, arrival=now)
            if store:
                keys.append(now)
            yield
            put(store=0, vacant=not keys)
        assert min(together) > 10

    each_cycle(dut, steps)


@pytest.mark.parametrize(("vacant", "between"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_of_a_window_that_is_not_timed_only_an_empty_one_keeps_two_tuples_apart(vacant, between):
    parameters = JoinParameters(
        cores=1, sub_window=9, timestamp_bits=8, engine="index", tuples_per_word=2
    )

    def steps(put, get):
        put(coming=[3, 200], fills=1, moves=1)
        yield
        put(vacant=vacant, between=between, present=1, moves=0)
        assert get("settled")
        assert get("both_settled") == (not (vacant and between))
        yield

    each_cycle(TimeExpiry(parameters), steps)


@pytest.mark.parametrize(
    ("sub_window", "rows"), [(128, 128), (129, 256), pytest.param(100, 128, marks=pytest.mark.long)]
)
def test_deadlines_lie_in_as_many_rows_as_their_address_has_values(sub_window, rows):
    """Verilator guards a read that may lie outside, and then it cannot be fetched ahead."""
    dut = TimeExpiry(JoinParameters(cores=1, sub_window=sub_window, timestamp_bits=16))
    last = re.findall(r"^ *reg \[16:0\] memory \[(\d+):0\];", to_verilog(dut), re.MULTILINE)
    assert max(map(int, last)) + 1 == rows  # the other one is what is read ahead
