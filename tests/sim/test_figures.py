# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from sim import figures, scan_figures
from sim.figures import FIGURES, NotMeasured, figure, measure
from sim.scan_figures import routed_mhz


@pytest.fixture(autouse=True)
def own_figures(monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", dict(FIGURES))


def test_a_figure_that_cannot_be_measured_stops_no_other(tmp_path, capsys):
    @figure("a", unit="x", goal=">= 1")
    def lacking(report):
        raise NotMeasured("run this first")

    @figure("b", unit="x", goal="< 3")
    def there(report):
        return 2

    rows = measure(["a", "b"], tmp_path / "rows.json", report=print)
    assert [(row["value"], row["met"]) for row in rows] == [(None, False), (2, True)]
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert "NO: run this first" in capsys.readouterr().out


def test_a_routed_clock_is_that_of_the_preset_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_figures, "ROUTING", tmp_path)
    with pytest.raises(NotMeasured, match="make route PRESET=tiny SPEED=6"):
        routed_mhz("tiny", 6)
    parameters = scan_figures.PRESETS["tiny"].to_dict()
    path = tmp_path / "tiny-lfe5u-85f-grade6.json"
    path.write_text(json.dumps({"parameters": parameters, "fmax_mhz": 99.5}))
    assert routed_mhz("tiny", 6) == 99.5
    path.write_text(json.dumps({"parameters": {**parameters, "cores": 3}, "fmax_mhz": 99.5}))
    with pytest.raises(NotMeasured, match="other parameters"):
        routed_mhz("tiny", 6)
