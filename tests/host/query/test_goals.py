# SPDX-License-Identifier: Apache-2.0
"""Goals of an adaptive precision: exact factors from made-up measurements."""

from fractions import Fraction

import pytest

from host import InputRate, Latency, Queue, UsageError
from host.query.cores import Observation

NONE = Fraction(0)


def observed(cycles, offered, tuples, in_flight=Fraction(0), **settling):
    """What was observed of an accelerator in so many cycles."""
    return Observation(
        cycles=cycles, offered=offered, tuples=tuples, in_flight=in_flight, **settling
    )


def test_a_rate_that_is_missed_by_half_needs_twice_the_speed():
    demand = InputRate(0.2).demand(observed(1000, 1000, 100), NONE)
    assert (demand.needed, demand.safe) == (2, 2)


def test_an_idle_cycle_neither_misses_a_rate_nor_proves_one():
    demand = InputRate("0.1").demand(observed(1000, 400, 40), NONE)
    assert demand.needed == 1  # 40 in 400 cycles in which something was offered
    assert demand.safe == Fraction(5, 2)  # but no more than 40 in 1000 was shown


def test_a_rate_per_second_is_one_per_cycle_at_a_clock():
    assert InputRate.per_second(25_000_000, mhz=100) == InputRate(0.25)


@pytest.mark.parametrize("goal", [InputRate(0.1), Queue(100, 0.1), Latency(10)])
def test_where_nothing_is_taken_no_factor_is_enough(goal):
    assert goal.demand(observed(1000, 1000, 0), NONE).needed is None


def test_a_queue_fills_at_its_rate_and_empties_by_what_is_taken():
    goal = Queue(1000, Fraction(1, 2))
    first = goal.demand(observed(1000, 1000, 200), NONE)
    assert first.carried == 300
    assert first.needed == Fraction(300 + 500 - 500, 200)  # half the queue may stay full
    second = goal.demand(
        observed(1000, 1000, 700, settling_offered=100, settling_tuples=10), first.carried
    )
    assert second.carried == 300 + 40 - 200
    assert second.needed == Fraction(140, 700)
    assert second.safe == Fraction(500, 700)  # what comes must be taken in any case
    assert goal.demand(observed(1000, 1000, 900), second.carried).carried == 0


def test_a_queue_is_measured_before_its_other_half_can_be_full():
    assert Queue(1000, Fraction(1, 2)).interval(10_000) == 1000
    assert Queue(1000, Fraction(1, 2)).interval(100) == 100


def test_latency_is_what_is_under_way_over_the_rate():
    demand = Latency(400).demand(observed(1000, 1000, 100, Fraction(60)), NONE)
    assert demand.needed == demand.safe == Fraction(600, 400)


@pytest.mark.parametrize(("cycles", "safe"), [(400, Fraction(1, 2)), (800, 1)])
def test_latency_where_the_accelerator_waits_for_tuples_only_narrows(cycles, safe):
    demand = Latency(cycles).demand(observed(1000, 100, 100, Fraction(60)), NONE)
    assert (demand.needed, demand.safe) == (1, safe)


def test_only_latency_limits_the_period_to_full_groups():
    assert [goal.longest(8) for goal in (InputRate(1), Queue(9, 1), Latency(9))] == [None, None, 8]


@pytest.mark.parametrize(
    "make",
    [
        lambda: InputRate(0),
        lambda: InputRate(-1),
        lambda: InputRate("fast"),
        lambda: InputRate(True),
        lambda: InputRate(float("nan")),
        lambda: InputRate.per_second(1, mhz=0),
        lambda: Queue(1, 0.5),
        lambda: Queue(10, 0),
        lambda: Latency(0),
        lambda: Latency(1.5),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(make):
    with pytest.raises(UsageError, match="not "):
        make()
