# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

from bench.experiments.joins import Point
from bench.experiments.sweep import Store

POINT = Point("sj-2", 16)


def test_a_point_is_found_again_by_another_process(tmp_path):
    path = tmp_path / "new" / "points.jsonl"
    Store(path).put("one", POINT, {"cycles": 7})
    assert Store(path).get("one", POINT) == {"cycles": 7}


def test_another_circuit_or_load_is_another_point(tmp_path):
    store = Store(tmp_path / "points.jsonl")
    store.put("one", POINT, {"cycles": 7})
    assert store.get("two", POINT) is None
    assert store.get("one", replace(POINT, interval=3)) is None
    assert store.get("one", replace(POINT, timed=True)) is None


def test_a_line_that_was_cut_off_loses_its_own_point_only(tmp_path):
    path = tmp_path / "points.jsonl"
    store = Store(path)
    store.put("one", POINT, {"cycles": 7})
    store.put("two", POINT, {"cycles": 8})
    path.write_text(path.read_text()[:-20])
    store = Store(path)
    assert store.get("two", POINT) is None
    store.put("three", POINT, {"cycles": 9})
    found = Store(path)
    assert [found.get(key, POINT) for key in ("one", "two", "three")] == [
        {"cycles": 7}, None, {"cycles": 9},
    ]  # fmt: skip


def test_another_method_is_measured_anew(tmp_path, monkeypatch):
    Store(tmp_path / "points.jsonl").put("one", POINT, {"cycles": 7})
    monkeypatch.setattr("bench.experiments.sweep.METHOD", -1)
    assert Store(tmp_path / "points.jsonl").get("one", POINT) is None
