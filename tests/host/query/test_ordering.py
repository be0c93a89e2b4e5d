# SPDX-License-Identifier: Apache-2.0
import pytest

from host import InputRate, Latency, Ordering, UsageError


def test_each_precision_is_a_period():
    assert (Ordering.outer().period, Ordering.relaxed(8).period, Ordering.none().period) == (
        1,
        8,
        0,
    )
    assert Ordering.outer() == Ordering.relaxed(1)
    assert [str(Ordering(period)) for period in (0, 1, 8)] == ["none", "outer", "relaxed(8)"]


@pytest.mark.parametrize("period", [0, -1])
def test_a_relaxed_period_is_at_least_one(period):
    with pytest.raises(ValueError, match="at least 1"):
        Ordering.relaxed(period)


@pytest.mark.parametrize("period", [-1, 1.5, True])
def test_a_period_is_a_number_of_probes(period):
    with pytest.raises(ValueError, match="at least 0"):
        Ordering(period)


def test_an_inner_order_is_an_outer_one_with_rounds():
    assert (Ordering.inner().period, Ordering.inner().rounds, Ordering.inner(4).rounds) == (1, 1, 4)
    assert Ordering.inner() != Ordering.outer()
    assert str(Ordering.inner(4)) == "inner(4)"
    assert str(Ordering.inner(4, in_hardware=True)) == "inner(4, in hardware)"


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True])
def test_a_round_holds_at_least_one_tuple(rounds):
    with pytest.raises(ValueError, match="at least 1 stored tuple"):
        Ordering.inner(rounds)


def test_an_adaptive_ordering_has_a_bound_and_a_goal():
    ordering = Ordering.adaptive(64, InputRate(0.25), interval=100)
    assert (ordering.period, ordering.hold, ordering.interval) == (64, InputRate(0.25), 100)
    assert str(ordering) == "adaptive(at most 64, holding 0.25 tuples per cycle)"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"most": 1}, "at least 2 probes"),
        ({"most": 2.5}, "at least 2 probes"),
        ({"hold": 0.5}, "an InputRate, a Latency or a Queue"),
        ({"interval": 0}, "cycles from 1 on"),
    ],
)
def test_an_adaptive_ordering_that_makes_no_sense_is_refused(arguments, reason):
    with pytest.raises(UsageError, match=reason):
        Ordering.adaptive(**{"most": 8, "hold": InputRate(1), **arguments})


def test_the_meaning_of_an_ordering_is_a_promise():
    assert Ordering.none().meaning == "none: in any order"
    assert Ordering.outer().meaning.startswith("outer: by the later row")
    assert "8 or more before it" in Ordering.relaxed(8).meaning


def test_an_inner_order_that_adapts_has_a_longest_round_and_a_goal():
    ordering = Ordering.inner(64, hold=InputRate(0.25), interval=100)
    assert (ordering.period, ordering.rounds, ordering.in_hardware) == (1, 64, True)
    assert (ordering.hold, ordering.interval) == (InputRate(0.25), 100)
    assert str(ordering) == "inner(at most 64, holding 0.25 tuples per cycle)"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"rounds": 1}, "longest round of 2, 4, 8"),
        ({"rounds": 12}, "rounds are powers of two"),
        ({"hold": Latency(100)}, "longer rounds never make a tuple slower"),
        ({"interval": 0}, "cycles from 1 on"),
    ],
)
def test_an_inner_order_that_cannot_adapt_is_refused(arguments, reason):
    with pytest.raises(UsageError, match=reason):
        Ordering.inner(**{"rounds": 8, "hold": InputRate(1), **arguments})
