# SPDX-License-Identifier: Apache-2.0
from contextlib import suppress
from types import SimpleNamespace

from sim.experiments.point import Point
from sim.experiments.sweep import sweep

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
