# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest

from bench.__main__ import MODULES
from bench.figures import registry, routed
from bench.figures.registry import FIGURES, Figure, NotMeasured, Result, figure, measure
from bench.figures.routed import clock, rate
from hdl.presets import PRESETS


@pytest.fixture(autouse=True)
def own_figures(monkeypatch):
    monkeypatch.setattr(registry, "FIGURES", dict(FIGURES))


def test_every_module_with_figures_is_loaded_by_the_command():
    folder = Path(registry.__file__).parent
    having = {
        path.stem for path in folder.glob("*.py")
        if "\n@figure(" in path.read_text("utf-8") and path.stem != "registry"
    }  # fmt: skip
    assert "crossing" in having
    assert having <= set(MODULES)


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


@pytest.mark.parametrize(("goal", "met"), [("<= 2", True), ("< 2", False), (">= 2", True)])
def test_a_value_at_its_limit(goal, met):
    assert Figure(None, "x", goal).met(2.0) is met


def test_a_row_is_judged_by_what_its_figure_says_and_prints_its_notes(tmp_path, capsys):
    @figure("slow machine", unit="x", goal=">= 10")
    def judged(report):
        return Result(4, judged=12, notes=("kernel 1 and 2",), details={"at_reference": 12})

    @figure("unsteady machine", unit="x", goal=">= 10")
    def undecided(report):
        return Result(4, judged=12, decided=False)

    @figure("twin", unit="x", goal=None)
    def twin(report):
        return 1

    names = ["slow machine", "unsteady machine", "twin"]
    rows = measure(names, tmp_path / "rows.json", report=print)
    assert [row["met"] for row in rows] == [True, None, None]
    assert (rows[0]["value"], rows[0]["at_reference"]) == (4, 12)
    _, first, note, second, third = capsys.readouterr().out.splitlines()
    assert first.endswith("yes")
    assert note == "    kernel 1 and 2"
    assert second.endswith("?")
    assert third.split()[-2:] == ["-", "-"]


def report_of(preset, **changes):
    """A routing report of a preset, with the parts that figures read."""
    router = {"name": "native", "version": "1", "locked": False}
    return {
        "preset": preset, "parameters": PRESETS[preset].words(), "fmax_mhz": 99.5,
        "device": "lfe5u-85f", "design": "e" * 64, "commit": None, "runs": [1, 2],
        "routers": [router], **changes,
    }  # fmt: skip


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Write a report where figures look for them; none of an earlier design."""
    monkeypatch.setattr(routed, "REPORTS", tmp_path)
    monkeypatch.setattr(routed, "earlier_design", lambda report: report.get("earlier"))
    routed.provenance.cache_clear()

    def write(preset, speed, **changes):
        path = tmp_path / f"{preset}-lfe5u-85f-grade{speed}.json"
        path.write_text(json.dumps(report_of(preset, **changes)))

    yield write
    routed.provenance.cache_clear()


def test_a_routed_clock_is_that_of_the_preset_as_it_is(published):
    with pytest.raises(NotMeasured, match="make route PRESET=tiny SPEED=6"):
        clock("tiny", 6)
    published("tiny", 6)
    assert clock("tiny", 6).value == 99.5
    published("tiny", 6, parameters={**PRESETS["tiny"].words(), "cores": 3})
    with pytest.raises(NotMeasured, match="other parameters"):
        clock("tiny", 6)


def test_a_routed_clock_says_which_program_and_which_design(published):
    published("tiny", 6, earlier="Verilog eeeeeeeeeeee")
    result = clock("tiny", 6)
    (note,) = result.notes
    assert "the slowest of 2 seeds, by native 1 (no seed by the locked package)" in note
    assert "of an earlier design (Verilog eeeeeeeeeeee)" in note
    assert result.details["conditions"]["earlier_design"] == "Verilog eeeeeeeeeeee"


def test_a_routed_rate_stands_with_its_conditions_beside_groups_of_one(published, monkeypatch):
    published("ecp5-equality", 8)
    counted = {
        "precision": 14, "window": 100, "matches_one_in": 9, "results_per_tuple": 0.5,
        "compared_bits": 16, "key_bits": 32, "timestamp_bits": 0, "cycle_efficiency": 1,
        "counters": {"cycles": 10, "comparisons": 17_920, "tuples": 20},
    }  # fmt: skip
    single = {**counted, "precision": 1, "counters": {**counted["counters"], "comparisons": 1280}}
    monkeypatch.setattr(routed, "saturate", lambda *_, **__: [counted, single])
    routed.counts.cache_clear()
    full, twin = (
        rate("ecp5-equality", "pairs decided", groups, print) for groups in ("full", "single")
    )
    routed.counts.cache_clear()
    assert (full.value, twin.value) == (1792 * 99.5e6, 128 * 99.5e6)
    assert "16 of 32 key bits compared, no timestamps" in full.notes[0]
    assert full.details["conditions"]["results_per_tuple"] == 0.5
    assert "groups of one (strict outer order)" in twin.notes[0]


def test_a_scan_with_timestamps_is_judged_by_its_share_of_the_rate_without(published, monkeypatch):
    """Both have as many comparators and are as busy, so the clocks decide."""
    published("ecp5-band", 8)
    published("ecp5-band-timed", 8, fmax_mhz=49.75)
    counted = {
        "precision": 2, "window": 100, "matches_one_in": 9, "results_per_tuple": 0.5,
        "compared_bits": 32, "key_bits": 32, "timestamp_bits": 0, "cycle_efficiency": 1,
        "counters": {"cycles": 10, "comparisons": 4_160, "tuples": 20},
    }  # fmt: skip
    monkeypatch.setattr(routed, "saturate", lambda *_, **__: [counted, counted])
    routed.counts.cache_clear()
    name = "scan.routed_timed_over_plain_whole_key_per_s_band"
    assert routed.SCANS["whole_key_per_s_band"][1] == "ecp5-band"
    result, met = FIGURES[name].measured(print)
    routed.counts.cache_clear()
    assert (result.value, met) == (0.5, False)
    assert [note.split(":")[0] for note in result.notes] == ["plain", "plain", "timed", "timed"]
