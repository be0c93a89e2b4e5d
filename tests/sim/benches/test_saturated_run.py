# SPDX-License-Identifier: Apache-2.0
from contextlib import closing

import pytest

from hdl.presets import PRESETS
from host.errors import DeviceTimeoutError
from sim.benches.saturated_run import (
    CYCLES,
    SaturatedRun,
    band_width,
    saturate,
    tuples,
)
from tests.sim.verilated.test_cycles import SHAPES, shaped


def said(text):
    """Where progress goes."""


@pytest.mark.long
def test_windows_are_full_and_counters_tell_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters = shaped(*SHAPES[0])
    with closing(SaturatedRun(parameters, said, values=100)) as run:
        run.bound(0)
        _, counts = run.measure(100)
        assert tuples(counts) == 100
        held = run.manifest.capacity
        # A tuple of R comes first in each pair, so one of S sees it.
        assert 100 * (held - parameters.engine.probes) <= counts["comparisons"] <= 100 * held


@pytest.mark.long
def test_what_never_comes_is_an_error_with_the_counters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(SaturatedRun(shaped(*SHAPES[0]), said, values=100)) as run:
        run.bound(0)
        taken = run.manifest.capacity + 4  # of each side: full windows, and half of what comes
        with pytest.raises(
            DeviceTimeoutError, match=rf"within \d+ cycles.*tuples_r {taken}, tuples_s {taken}"
        ):
            run.send(run.tuples(8), marks=2)


@pytest.mark.long
def test_groups_of_one_are_counted_beside_full_groups_with_the_same_windows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters = PRESETS["tiny"].with_(probes=4, comparator="equality")
    full, single = saturate(parameters, said, matches=[50], cycles=160)
    assert (full["precision"], single["precision"]) == (4, 1)
    for record in (full, single):
        counters = record["counters"]
        assert counters["cycles"] >= 160
        assert record["window"] == parameters.capacity
        # The windows are full from the first tuple on; one of S meets R's newest, too.
        assert counters["comparisons"] / counters["tuples"] == pytest.approx(16, abs=1)
        assert counters["stars"] == counters["tuples"] / record["precision"]
        assert record["results_per_tuple"] == pytest.approx(16 / 50, rel=0.6)
    assert full["cycle_efficiency"] > 1.5 * single["cycle_efficiency"]


@pytest.mark.long
def test_filling_and_draining_the_pipeline_is_at_most_two_thousandths_of_a_count(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    parameters = PRESETS["tiny"].with_(probes=4, comparator="equality")
    size = parameters.capacity
    once = parameters.engine.busy_tuples(parameters, window=size, precision=4, cycles=CYCLES)
    (counted, _), (longer, _) = (
        saturate(parameters, said, matches=[50], cycles=cycles) for cycles in (CYCLES, 2 * CYCLES)
    )
    first, both = counted["counters"], longer["counters"]
    assert (first["tuples"], both["tuples"]) == (once, 2 * once)
    steady = (both["comparisons"] - first["comparisons"]) / (both["cycles"] - first["cycles"])
    assert first["comparisons"] / first["cycles"] == pytest.approx(steady, rel=0.002)


@pytest.mark.parametrize(
    ("preset", "precision", "expected"),
    [
        ("ecp5-equality-wide-timed", 14, 2 * 14 * 17),  # 1,000 cycles of 60 rows
        ("ecp5-equality-wide-timed", 1, 2 * 17),
        ("ecp5-index", 1, 1_000 * PRESETS["ecp5-index"].engine.tuples_per_word),
    ],
)
def test_passes_of_both_sides_take_a_row_per_cycle_and_an_index_a_word(preset, precision, expected):
    parameters = PRESETS[preset]
    size = parameters.capacity
    found = parameters.engine.busy_tuples(
        parameters, window=size, precision=precision, cycles=1_000
    )
    assert found == expected


def test_bounds_of_a_band_are_those_of_the_paper_for_its_rate():
    assert [band_width(one_in, 2) for one_in in (250_000, 1_000)] == [10, 158]
