# SPDX-License-Identifier: Apache-2.0
"""The law of adaptive precision: properties for any measurements, and against a simple plant."""

from fractions import Fraction
import math

from hypothesis import given
from hypothesis import strategies as st
import pytest

from host import InputRate, Latency, Queue
from host.protocol.cost_model import Circuit, Workload, cycles_per_tuple
from host.query.ordering import PATIENCE, PeriodControl
from tests.host.query.test_goals import observed
from tests.host.tables import manifest_of

GOALS = st.one_of(
    st.builds(InputRate, st.fractions(Fraction(1, 1000), 2)),
    st.builds(Queue, st.integers(2, 10_000), st.fractions(Fraction(1, 1000), 2)),
    st.builds(Latency, st.integers(1, 100_000)),
)


@st.composite
def measurements(draw):
    cycles = draw(st.integers(1, 100_000))
    offered = draw(st.integers(0, cycles))
    return observed(
        cycles,
        offered,
        draw(st.integers(0, 2 * offered)),
        draw(st.fractions(0, 10_000)),
        settling_offered=draw(st.integers(0, 1000)),
        settling_tuples=draw(st.integers(0, 1000)),
    )


@given(GOALS, st.integers(1, 300), st.integers(1, 64), st.lists(measurements(), max_size=60))
def test_no_measurements_lead_beyond_the_bound(goal, bound, probes, seen):
    control = PeriodControl(goal, bound, probes=probes)
    assert 1 <= control.period <= control.bound <= bound
    calm = 0
    for measurement in seen:
        before = control.period
        assert control.see(measurement) == control.period
        assert isinstance(control.period, int)
        assert 1 <= control.period <= control.bound
        if control.period > before:
            assert not control.held  # what holds is not widened
        calm = calm + 1 if control.held else 0
        if control.period < before:
            assert calm >= PATIENCE
            assert control.period >= before / 2
            calm = 0


@given(GOALS, st.integers(0, 8), st.lists(measurements(), max_size=60))
def test_periods_of_rounds_are_powers_of_two(goal, bound, seen):
    control = PeriodControl(goal, 1 << bound, probes=1 << bound, powers=True)
    for measurement in seen:
        period = control.see(measurement)
        assert period & (period - 1) == 0 < period <= 1 << bound


class Plant:
    """An accelerator as the cost model sees it, whose input is always offered."""

    def __init__(self, circuit, window):
        self.circuit, self.window = circuit, window

    def cycles(self, period):
        load = Workload(windows=(self.window, self.window), period=period)
        return Fraction(cycles_per_tuple(self.circuit, load))

    def measured(self, period, interval=100_000, error=Fraction(0)):
        tuples = int(interval / self.cycles(period) * (1 + error))
        return observed(interval, interval, tuples)

    def needs(self, rate, bound):
        """The shortest period that reaches a rate, or the bound."""
        return next((p for p in range(1, bound) if 1 / self.cycles(p) >= rate), bound)


def settled(control, plant, steps, errors=None):
    """Return the periods of so many measurements."""
    periods = []
    for _ in range(steps):
        error = Fraction(0) if errors is None else next(errors)
        control.see(plant.measured(control.period, error=error))
        periods.append(control.period)
    return periods


@pytest.fixture(scope="module")
def circuit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plant")
    return Circuit.of(manifest_of(folder, cores=2, sub_window=2048, probes=16, probe_bits=8))


@given(st.integers(1, 4000), st.fractions(Fraction(1, 5000), Fraction(19, 20)), st.integers(2, 64))
def test_the_period_settles_where_the_rate_is_held(circuit, window, rate, bound):
    plant = Plant(circuit, window)
    control = PeriodControl(InputRate(rate), bound, probes=circuit.probes)
    first = control.period
    # Two measurements for each halving, and as many for the last step; or widening one by one.
    periods = settled(control, plant, 2 * math.ceil(math.log2(bound)) + bound + 4)
    assert len(set(settled(control, plant, 20))) == 1
    shortest = plant.needs(rate, bound)
    assert control.period >= shortest
    if 1 / plant.cycles(first) >= rate:
        assert periods == sorted(periods, reverse=True)  # never back and forth


@pytest.mark.long
@given(st.integers(400, 2000))
def test_the_period_is_about_the_shortest_that_holds(circuit, window):
    """Where a pass is much longer than a group; within the margin and one."""
    plant = Plant(circuit, window)
    for share in (Fraction(1, 10), Fraction(1, 3), Fraction(3, 4)):
        rate = share / plant.cycles(circuit.probes)
        control = PeriodControl(InputRate(rate), 64, probes=circuit.probes)
        settled(control, plant, 40)
        shortest = plant.needs(rate, 64)
        assert shortest <= control.period <= math.ceil(shortest * Fraction(9, 8)) + 1


@given(st.data(), st.integers(1, 2000), st.integers(1, 2000))
def test_a_change_of_the_load_is_followed(circuit, data, before, after):
    errors = iter(lambda: data.draw(st.sampled_from([-1, 0, 1])) * Fraction(1, 50), None)
    rate = Fraction(1, 2) / Plant(circuit, max(before, after)).cycles(circuit.probes)
    control = PeriodControl(InputRate(rate), 64, probes=circuit.probes)
    settled(control, Plant(circuit, before), 30, errors)
    plant = Plant(circuit, after)
    periods = settled(control, plant, 30, errors)
    assert all(rate <= Fraction(103, 100) / plant.cycles(period) for period in periods[10:])


@pytest.mark.parametrize(("tuples", "period"), [(1124, 16), (1216, 15), (9000, 8)])
def test_a_period_narrows_only_with_a_margin_and_by_half_at_most(tuples, period):
    """With 1000 needed, a sixteenth less would do from 1067 on, and with a margin from 1200 on."""
    control = PeriodControl(InputRate(1), 64, probes=16)
    seen = observed(1000, 1000, tuples)
    assert control.see(seen) == 16  # one measurement is not enough
    assert control.see(seen) == period


def test_a_period_widens_at_once_as_far_as_it_must():
    control = PeriodControl(InputRate(1), 64, probes=16)
    assert control.see(observed(1000, 1000, 700)) == 23
    assert control.see(observed(1000, 1000, 0)) == 64


@given(st.integers(100, 5000), st.integers(100, 2000), st.integers(100, 2000))
def test_a_queue_never_outgrows_its_bound(circuit, room, before, after):
    rate = Fraction(1, 2) / Plant(circuit, max(before, after)).cycles(circuit.probes)
    goal = Queue(room, rate)
    control = PeriodControl(goal, 64, probes=circuit.probes)
    interval = goal.interval(100_000)
    queue = Fraction(0)
    for step in range(60):
        plant = Plant(circuit, before if step < 30 else after)
        # Each measurement is that of whole tuples, as the queue counts them.
        seen = plant.measured(control.period, interval)
        queue = max(Fraction(0), queue + rate * interval - seen.tuples)
        assert queue <= room
        control.see(seen)


def test_a_latency_is_held_by_the_period_that_halves_it():
    """A plant in which tuples wait for passes: 4000 / p + 100 cycles, and p tuples in 100."""
    control = PeriodControl(Latency(600), 64, probes=32)
    for _ in range(20):
        tuples = 100 * control.period
        latency = Fraction(4000, control.period) + 100
        control.see(observed(10_000, 10_000, tuples, latency * tuples / 10_000))
    assert 8 <= control.period <= 10
