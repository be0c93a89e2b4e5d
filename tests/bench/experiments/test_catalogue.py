# SPDX-License-Identifier: Apache-2.0
import pytest

from bench.experiments.catalogue import FULL, ORDERINGS, QUANTITIES, QUICK, load_interval, plots
from bench.experiments.joins import ACCELERATORS, ARCHITECTURES


@pytest.mark.parametrize("quick", [False, True])
def test_every_figure_of_the_paper_is_there_and_fits_its_accelerators(quick):
    found = plots(quick=quick)
    assert {"12", "13", "15", "16", "17", "18", "19"} <= found.keys()
    for plot in found.values():
        for series in plot.series:
            assert series.quantity in QUANTITIES
        for point in plot.points:
            parameters = ACCELERATORS[point.accelerator]
            assert point.window <= parameters.capacity
            assert parameters.timestamp_bits or not point.timed
            assert point.period <= 1 << parameters.engine.probe_bits
            assert parameters.engine.rounds or not point.rounds
            assert point.rounds <= parameters.window.sub_window


def test_quick_figures_need_no_large_accelerator():
    used = {point.accelerator for plot in plots(quick=True).values() for point in plot.points}
    assert max(ACCELERATORS[name].cores for name in used) == 8
    assert len(used) <= 13


def test_the_joins_that_are_compared_differ_in_their_architecture_only():
    for cores in (2, 32):
        ours = ACCELERATORS[f"sj-{cores}"]
        assert (ours.engine.lanes, ours.engine.probes) == (1, 1)
        for short, architecture in ARCHITECTURES.items():
            assert ACCELERATORS[f"{short}-{cores}"] == ours.with_(architecture=architecture)


def test_the_load_leaves_a_core_idle_for_a_part_of_the_time():
    for window, cores in ((1 << 10, 2), (1 << 10, 32), (1 << 12, 8)):
        busy = window / (2 * cores) / load_interval(window, cores)
        assert 0.8 <= busy <= 0.86


def test_orderings_have_the_fewest_stars_and_one_for_every_probe():
    assert {0, 1} <= set(ORDERINGS.values())


def test_rounds_go_from_one_stored_tuple_to_all_that_a_core_holds():
    for extent, found in ((FULL, plots()), (QUICK, plots(quick=True))):
        points = found["19-inner"].points
        assert {point.rounds for point in points} == set(extent.rounds)
        cores = {ACCELERATORS[point.accelerator].cores for point in points}
        assert {1, *(point.window // k for point in points for k in cores)} <= set(extent.rounds)
