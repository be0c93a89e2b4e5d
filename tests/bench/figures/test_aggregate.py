# SPDX-License-Identifier: Apache-2.0
"""The figure of aggregates checks the sums that it counts the cycles of."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench.figures.aggregates import (
    aggregate_run,
    check_totals,
    compared_cycles,
    expected_totals,
    forwarded_cycles,
    random_columns,
)
from bench.figures.speed import TimedTable
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS


def test_sums_of_windows_are_those_of_their_tuples():
    times, keys, values = np.array([0, 0, 1, 4]), np.array([1, 1, 0, 1]), np.array([5, 6, 7, 8])
    totals = expected_totals(times, keys, values, keys_count=2, panes=2)
    assert totals.tolist() == [[0, 11], [7, 11], [7, 0], [0, 0], [0, 8], [0, 8]]


@pytest.mark.parametrize(
    ("boundary", "key", "total", "message"),
    [
        ([1, 1], [1, 0], [4, 3], "not sorted"),
        ([1, 1], [0, 1], [3, 5], "another sum"),
        ([1], [1], [4], "missing"),
    ],
)
def test_a_wrong_window_is_noticed(boundary, key, total, message):
    codec = SimpleNamespace(manifest=SimpleNamespace(keys=2, cores=1))
    values = {
        "boundary": np.array(boundary), "key": np.array(key), "window.total": np.array(total)
    }  # fmt: skip
    run = SimpleNamespace(codec=codec, values=values)
    with pytest.raises(AssertionError, match=message):
        check_totals(run, np.array([[3, 4]]))


@pytest.mark.long
def test_a_pane_with_a_tuple_per_key_hides_its_window():
    parameters = AGGREGATE_PRESETS["tiny-aggregate"]
    run = aggregate_run(parameters, pane_tuples=64, panes=40, report=lambda text: None)
    assert run["cycles_per_tuple"] == pytest.approx(1 + 2 / 64, abs=0.002)
    short = aggregate_run(parameters, pane_tuples=4, panes=40, report=lambda text: None)
    assert short["cycles_per_tuple"] > 5


@pytest.mark.long
def test_a_described_operator_takes_the_cycles_of_the_built_in_aggregate(tmp_path):
    own, beside = compared_cycles(1 << 12, tmp_path, report=lambda text: None)
    assert own <= 1.05 * beside
    assert own > 1 << 12


@pytest.mark.long
def test_tables_of_the_figure_are_those_of_the_host():
    parameters = AGGREGATE_PRESETS["tiny-aggregate"]
    timed = TimedTable(parameters, pane_tuples=64, panes=10, report=lambda text: None)
    tuples, seconds, _ = timed.turn()
    assert tuples == timed.tuples == 640
    # Each of 13 windows has a result for nearly each of the 16 keys.
    assert 190 <= timed.results <= 13 * 16
    assert timed.cycles > 640
    assert seconds > 0
    assert len(timed.host_seconds) == 1


def test_tables_of_the_figure_have_as_many_rows_in_each_pane():
    parameters = AGGREGATE_PRESETS["tiny-aggregate"]
    table = random_columns(parameters, pane_tuples=4, panes=3)
    assert table["time"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert max(table["key"].tolist()) < 16


@pytest.mark.long
def test_a_forwarded_tuple_takes_the_same_cycles_on_one_core_and_on_three(tmp_path):
    one, three = (forwarded_cycles(n, 500, tmp_path, report=lambda text: None) for n in (1, 3))
    assert 500 < three <= 1.05 * one
