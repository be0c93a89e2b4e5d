# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import CountWindow, TimeWindow
from host.reference.arrivals import places
from host.reference.window import window_starts


def test_a_count_based_window_is_the_last_tuples():
    before = np.array([0, 1, 2, 3, 9])
    assert window_starts(CountWindow(2), before).tolist() == [0, 0, 0, 1, 7]


@given(
    st.lists(st.integers(0, 20) | st.sampled_from([(1 << 64) - 1]), max_size=12),
    st.integers(0, 25) | st.just(1 << 70),
)
def test_a_time_based_window_is_what_has_not_outlived_its_lifespan(times, lifespan):
    times = sorted(times)
    now = places(np.array(times, np.uint64))
    before = np.arange(len(times))
    starts = window_starts(TimeWindow(lifespan), before, now, now)
    for i, start in enumerate(starts):
        want = [u for u in range(i) if times[i] - times[u] <= lifespan]
        assert list(range(start, i)) == want


def test_a_time_based_window_needs_time():
    before, times = np.zeros(1, np.int64), places(np.zeros(1, np.uint64))
    for now, stored in [(None, None), (times, None), (None, times)]:
        with pytest.raises(ValueError, match="^A time-based window needs timestamps$"):
            window_starts(TimeWindow(3), before, now, stored)


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_a_count_based_window_holds_at_least_one_tuple(size):
    with pytest.raises(ValueError, match="^Window size must .*at least 1"):
        CountWindow(size)


@pytest.mark.parametrize("lifespan", [-1, 0.5, None])
def test_a_lifespan_is_not_negative(lifespan):
    with pytest.raises(ValueError, match="^Window lifespan must .*at least 0"):
        TimeWindow(lifespan)
