# SPDX-License-Identifier: Apache-2.0
"""What a profile estimates, against the rows that it was made of."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from spark_offload.partitioning.ranges import OrderProfile


def profile_of(left, right, shares):
    """Return the exact profile of rows: each quantile is the row that ends a share."""
    times = sorted(left + right)
    ends = [max(1, -(-len(times) * n // shares)) - 1 for n in range(1, shares)]
    quantiles = tuple(times[end] for end in ends)
    return OrderProfile((len(left), len(right)), times[0], times[-1], quantiles)


TIMES = st.lists(st.integers(-50, 50), min_size=1, max_size=30)


@given(TIMES, TIMES, st.integers(1, 9), st.integers(2, 64))
def test_ranges_begin_where_rising_times_do(left, right, count, shares):
    profile = profile_of(left, right, shares)
    assert profile.total == len(left) + len(right)
    starts = profile.starts(count)
    assert list(starts) == sorted(set(starts))
    assert all(profile.least < start <= profile.greatest for start in starts)
    # A crowd that has a range to itself adds a border, but never more than there are quantiles.
    assert len(starts) <= 2 * (count - 1)


def test_even_rows_are_cut_evenly():
    times = list(range(1, 1025))
    profile = profile_of(times[::2], times[1::2], 256)
    assert profile.starts(1) == ()
    assert profile.starts(4) == (257, 513, 769)
    assert profile.starts(3) == (1 + 4 * 85, 1 + 4 * 170)


def test_a_crowd_of_one_time_gets_a_range_to_itself():
    times = [*range(10), *[50] * 80, *range(90, 100)]
    profile = profile_of(times, [], 100)
    assert profile.starts(4) == (50, 51)
    twice = profile_of([*range(10), *[50] * 45, *range(90, 135)], [], 100)
    assert twice.starts(4) == (50, 51, 110)
    # … and a number is a start of its own only if a range would hold no more than it.
    assert profile.starts(2) == (51,)


def test_the_last_time_is_no_start_behind_itself():
    profile = profile_of([*range(10), *[20] * 90], [], 100)
    assert profile.starts(4) == (20,)
    assert profile_of([7] * 10, [], 10).starts(4) == ()


def test_the_share_of_a_halo_is_that_of_the_rows_before_the_starts():
    times = list(range(1, 1025))
    profile = profile_of(times, [], 256)
    starts = profile.starts(4)
    for width in (0, 1, 4, 100):
        assert profile.halo_share(starts, width) == pytest.approx(3 * width / 1024, abs=1e-9)
    assert profile.halo_share((), 5) == 0
    # Beyond the first and the last row there are none.
    assert profile.halo_share((257,), 10_000) == pytest.approx(0.25)
    assert profile.halo_share((5_000,), 10_000) == 1
    assert profile.halo_share((-5,), 10_000) == 0
    assert profile.halo_share((1_024,), 1) == pytest.approx(1 / 1024)
    assert profile.mean_window(4) == pytest.approx(4 / 1024, rel=0.01)


def test_the_mean_window_of_few_rows():
    assert OrderProfile((3, 1), 5, 5, ()).mean_window(3) == 0
    assert OrderProfile((4, 4), 0, 7, (3,)).mean_window(2) == pytest.approx(2 / 8)
