# SPDX-License-Identifier: Apache-2.0
from contextlib import suppress
from threading import Event
from types import SimpleNamespace

import pytest

from bench.experiments.point import Point
from bench.experiments.sweep import sweep

POINTS = [Point("sj-2", 16), Point("llhj-2", 16), Point("sj-2", 32), Point("sj-2", 16)]


def measured(folder, points, circuit, *, broken=()):
    """Sweep with a measurement that counts; return the points that it was asked for."""
    asked = []

    def measure(manifest, point):
        if point in broken:
            raise KeyboardInterrupt
        asked.append(point)
        return {"cycles": len(asked)}

    def prepared(name, place, report):
        return SimpleNamespace(hash=f"{name} {circuit}")

    with suppress(KeyboardInterrupt):
        sweep(points, lambda text: None, folder=folder, prepared=prepared, measured=measure)
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


def test_the_next_accelerator_is_made_while_one_is_measured(tmp_path):
    second_is_made = Event()

    def prepared(name, place, report):
        if name == "sj-2":
            second_is_made.set()
        return SimpleNamespace(hash=name)

    def measure(manifest, point):
        assert second_is_made.wait(60)
        return {"cycles": 1}

    points = [Point("llhj-2", 16), Point("sj-2", 16)]
    found = sweep(points, lambda text: None, folder=tmp_path, prepared=prepared, measured=measure)
    assert set(found) == set(points)


def test_an_accelerator_that_cannot_be_made_ends_the_sweep(tmp_path):
    def prepared(name, place, report):
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        sweep(POINTS, lambda text: None, folder=tmp_path, prepared=prepared)
