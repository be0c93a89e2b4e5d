# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from bench.experiments.elastic import HIGHEST, Rates, market, phases


@pytest.mark.parametrize("seed", range(5))
def test_phases_are_those_of_the_paper(seed):
    load = phases(1_200, seed)
    assert (load.seconds, load.window) == (1_200, 60)
    for number, (begin, end, rate) in enumerate(load.stretches):
        assert begin == (load.stretches[number - 1][1] if number else 0)
        assert end - begin <= 300
        assert end - begin >= 100 or end == load.seconds
        assert 500 <= rate <= HIGHEST


def test_a_market_is_calm_most_of_the_time_and_has_peaks():
    load = market()
    rates = np.array([load.at(second) for second in range(load.seconds)])
    assert np.median(rates) < 1_000
    assert 4_000 < rates.max() <= 7_600
    assert (np.diff(rates) != 0).sum() > 50


def test_the_highest_rate_fills_the_window_with_so_many_tuples():
    load = Rates(((0, 60, HIGHEST), (60, 120, HIGHEST // 4), (120, 180, 0)), 60)
    times = load.times(512)
    assert np.array_equal(times, np.sort(times))
    counts, _ = np.histogram(times, bins=[0, 60_000, 120_000, 180_001])
    assert counts.tolist() == [512, 128, 0]
