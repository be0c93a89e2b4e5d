# SPDX-License-Identifier: Apache-2.0
from contextlib import suppress
from dataclasses import replace
from threading import Barrier, Event
from types import SimpleNamespace

import pytest

from bench.experiments import sweep as sweeping
from bench.experiments.joins import ACCELERATORS, Filled, Point
from bench.experiments.sweep import Store, sweep

POINTS = [Point("sj-2", 16), Point("llhj-2", 16), Point("sj-2", 32), Point("sj-2", 16)]


def measured(folder, points, circuit, *, broken=()):
    """Sweep with a measurement that counts; return the points that it was asked for."""
    asked = []

    def measure(point, manifest):
        if point in broken:
            raise KeyboardInterrupt
        asked.append(point)
        return {"cycles": len(asked)}

    def prepared(name, parameters, place, report):
        assert parameters == ACCELERATORS[name]
        return SimpleNamespace(hash=f"{name} {circuit}")

    with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Point, "measure", measure)
        sweep(points, lambda text: None, folder=folder, prepared=prepared)
    return asked


def test_equal_points_are_measured_once_and_kept_for_the_next_sweep(tmp_path):
    assert len(measured(tmp_path, POINTS, "a")) == 3
    assert measured(tmp_path, POINTS, "a") == []
    more = Point("sj-2", 64)
    assert measured(tmp_path, [*POINTS, more], "a") == [more]


def test_a_sweep_that_was_interrupted_goes_on(tmp_path):
    first = measured(tmp_path, POINTS, "a", broken=POINTS[:1])
    then = measured(tmp_path, POINTS, "a")
    assert first
    assert sorted(map(str, first + then)) == sorted(map(str, set(POINTS)))


def test_a_changed_circuit_is_measured_anew(tmp_path):
    measured(tmp_path, POINTS, "a")
    assert len(measured(tmp_path, POINTS, "b")) == 3


def test_the_next_accelerator_is_made_while_one_is_measured(tmp_path, monkeypatch):
    second_is_made = Event()

    def prepared(name, parameters, place, report):
        if name == "sj-2":
            second_is_made.set()
        return SimpleNamespace(hash=name)

    def measure(point, manifest):
        assert second_is_made.wait(60)
        return {"cycles": 1}

    monkeypatch.setattr(Point, "measure", measure)
    points = [Point("llhj-2", 16), Point("sj-2", 16)]
    found = sweep(points, lambda text: None, folder=tmp_path, prepared=prepared)
    assert set(found) == set(points)


def test_an_accelerator_that_cannot_be_made_ends_the_sweep(tmp_path):
    def prepared(name, parameters, place, report):
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        sweep(POINTS, lambda text: None, folder=tmp_path, prepared=prepared)


def swept_by_two(folder, monkeypatch, points, measure):
    """Sweep with two threads; return what was found, and the steps that were reported."""
    monkeypatch.setattr(sweeping, "processors", lambda: 2)
    monkeypatch.setattr(Point, "measure", measure)
    steps = []
    found = sweep(
        points, lambda text: None, folder=folder,
        prepared=lambda name, *_: SimpleNamespace(hash=name),
        advance=lambda *step: steps.append(step),
    )  # fmt: skip
    return found, steps


def test_points_are_measured_at_the_same_time_and_returned_in_their_order(tmp_path, monkeypatch):
    both = Barrier(2)

    def measure(point, manifest):
        both.wait(60)
        return {"cycles": point.window}

    points = [replace(POINTS[0], window=window) for window in (64, 16, 32, 8)]
    found, steps = swept_by_two(tmp_path, monkeypatch, points, measure)
    assert list(found.items()) == [(point, {"cycles": point.window}) for point in points]
    assert steps == [(done, 4) for done in range(5)]
    assert swept_by_two(tmp_path, monkeypatch, points, both.abort) == (found, steps)


def test_after_an_error_what_is_being_measured_is_kept(tmp_path, monkeypatch):
    points = [replace(POINTS[0], window=window) for window in (1, 2)]
    begun = Barrier(2)
    failed = Event()

    def measure(point, manifest):
        begun.wait(60)
        if point.window == 1:
            failed.set()
            raise OSError("no device")
        assert failed.wait(60)
        return {"cycles": point.window}

    with pytest.raises(OSError, match="no device"):
        swept_by_two(tmp_path, monkeypatch, points, measure)
    kept = Store(tmp_path / Point.store)
    assert [kept.get("sj-2", point) for point in points] == [None, {"cycles": 2}]


def test_points_of_two_kinds_are_kept_apart(tmp_path, monkeypatch):
    filled = Filled(tuple(POINTS[:1]))
    monkeypatch.setattr(Filled, "measure", lambda filled, manifest: [{"cycles": 5}])
    points = [POINTS[0], filled]
    found, _ = swept_by_two(tmp_path, monkeypatch, points, lambda *_: {"cycles": 4})
    assert found == {POINTS[0]: {"cycles": 4}, filled: [{"cycles": 5}]}
    assert Store(tmp_path / Point.store).get("sj-2", POINTS[0]) == {"cycles": 4}
    assert Store(tmp_path / Filled.store).get("sj-2", filled) == [{"cycles": 5}]
