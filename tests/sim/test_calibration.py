# SPDX-License-Identifier: Apache-2.0
import pytest

from sim import calibration
from sim.calibration import REFERENCE, TRIES, calibrated, kernel_speed
from sim.instructions import Instructions


def speeds(*shares):
    """A kernel that runs at these shares of its reference speed, one after the other."""
    rest = iter(shares)
    return lambda *, wall: next(rest) * REFERENCE


@pytest.mark.parametrize(("rate", "judged"), [(True, 200), (False, 50)])
def test_a_value_is_judged_at_the_speed_of_the_reference(rate, judged):
    result = calibrated(lambda: (100, 7.0), runs=1, rate=rate, report=str, speed=speeds(0.5, 0.5))
    assert (result.value, result.judged, result.decided) == (100, judged, True)
    assert result.details["kernel"] == [REFERENCE / 2]
    assert "instructions per unit: 7" in result.notes[0]


def test_every_run_is_judged_by_its_own_kernel():
    """A machine that slows down and speeds up again between runs gives the same figure."""
    speed = speeds(1, 1, 0.9, 0.9, 0.81, 0.81, 0.9)
    values = iter([(100, None), (95, None), (90, None), (85.5, None), (81, None), (85.5, None)])
    result = calibrated(lambda: next(values), runs=6, rate=True, report=str, speed=speed)
    assert result.decided
    assert result.judged == pytest.approx(100)


def test_a_run_between_kernels_that_differ_does_not_count():
    values = iter([(1, None), (4, None), (2, None)])
    result = calibrated(
        lambda: next(values), runs=2, rate=True, report=str, speed=speeds(1, 0.85, 0.9, 0.9)
    )
    assert (result.value, result.decided) == (3, True)
    assert "2 of 3 runs" in result.notes[0]
    assert "instructions per unit: -" in result.notes[0]


def test_a_machine_that_never_becomes_steady_decides_nothing():
    done = []

    def run():
        done.append(1)
        return 1, None

    speed = speeds(1, *[0.5, 1] * TRIES)
    result = calibrated(run, runs=2, rate=True, report=str, speed=speed)
    assert not result.decided
    assert len(done) == 2 * TRIES


def test_the_kernel_is_compiled_and_tells_its_speed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(calibration, "CYCLES", 200)
    calibration.kernel.cache_clear()
    try:
        assert kernel_speed() > 0
        assert kernel_speed(wall=True) > 0
    finally:
        calibration.kernel.cache_clear()


def test_events_of_this_thread_are_counted_where_the_system_lets_one():
    with Instructions() as executed:
        sum(range(1000))
    assert executed.count is None or executed.count > 1000
    # Nanoseconds of the thread: an event of the kernel, which needs no counter of a processor.
    with Instructions(event=(1, 1)) as clock:
        sum(range(100_000))
    assert clock.count is None or 0 < clock.count < 60 * 10**9
