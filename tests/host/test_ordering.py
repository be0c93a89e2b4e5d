# SPDX-License-Identifier: Apache-2.0
import pytest

from host import Ordering


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
