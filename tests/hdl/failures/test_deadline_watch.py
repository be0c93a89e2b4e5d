# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.failures.core_gate import DeadlineWatch
from tests.hdl.cycles import each_cycle


def reports(dut, columns):
    """Return the cycles in which the watch reports, given what holds in every cycle."""
    found = []

    def steps(put, get):
        for cycle, holds in enumerate(columns):
            put(holds=holds)
            yield
            if get("expired"):
                found.append(cycle)

    each_cycle(dut, steps)
    return found


@pytest.mark.parametrize("cycles", [1, 2, 3, 4, 5, 7, 16])
def test_a_condition_that_lasts_is_reported_within_the_limit(cycles):
    for lead in range(2 * cycles + 1):
        dut = DeadlineWatch(cycles, conditions=2)
        assert dut.period >= cycles
        (first, *_) = reports(dut, [0] * lead + [2] * (dut.limit + 1))
        assert dut.period <= first + 1 - lead <= dut.limit


@pytest.mark.parametrize("cycles", [2, 3, 4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_a_condition_that_breaks_in_time_is_never_reported(cycles, seed):
    generator = random.Random(seed)
    dut = DeadlineWatch(cycles, conditions=3)
    columns = [[] for _ in range(3)]
    for column in columns:
        while len(column) < 300:
            column += [1] * generator.randint(0, dut.period - 1) + [0] * generator.randint(1, 2)
    words = [
        sum(bit << n for n, bit in enumerate(bits))
        for bits in zip(*(column[:300] for column in columns), strict=True)
    ]
    assert any(words)
    assert reports(dut, words) == []


def test_one_condition_does_not_extend_another():
    dut = DeadlineWatch(4, conditions=2)
    assert reports(dut, [1, 1, 1, 2, 2, 2] * 20) == []


@pytest.mark.parametrize(("cycles", "conditions", "name"), [(0, 1, "cycles"), (1, 0, "conditions")])
def test_nothing_to_watch_is_refused(cycles, conditions, name):
    with pytest.raises(ValueError, match=f"Number of {name} must be at least one, not 0"):
        DeadlineWatch(cycles, conditions=conditions)
