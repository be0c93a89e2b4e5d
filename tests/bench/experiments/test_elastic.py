# SPDX-License-Identifier: Apache-2.0
"""Figures over time: what is in the store is not measured again, and lines keep their values."""

from types import SimpleNamespace

import pytest

from bench.experiments.commands import write
from bench.experiments.elastic import (
    CORES,
    FULL,
    LOADS,
    ElasticPoint,
    controller_of,
    cycles_of_second,
    elastic_plots,
)
from bench.experiments.sweep import sweep
from host.protocol.cost_model import Circuit, Workload, cycles_per_tuple
from tests.host.tables import manifest_of


def measured(point, manifest=None):
    return {
        "pairs": 3, "cycles": 1_000, "core_cycles": 4_000, "saved": 0.5, "longest": 80,
        "longest_seconds": 0.2, "changes": 2, "cores": [[0.0, 8], [100.5, 3], [200.0, 8]],
        "rate": [[0, 50.0], [150, 100.0]], "answered": [[1, 40.0], [152, 90.0]],
        "latency": [[1, 0.25], [152, 0.75]],
    }  # fmt: skip


@pytest.mark.parametrize("quick", [False, True])
def test_points_fit_their_accelerator(quick):
    for plot in elastic_plots(quick=quick).values():
        controllers = [point.controller for point in plot.points]
        assert controllers in (["fixed", "threshold", "predictive", "energy"],
                               ["half", "threshold"])  # fmt: skip
        for point in plot.points:
            parameters = point.parameters
            assert parameters.cores == CORES
            assert parameters.timestamp_bits
            # One core alone could hold the window, so capacity never asks for more.
            assert point.tuples * 5 / 4 <= parameters.window.sub_window
            assert (controller_of(point) is None) == (point.controller in ("fixed", "half"))


def test_all_cores_have_the_stated_load_at_the_highest_rate(tmp_path):
    point = ElasticPoint("q5", "fixed")
    circuit = Circuit.of(manifest_of(tmp_path, cores=CORES, sub_window=2048, timestamp_bits=24))
    able = cycles_per_tuple(circuit, Workload(windows=(point.tuples, point.tuples)))
    arriving = cycles_of_second(point) * point.rates.window / (2 * point.tuples)
    assert able / arriving == pytest.approx(FULL, rel=0.05)


def test_a_point_in_the_store_is_not_measured_again(tmp_path, monkeypatch):
    calls = []

    def noted(point, manifest):
        calls.append(point)
        return measured(point)

    monkeypatch.setattr(ElasticPoint, "measure", noted)
    points = elastic_plots()["elastic-q5"].points

    def prepared(name, parameters, folder, report):
        return SimpleNamespace(hash="of a circuit")

    for _ in range(2):
        found = sweep(points, print, folder=tmp_path, prepared=prepared)
        assert list(found) == list(points)
    assert calls == list(points)


def test_lines_keep_a_value_until_the_next_one_and_the_files_are_written(tmp_path):
    plot = elastic_plots()["elastic-q5"]
    found = {point: measured(point) for point in plot.points}
    lines = dict(plot.lines(found))
    assert lines["rate (8,000 = 8)"] == [(0, 4), (150, 4), (150, 8), (1200, 8)]
    assert lines["energy"] == [(0, 8), (100.5, 8), (100.5, 3), (200, 3), (200, 8), (1200, 8)]
    assert "fixed" not in lines
    for folder in ("a", "b"):
        write(plot, found, tmp_path / folder, "python -m bench experiments")
    text = (tmp_path / "a" / "figure-elastic-q5.csv").read_text()
    assert text.startswith("# python -m bench experiments\n# 8 cores")
    assert "energy,0.5,0.2,80,2,1000,4000,3,0.5\n" in text
    for name in ("figure-elastic-q5.csv", "figure-elastic-q5.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_part_of_a_line_begins_and_ends_with_the_values_in_force():
    plot = elastic_plots()["elastic-jump"]
    found = {point: measured(point) for point in plot.points}
    changed = {point: one | {"cores": [[0.0, 8], [750.0, 3]]} for point, one in found.items()}
    lines = dict(plot.lines(changed))
    assert lines["rate (8,000 = 8)"] == [(740, 8), (820, 8)]
    assert lines["threshold"] == [(740, 8), (750, 8), (750, 3), (820, 3)]
    step = elastic_plots()["elastic-provisioning"]
    lines = dict(step.lines({point: measured(point) for point in step.points}))
    assert lines["answered (8,000 = 8)"] == [(1, 3.2), (152, 7.2)]


def test_steps_are_parts_of_the_work_of_half_of_the_cores():
    for name, shares in (("provisioning", (0.7, 1.2)), ("decommissioning", (0.7, 0.3))):
        rates = [rate for _, _, rate in LOADS[name](300, 0).stretches]
        for rate, share in zip(rates, shares, strict=True):
            assert FULL * CORES * (rate / 8_000) ** 2 == pytest.approx(share * CORES / 2, rel=0.001)
