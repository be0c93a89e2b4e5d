# SPDX-License-Identifier: Apache-2.0
"""The model of an index that keeps order."""

import pytest

from bench.figures.joins import ORDERED_WINDOW as WINDOW
from bench.figures.joins import SUB_WINDOW, YOUNG, ordered_cycles, runs_of


@pytest.mark.parametrize(
    "end",
    [WINDOW, WINDOW + 1, 3 * WINDOW + 4_095, 2 * WINDOW + 1_000],
)
def test_runs_hold_each_tuple_of_the_window_once(end):
    runs, rest = runs_of(end - WINDOW, end)
    assert runs[0][0] <= end - WINDOW < runs[0][0] + SUB_WINDOW
    assert [begin for begin, _ in runs[1:]] == [behind for _, behind in runs[:-1]]
    assert runs[-1][1] + rest == end
    assert 0 <= rest < YOUNG


def test_a_probe_without_a_match_searches_each_run():
    """Four or five sub-windows, up to six shorter runs, and up to four cycles of young tuples."""
    cycles, results = ordered_cycles(20_000, None)
    assert results == 0
    assert 4 <= cycles <= 5 + 6 + 4
    everything, all_of_them = ordered_cycles(None, None)
    assert all_of_them == WINDOW
    assert everything - cycles == pytest.approx(WINDOW / 4, rel=0.3)
