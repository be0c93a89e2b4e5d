# SPDX-License-Identifier: Apache-2.0
"""Tiny accelerators, measured end to end: from a bundle to a CSV file and a drawing."""

import csv
from dataclasses import replace

import pytest

from bench.experiments import sweep as sweeping
from bench.experiments.catalogue import Plot, Series
from bench.experiments.commands import write
from bench.experiments.joins import ACCELERATORS, Filled, Point
from bench.experiments.sweep import prepare, sweep
from tests.sim.verilated.test_cycles import shaped

#: Both joins with cores of one size, under the names of two larger ones, and a scan that is built
#: for its cycles, too.
TINY = {name: ACCELERATORS[name].with_(sub_window=32) for name in ("sj-2", "llhj-2")}
SCAN = "band-4x4"
TINY[SCAN] = shaped(2, 3, 5)
#: Accelerators with rounds, with one lane and with several.
ROUNDS = {
    name: ACCELERATORS[name].with_(cores=3, sub_window=24) for name in ("rounds-8", "rounds-8x4")
}
#: Each accelerator takes a simulator library; `make test-long` adds all but the first one.
JOINS = [SCAN, *(pytest.param(name, marks=pytest.mark.long) for name in ("sj-2", "llhj-2"))]
WINDOW = 48


class Manifests(dict):
    """Manifests by name; an accelerator is prepared when it is first asked for."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __missing__(self, name):
        parameters = (TINY | ROUNDS)[name]
        return self.setdefault(name, prepare(name, parameters, self.folder, lambda text: None))


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    return Manifests(tmp_path_factory.mktemp("experiments"))


@pytest.mark.long
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("name", ["sj-2", "llhj-2"])
def test_a_saturated_join_compares_a_window_for_every_tuple(manifests, name, timed):
    found = Point(name, WINDOW, timed=timed, tuples=300).measure(manifests[name])
    assert found["comparisons_per_tuple"] == pytest.approx(WINDOW, rel=0.04)
    # Two cores with a comparator for each side.
    assert 0.99 * WINDOW / 4 <= found["cycles_per_tuple"] <= 1.35 * WINDOW / 4
    assert found["ingress_stalled_share"] > 0.5


@pytest.mark.long
@pytest.mark.parametrize("name", JOINS)
def test_a_paced_join_takes_tuples_when_they_come(manifests, name):
    point = Point(name, WINDOW, interval=60, width=1000, tuples=300)
    found = point.measure(manifests[name])
    assert found["cycles_per_tuple"] == pytest.approx(60, rel=0.01)
    # A match takes the trees or the chain, and a scan of the sub-window at the most.
    assert found["visiting_count"] > 100
    assert 10 < found["visiting"] < 60
    assert found["visiting"] <= found["visiting_greatest"] < 120
    assert found["results_per_tuple"] == pytest.approx(WINDOW * (2001 / 10_000) ** 2, rel=0.25)


@pytest.mark.long
@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("width", [158, 2000])
def test_an_inner_order_costs_no_more_than_its_stars_occupy_on_the_output(manifests, name, width):
    """A star for each of 16 or 17 laps of three cores, and one for the probe; whatever matches."""
    point = Point(name, WINDOW, tuples=300, rounds=1, width=width)
    found = point.measure(manifests[name])
    assert found["stars_per_tuple"] == pytest.approx((WINDOW + 2) / 3 + 1, rel=0.05)
    words = found["stars_per_tuple"] + found["results_per_tuple"]
    assert 1 <= found["cycles"] / found["tuples_counted"] / words <= 1.03
    assert found["cycles_per_tuple"] <= 1.03 * words


@pytest.mark.long
@pytest.mark.parametrize("name", ROUNDS)
def test_longer_rounds_cost_less_and_without_stars_there_are_none(manifests, name):
    measured = [
        Point(name, WINDOW, tuples=200, rounds=n).measure(manifests[name]) for n in (1, 2, 4)
    ]
    outer, none = (Point(name, WINDOW, period=n).measure(manifests[name]) for n in (1, 0))
    cycles = [found["cycles_per_tuple"] for found in [*measured, outer]]
    assert cycles == sorted(cycles, reverse=True)
    assert none["stars_per_tuple"] == 0 < none["results_per_tuple"]
    assert none["cycles_per_tuple"] <= 1.01 * outer["cycles_per_tuple"]


def test_loads_of_one_fill_count_what_each_counts_by_itself(manifests):
    first = Point(SCAN, WINDOW, width=100, tuples=300)
    loads = (
        first,
        replace(first, width=1000, interval=60),
        replace(first, width=1000, interval=60, period=4),
    )
    found = Filled(loads).measure(manifests[SCAN])
    for load, one in zip(loads, found, strict=True):
        alone = load.measure(manifests[SCAN])
        assert one["cycles_per_tuple"] == pytest.approx(alone["cycles_per_tuple"], rel=0.02)
        assert one["results_per_tuple"] == pytest.approx(alone["results_per_tuple"], rel=0.3)
        assert one["stars_per_tuple"] == pytest.approx(alone["stars_per_tuple"], abs=0.03)
        if load is loads[1]:
            assert one["visiting"] == pytest.approx(alone["visiting"], rel=0.1)
    assert found[2]["visiting"] is None  # stars of two periods do not number probes
    with pytest.raises(ValueError, match="differ in"):
        Filled((first, replace(first, window=8))).measure(manifests[SCAN])


def test_latency_counts_from_the_arrival_when_tuples_wait_in_line(manifests):
    slow, fast = (
        Point(SCAN, WINDOW, interval=n, tuples=400, width=1000).measure(manifests[SCAN])
        for n in (40, 2)
    )
    # At 2 cycles from tuple to tuple, the line grows by 2 cycles or more with every tuple.
    assert fast["processing"] > slow["processing"] + 2 * 200
    assert fast["processing_count"] > 100


def test_a_star_for_several_probes_makes_a_tuple_wait_for_those_behind_it(manifests):
    found = {
        period: Point(SCAN, WINDOW, period=period, interval=60).measure(manifests[SCAN])
        for period in (1, 4)
    }
    assert found[1]["stars_per_tuple"] == pytest.approx(1, abs=0.02)
    assert found[4]["stars_per_tuple"] == pytest.approx(1 / 4, abs=0.02)
    # Three probes behind it on average 1.5 of its side, whose tuples come every 120 cycles.
    wait = found[4]["processing"] - found[1]["processing"]
    assert wait == pytest.approx(1.5 * 120, rel=0.1)


def test_what_filled_the_windows_does_not_delay_a_paced_tuple(manifests):
    point = Point(SCAN, WINDOW, interval=14, width=1000, tuples=16)
    few = point.measure(manifests[SCAN])
    many = Point(**{**vars(point), "tuples": 800}).measure(manifests[SCAN])
    assert few["processing"] == pytest.approx(many["processing"], rel=0.1)


@pytest.mark.long
def test_a_chain_has_no_stars_and_so_no_processing_latency(manifests):
    found = Point("llhj-2", WINDOW, width=1000).measure(manifests["llhj-2"])
    assert found["stars_per_tuple"] == 0
    assert "processing" not in found


def test_a_bundle_is_made_again_when_the_hardware_has_changed(manifests, monkeypatch):
    folder = manifests[SCAN].path.parent
    made, write = [], sweeping.write_bundle

    def noted(*given):
        made.append(given)
        return write(*given)

    monkeypatch.setattr(sweeping, "write_bundle", noted)
    prepare(SCAN, TINY[SCAN], folder, lambda text: None)
    assert made == []
    monkeypatch.setattr(sweeping, "design", lambda: "another")
    prepare(SCAN, TINY[SCAN], folder, lambda text: None)
    assert made == [(TINY[SCAN], folder / SCAN)]


def test_a_figure_is_written_with_its_command_and_is_the_same_again(manifests, tmp_path):
    points = tuple((n, Point(SCAN, n, tuples=100)) for n in (16, 160))
    series = (Series("tiny", points, "tuples per 1,000 cycles"),)
    plot = Plot("99", "Tiny", "window", "tuples", "Two cores.", series)

    def prepared(name, parameters, place, report):
        return manifests[name]

    drawings = []
    for n in range(2):  # the second one measures anew
        found = sweep(plot.points, print, folder=tmp_path / str(n), prepared=prepared)
        write(plot, found, tmp_path / str(n), "python -m bench experiments --figure 99")
        drawings.append((tmp_path / str(n) / "figure-99.svg").read_bytes())
    assert drawings[0] == drawings[1]
    text = (tmp_path / "0" / "figure-99.csv").read_text()
    assert text.startswith("# python -m bench experiments --figure 99\n# Two cores.\n")
    small, large = csv.DictReader(text.splitlines()[2:])
    assert (small["x"], large["x"]) == ("16", "160")
    assert float(small["y"]) == pytest.approx(1000 * int(small["tuples_counted"]) /
                                              int(small["cycles"]), rel=0.05)  # fmt: skip
    assert float(small["y"]) > float(large["y"])
