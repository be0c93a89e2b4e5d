# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from threading import Barrier, Event

import pytest

from bench.experiments.point import Point
from bench.experiments.store import Store

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
    monkeypatch.setattr("bench.experiments.store.METHOD", -1)
    assert Store(tmp_path / "points.jsonl").get("one", POINT) is None


def filled(store, points, measure, **options):
    """Fill a store; return what was found, and the steps that were reported."""
    steps = []
    found = store.fill(
        points, lambda point: point.accelerator, measure, lambda *step: steps.append(step),
        **options,
    )  # fmt: skip
    return found, steps


def test_points_are_measured_at_the_same_time_and_returned_in_their_order(tmp_path):
    both = Barrier(2)

    def measure(point):
        both.wait(60)
        return {"cycles": point.window}

    points = [replace(POINT, window=window) for window in (64, 16, 32, 8)]
    found, steps = filled(Store(tmp_path / "points.jsonl"), points, measure, workers=2)
    assert list(found.items()) == [(point, {"cycles": point.window}) for point in points]
    assert steps == [(done, 4) for done in range(5)]
    again = Store(tmp_path / "points.jsonl")
    assert filled(again, points, both.abort, workers=2) == (found, steps)


def test_after_an_error_what_is_being_measured_is_kept(tmp_path):
    points = [replace(POINT, window=window) for window in (1, 2)]
    begun = Barrier(2)
    failed = Event()

    def measure(point):
        begun.wait(60)
        if point.window == 1:
            failed.set()
            raise OSError("no device")
        assert failed.wait(60)
        return {"cycles": point.window}

    store = Store(tmp_path / "points.jsonl")
    with pytest.raises(OSError, match="no device"):
        filled(store, points, measure, workers=2)
    kept = Store(tmp_path / "points.jsonl")
    assert [kept.get("sj-2", point) for point in points] == [None, {"cycles": 2}]
