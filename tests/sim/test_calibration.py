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
    result = calibrated(lambda: (100, 7.0), rate=rate, report=str, speed=speeds(0.5, 0.5))
    assert (result.value, result.judged, result.decided) == (100, judged, True)
    assert result.details["kernel"] == [REFERENCE / 2] * 2
    assert "instructions per unit: 7" in result.notes[0]


def test_a_pair_of_calibrations_that_differ_is_repeated():
    values = iter([(1, None), (2, None)])
    result = calibrated(
        lambda: next(values), rate=True, report=str, speed=speeds(1, 0.85, 0.95, 1.0)
    )
    assert (result.value, result.decided) == (2, True)
    assert result.judged == pytest.approx(2 / 0.975)
    assert "instructions per unit: -" in result.notes[0]


def test_a_machine_that_never_becomes_steady_decides_nothing():
    runs = []

    def measure():
        runs.append(1)
        return 1, None

    result = calibrated(measure, rate=True, report=str, speed=speeds(*[1, 0.5] * TRIES))
    assert not result.decided
    assert len(runs) == TRIES


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
