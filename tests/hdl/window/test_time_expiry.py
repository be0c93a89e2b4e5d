# SPDX-License-Identifier: Apache-2.0
from collections import Counter, deque
import random
import re

import pytest

from hdl.parameters import JoinParameters
from hdl.verilog.conversion import to_verilog
from hdl.window.time_expiry import TimeExpiry
from tests.halves import half
from tests.hdl.cycles import each_cycle

#: Cycles that a deadline that counts may be on its way into or out of memory.
ON_ITS_WAY = 9


@pytest.mark.parametrize(("lifespan", "sub_window"), half([0, 1, 7, 100], [1, 2, 5, 16]))
def test_keys_leave_once_they_have_outlived_the_lifespan(sub_window, lifespan):
    """Exactly these leave, oldest first, within the stated cycles."""
    dut = TimeExpiry(JoinParameters.of(cores=1, sub_window=sub_window, timestamp_bits=16))
    assert dut.latency == 0
    generator = random.Random(sub_window * 1000 + lifespan)

    def steps(put, get):
        put(begin=1, size=lifespan)
        yield
        put(begin=0, restart=1)
        yield
        put(restart=0, timed=1, vacant=1)
        now, keys = 0, deque()
        rests, exact = True, []
        for _ in range(200):
            now += generator.choice([0, 0, 1, 3, lifespan])
            put(coming=[now], fills=1, moves=1)
            yield
            put(present=1, moves=0)
            outlived = [key for key in keys if key + lifespan < now]
            # For each key beyond the first, and to see that no key is left.
            stated = max(0, len(outlived) - 1) + (0 < len(outlived) == len(keys))
            cycles = 0
            while not get("settled"):
                assert cycles <= stated + ON_ITS_WAY
                if get("aged"):
                    assert keys.popleft() + lifespan < now
                yield
                put(vacant=not keys)
                cycles += 1
            if get("aged"):
                assert keys.popleft() + lifespan < now
            assert not keys or keys[0] + lifespan >= now
            exact.append(cycles == stated)
            assert exact[-1] or not rests
            rests = generator.random() < 0.5
            if not outlived and not keys:
                assert cycles == dut.latency
            store = len(keys) < sub_window and generator.random() < 0.7
            yield
            put(present=0, store=store, arrival=now)
            if store:
                keys.append(now)
            yield
            put(store=0, vacant=not keys)
            for _ in range(12 * rests):  # until all deadlines are where they wait
                yield
        assert sum(exact) > 100

    each_cycle(dut, steps)


def test_the_first_key_of_a_window_is_known_three_cycles_after_it_was_stored():
    """So the tuple behind it, which is at hand while it is stored, waits for as long."""
    dut = TimeExpiry(JoinParameters.of(cores=1, sub_window=16, timestamp_bits=16))

    def steps(put, get):
        put(begin=1, size=10)
        yield
        put(begin=0, restart=1)
        yield
        put(restart=0, timed=1, coming=[7], fills=1, moves=1)
        yield
        put(moves=0, present=1, store=1, arrival=5)
        for cycle in range(5):
            assert get("settled") == (cycle >= 3)
            yield
            put(store=0)

    each_cycle(dut, steps)


def test_nothing_leaves_a_window_that_is_not_timed():
    dut = TimeExpiry(JoinParameters.of(cores=1, sub_window=4, timestamp_bits=8))

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


@pytest.mark.parametrize("lifespan", [20, 60])
def test_two_tuples_are_settled_together_if_one_key_at_most_leaves_for_them(lifespan):
    """Before the first one, or between the two; none leaves sooner, and none is left."""
    parameters = JoinParameters.of(
        cores=1, sub_window=64, timestamp_bits=16, engine="index", tuples_per_word=2
    )
    dut = TimeExpiry(parameters)
    generator = random.Random(lifespan)

    def steps(put, get):
        put(begin=1, size=lifespan)
        yield
        put(begin=0, restart=1, between=1)
        assert not get("all_settled")  # it is not known yet whether the window is timed
        yield
        put(restart=0, timed=1)
        now, keys, word, rest, waited = 0, deque(), None, False, 0
        parts, store = False, None
        seen = Counter()
        for _ in range(1_500):
            vacant = not keys and store is None
            put(
                present=word is not None, rest=rest, vacant=vacant,
                store=store is not None, arrival=store or 0,
                between=word is not None and word[2] and not rest, accepted=0,
            )  # fmt: skip
            assert get("parts") == parts
            if parts:
                keys.popleft()
            if store is not None:
                keys.append(store)
            ages, accepts, leaves_alone = get("aged"), False, False
            store, parted, parts = None, parts, False
            if word is not None:
                times, leads = word[:2], word[2]
                first = times[rest]
                if ages:
                    assert not parted
                    assert keys.popleft() + lifespan < first
                if get("settled"):
                    gone = [key for key in keys if key + lifespan < times[1]]
                    assert rest or not [key for key in keys if key + lifespan < first]
                    if get("all_settled"):
                        assert not (rest and gone)
                        assert len(gone) + ages <= 1
                        assert not (leads and not rest) or times[0] + lifespan >= times[1]
                        accepts = generator.random() < 0.9
                        parts = accepts and bool(gone)
                    else:
                        leaves_alone = not rest and generator.random() < 0.9
                waited = 0 if accepts or leaves_alone else waited + 1
                assert waited < 40
                if accepts or leaves_alone:
                    stored = leads if leaves_alone else not (rest and leads)
                    store = times[not leads] if stored and len(keys) < 64 else None
                seen["aged" if ages else "parts" if parts else "none"] += accepts
                seen["at once"] += accepts and parted
            put(accepted=accepts)
            moves = word is None or accepts
            coming = None
            if generator.random() < 0.95:
                now += generator.choice([0, 1, 1, 2])
                later = now + generator.choice([0, 1, 1, 2])
                coming = now, later, generator.randrange(2)
                now = later if moves else now
            put(coming=coming[:2] if coming else [0, 0], fills=1, moves=moves)
            yield
            rest = rest or leaves_alone
            if moves:
                word, rest = coming, False
        assert min(seen.values()) > 20
        assert len(seen) == 4

    each_cycle(dut, steps)


@pytest.mark.parametrize(("vacant", "between"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_of_a_window_that_is_not_timed_only_an_empty_one_keeps_two_tuples_apart(vacant, between):
    parameters = JoinParameters.of(
        cores=1, sub_window=9, timestamp_bits=8, engine="index", tuples_per_word=2
    )

    def steps(put, get):
        put(coming=[3, 200], fills=1, moves=1)
        yield
        put(vacant=vacant, between=between, present=1, moves=0)
        assert get("settled")
        assert get("all_settled") == (not (vacant and between))
        yield

    each_cycle(TimeExpiry(parameters), steps)


@pytest.mark.parametrize(
    ("sub_window", "rows"), [(128, 128), (129, 256), pytest.param(100, 128, marks=pytest.mark.long)]
)
def test_deadlines_lie_in_as_many_rows_as_their_address_has_values(sub_window, rows):
    """Verilator guards a read that may lie outside, and then it cannot be fetched ahead."""
    dut = TimeExpiry(JoinParameters.of(cores=1, sub_window=sub_window, timestamp_bits=16))
    last = re.findall(r"^ *reg \[16:0\] memory \[(\d+):0\];", to_verilog(dut), re.MULTILINE)
    assert max(map(int, last)) + 1 == rows  # the other one is what is read ahead
