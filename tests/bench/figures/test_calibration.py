# SPDX-License-Identifier: Apache-2.0
import ctypes
import itertools
import threading

import pytest

from bench.figures import calibration
from bench.figures.calibration import (
    REFERENCE,
    TRIES,
    Instructions,
    calibrated,
    in_turn,
    kernel_speed,
    run_kernel,
)


def speeds(*shares):
    """A kernel that runs at these shares of its reference speed, one after the other."""
    rest = itertools.chain(shares, itertools.repeat(shares[-1]))
    return lambda cycles, *, wall: next(rest) * REFERENCE


@pytest.mark.parametrize(("rate", "value", "judged"), [(True, 25, 50), (False, 0.04, 0.02)])
def test_a_value_is_judged_at_the_speed_of_the_reference(rate, value, judged):
    """Twice 100 in 4 seconds, at half of the reference speed."""
    result = calibrated(
        lambda: (100, 4.0, 700), runs=1, parts=2, rate=rate, report=str, speed=speeds(0.5)
    )
    assert (result.value, result.judged, result.decided) == (value, judged, True)
    assert result.details["kernel"] == [REFERENCE / 2]
    assert "instructions per unit: 7" in result.notes[0]


def test_kernel_and_parts_take_turns():
    log = []

    def speed(cycles, *, wall):
        log.append("kernel")
        return 4.0 if len(log) < 4 else 2.0

    def part():
        log.append("part")
        return 3, 0.5, None

    amount, seconds, instructions, halves = in_turn(part, 3, False, speed)
    assert log == ["kernel", "part"] * 3 + ["kernel"]
    assert (amount, seconds, instructions, halves) == (9, 1.5, None, (4.0, 2.0))


def test_every_run_is_judged_by_its_own_kernel():
    """A machine that slows down and speeds up again between runs gives the same figure."""
    shares = [1, 0.9, 0.5, 0.8, 0.7]
    values = iter([(100 * share, 1, None) for share in shares])
    result = calibrated(
        lambda: next(values), runs=5, parts=1, rate=True, report=str,
        speed=speeds(*[share for share in shares for _ in range(2)]),
    )  # fmt: skip
    assert result.decided
    assert result.judged == pytest.approx(100)


def test_a_run_between_kernels_that_differ_does_not_count():
    values = iter([(1, 1, None), (4, 1, None), (2, 1, None)])
    result = calibrated(
        lambda: next(values), runs=2, parts=1, rate=True, report=str,
        speed=speeds(1, 0.95, 1, 0.85, 0.9, 0.9),
    )  # fmt: skip
    assert (result.value, result.decided) == (1.5, True)
    assert "2 of 3 runs" in result.notes[0]
    assert "instructions per unit: -" in result.notes[0]


def test_a_machine_that_never_becomes_steady_decides_nothing():
    done = []

    def part():
        done.append(1)
        return 1, 1, None

    speed = speeds(*[1, 0.5] * TRIES * 2)
    result = calibrated(part, runs=2, parts=1, rate=True, report=str, speed=speed)
    assert not result.decided
    assert len(done) == 2 * TRIES


@pytest.mark.long
def test_the_kernel_is_compiled_and_always_does_the_same():
    assert kernel_speed(1000) > 0
    assert kernel_speed(1000, wall=True) > 0
    cpu, wall = run_kernel(20_000)
    assert 0 < cpu <= wall * 1.1
    run = calibration.kernel()
    sums = []
    for _ in range(2):  # a thread has a circuit of its own
        thread = threading.Thread(target=lambda: sums.append(run(20_000, (ctypes.c_double * 2)())))
        thread.start()
        thread.join()
    assert sums[0] == sums[1] != 0


def test_events_of_this_thread_are_counted_where_the_system_lets_one():
    with Instructions() as executed:
        sum(range(1000))
    assert executed.count is None or executed.count > 1000
    # Nanoseconds of the thread: an event of the kernel, which needs no counter of a processor.
    with Instructions(event=(1, 1)) as clock:
        sum(range(100_000))
    assert clock.count is None or 0 < clock.count < 60 * 10**9
