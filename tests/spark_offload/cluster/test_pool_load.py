# SPDX-License-Identifier: Apache-2.0
"""The load on a pool: what is observed at the borders of micro-batches, and what follows."""

from fractions import Fraction
import json

from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.query.cores import (
    CoreControl,
    EnergyController,
    PredictiveController,
    ThresholdController,
)
from spark_offload.cluster.pools import PoolLoad

MILLION = 1_000_000

COURSES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3 * MILLION), max_size=4),  # time held by each task
        st.integers(0, 1000),  # rows of each task
        st.integers(1, 4 * MILLION),  # from one border to the next
    ),
    max_size=20,
)

CONTROLLERS = st.one_of(
    st.builds(ThresholdController, interval=st.sampled_from([1, 5 * MILLION])),
    st.builds(PredictiveController, interval=st.sampled_from([1, 5 * MILLION])),
    st.builds(
        EnergyController, st.integers(1, 9 * MILLION), interval=st.sampled_from([1, 5 * MILLION])
    ),
)


def run(course, controller, devices, *, active=None):
    """Return the load at the start of every micro-batch of a course."""
    now, loads = 1000.0, [PoolLoad.first(0, active or devices, 1000.0)]
    for number, (held, rows, duration) in enumerate(course, 1):
        load = loads[-1]
        for share in held:
            load = load.used(share / MILLION, rows, now + duration / MILLION / 2)
        now += duration / MILLION
        loads.append(load.at_border(number, controller, devices, now))
    return loads


@given(COURSES, CONTROLLERS, st.integers(1, 9))
def test_the_observations_alone_give_the_same_numbers_again(course, controller, devices):
    control = CoreControl(controller, devices)
    for load in run(course, controller, devices):
        if load.seen is not None:
            control.see(load.seen)
        assert load.active == control.active


@given(COURSES, CONTROLLERS, st.integers(1, 9))
def test_every_microsecond_and_row_is_observed_once(course, controller, devices):
    loads = run(course, controller, devices)
    seen = [load.seen for load in loads if load.seen is not None]
    last = loads[-1]
    assert sum(each.busy for each in seen) // 2 + last.held == sum(sum(h) for h, _, _ in course)
    assert sum(each.tuples for each in seen) + last.rows == sum(len(h) * r for h, r, _ in course)
    assert all(each.cycles >= controller.interval for each in seen)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9 * MILLION))
def test_a_constant_load_settles(devices, active, held):
    course = [([held // 3] * 3, 10, MILLION)] * 30
    numbers = [
        load.active
        for load in run(course, ThresholdController(), devices, active=min(active, devices))
    ]
    assert len(set(numbers[20:])) == 1
    load = Fraction(held // 3 * 3, MILLION * numbers[-1])
    assert load <= Fraction(9, 10) or numbers[-1] == devices
    fewest = -(-load * numbers[-1] // Fraction(7, 10))
    assert load >= Fraction(45, 100) or numbers[-1] == max(1, fewest)


def test_the_number_grows_at_once_and_falls_after_two_observations():
    quiet, crowd = ([100_000], 5, MILLION), ([900_000, 900_000], 90, MILLION)
    numbers = [
        load.active for load in run([quiet] * 3 + [crowd] + [quiet] * 2, ThresholdController(), 4)
    ]
    assert numbers == [4, 4, 1, 1, 3, 3, 1]


def test_the_energy_controller_keeps_devices_for_the_highest_rate_seen():
    quiet, crowd = ([300_000], 100, MILLION), ([300_000] * 6, 100, MILLION)
    course = [quiet] * 4 + [crowd] * 2 + [quiet] * 6
    numbers = [load.active for load in run(course, EnergyController(10 * MILLION), 4)]
    assert numbers == [4, 4, 1, 1, 1, 3, 3, 3, 2, 2, 2, 2, 2]
    load = run([quiet], EnergyController(10 * MILLION), 4)[-1]
    assert load.seen.latency == 500_000, "from the first claim to the last release"


@given(COURSES, CONTROLLERS)
def test_a_load_is_its_text(course, controller):
    load = run(course, controller, 5)[-1]
    assert PoolLoad.parse(load.text, 1e9) == load


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"{}", b"null", b"\xff", "[" * 60_000, b'{"batch": 1}'],
)
def test_what_is_no_load_counts_as_none(text):
    assert PoolLoad.parse(text, 1e9) is None


WRONG = [None, True, -1, "", [], {"a": 1}, [-1], [0, 0], float("nan"), 2e9]


def test_a_load_with_any_value_out_of_form_counts_as_none():
    values = json.loads(run([([5], 5, MILLION)], ThresholdController(), 5)[-1].text)
    for name in values:
        sound = {"seen": [None], "calm": [[], [0, 0]]}.get(name, [])
        for wrong in WRONG:
            load = PoolLoad.parse(json.dumps(values | {name: wrong}), 1e9)
            assert (load is not None) == (wrong in sound), (name, wrong)
