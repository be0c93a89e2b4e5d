# SPDX-License-Identifier: Apache-2.0
"""Controllers of the cores: properties for any observations, and against a simple plant."""

from dataclasses import replace
from fractions import Fraction
import math

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host import EnergyController, PredictiveController, ThresholdController, UsageError
from host.query.cores import PATIENCE, REGIONS, CoreControl, Observation

SHARES = st.fractions(Fraction(1, 100), 1)


@st.composite
def controllers(draw):
    kind = draw(st.sampled_from([ThresholdController, PredictiveController, EnergyController]))
    if kind is EnergyController:
        target, most = sorted(draw(st.tuples(SHARES, SHARES)))
        return kind(draw(st.integers(1, 100_000)), target, most)
    lower, target, upper = sorted(draw(st.tuples(SHARES, SHARES, SHARES)))
    return kind(upper, target, lower)


@st.composite
def observations(draw, cores=64):
    cycles = draw(st.integers(1, 100_000))
    return Observation(
        cores=draw(st.integers(1, cores)),
        least=draw(st.integers(0, 2 * cores)),
        cycles=cycles,
        busy=draw(st.integers(0, REGIONS * cores * cycles)),
        stalled=draw(st.integers(0, cycles)),
        output=draw(st.integers(0, cycles)),
        tuples=draw(st.integers(0, 2 * cycles)),
        arrived=draw(st.integers(0, 2 * cycles)),
        pending=draw(st.integers(0, 10_000)),
        window=draw(st.integers(0, 10_000)),
        ahead=draw(st.integers(0, 10_000)),
        peak=draw(st.integers(0, 2 * cycles)),
        latency=draw(st.none() | st.integers(0, 100_000)),
    )


@settings(max_examples=60)
@given(controllers(), st.integers(1, 64), st.integers(1, 4), st.lists(observations(), max_size=20))
def test_no_observations_lead_beyond_the_bounds(controller, cores, patience, seen):
    control = CoreControl(controller, cores, patience=patience)
    assert control.active == cores
    calm = 0
    for observation in seen:
        before = control.active
        active = control.see(observation)
        assert isinstance(active, int)
        assert active == control.active
        assert min(cores, max(1, observation.least)) <= active <= cores
        calm = calm + 1 if controller.wanted(observation) < before else 0
        if active < before:
            assert calm >= patience  # never fewer by the word of one observation
            calm = 0


@settings(max_examples=30)
@given(controllers(), st.integers(1, 64), st.lists(observations(), max_size=20))
def test_the_same_observations_give_the_same_cores(controller, cores, seen):
    first, second = CoreControl(controller, cores), CoreControl(controller, cores)
    assert [first.see(one) for one in seen] == [second.see(one) for one in seen]


@given(controllers(), observations(), st.integers(0, 1_000_000))
def test_busier_cores_never_ask_for_fewer(controller, seen, more):
    busier = replace(seen, busy=seen.busy + more)
    assert controller.wanted(busier) >= controller.wanted(seen) >= 0


@given(controllers(), observations(), st.integers(0, 10_000))
def test_more_tuples_never_ask_for_fewer(controller, seen, more):
    wanted = controller.wanted(seen)
    for field in ("arrived", "pending", "ahead", "peak"):
        assert controller.wanted(replace(seen, **{field: getattr(seen, field) + more})) >= wanted
    assert controller.wanted(replace(seen, latency=(seen.latency or 0) + more)) >= wanted


class Plant:
    """A scan whose input comes at a rate; its work is the same over however many cores.

    Parameters
    ----------
    cores : int
        Cores that there are.
    work : int
        Cycles of a region for each tuple.
    """

    CYCLES = 10_000

    def __init__(self, cores, work):
        self.cores, self.work = cores, work
        self.pending, self.peak = 0, 0

    def observed(self, active, arrived):
        """Return what is seen of an interval in which so many tuples arrive."""
        self.peak = max(self.peak, arrived)
        able = REGIONS * active * self.CYCLES // self.work
        tuples = min(able, arrived + self.pending)
        self.pending += arrived - tuples
        waits = self.pending > 0
        return Observation(
            cores=active, least=1, cycles=self.CYCLES, busy=tuples * self.work,
            stalled=self.CYCLES if waits else 0, tuples=tuples, arrived=arrived,
            pending=self.pending, window=2 * self.work, ahead=2 * self.work, peak=self.peak,
            latency=self.CYCLES if waits else self.work,
        )  # fmt: skip

    def load(self, active, arrived):
        return Fraction(arrived * self.work, REGIONS * active * self.CYCLES)


def run(control, plant, arrivals):
    active = []
    for arrived in arrivals:
        control.see(plant.observed(control.active, arrived))
        active.append(control.active)
    return active


LAWS = [ThresholdController(), PredictiveController(), EnergyController(9_000)]
#: Intervals in which a control has found its number: a queue of an overload is worked off first.
SETTLES = 24


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@settings(max_examples=40)
@given(st.integers(1, 64), st.integers(1, 4_000), st.integers(0, 3_000))
def test_a_constant_load_settles_and_does_not_oscillate(law, cores, work, arrived):
    plant = Plant(cores, work)
    control = CoreControl(law, cores)
    run(control, plant, [arrived] * SETTLES)
    last = run(control, plant, [arrived] * 20)
    assert len(set(last)) == 1
    (active,) = set(last)
    most = getattr(law, "upper", None) or law.most
    assert plant.load(active, arrived) <= most or active == cores
    # One core less would be above the target, or above its latency.
    if active > 1 and isinstance(law, ThresholdController):
        load = plant.load(active, arrived)
        assert load >= law.lower or plant.load(active - 1, arrived) > law.target


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@settings(max_examples=40)
@given(st.integers(1, 64), st.integers(1, 4_000), st.lists(st.integers(0, 3_000), max_size=3))
def test_after_any_loads_the_number_depends_on_the_last_one_only(law, cores, work, loads):
    """… within the band of the thresholds, and but for the highest rate of an energy controller."""
    plant = Plant(cores, work)
    control = CoreControl(law, cores)
    for arrived in loads:
        run(control, plant, [arrived] * SETTLES)
        load = plant.load(control.active, arrived)
        able = plant.load(cores, arrived) <= Fraction(law.target)
        if able:
            assert load <= Fraction(getattr(law, "upper", law.target))


@given(st.integers(2, 64), st.integers(1, 4_000))
def test_falling_takes_patience_and_growing_takes_none(cores, work):
    plant = Plant(cores, work)
    control = CoreControl(ThresholdController(), cores)
    active = run(control, plant, [0] * (PATIENCE + 1))
    assert active == [cores] * (PATIENCE - 1) + [1, 1]
    full = math.ceil(REGIONS * cores * plant.CYCLES / work)
    grown = control.see(plant.observed(1, full))
    assert grown == min(cores, 2)  # a full core says no more than that one is too few
    counted = CoreControl(PredictiveController(), cores)
    run(counted, Plant(cores, work), [0] * (PATIENCE + 1))
    if plant.load(cores, full) >= 1 and full * work % (REGIONS * plant.CYCLES) == 0:
        # … and the queue says how many are missing.
        assert counted.see(Plant(cores, work).observed(1, full)) == cores


def observed(**changes):
    """An interval of 1,000 cycles in which 4 cores were half busy with 100 tuples."""
    return Observation(**{
        "cores": 4, "least": 1, "cycles": 1_000, "busy": 4_000, "tuples": 100, "arrived": 100,
        "window": 80, "ahead": 80, "peak": 100, **changes,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("busy", "wanted"),
    [(0, 0), (3_599, 3), (3_600, 4), (7_200, 4), (7_201, 6), (8_000, 6), (12_000, 9)],
)
def test_the_thresholds_are_those_of_the_paper(busy, wanted):
    """At 8,000 busy cycles of 8,000, six cores have a load of 67 %, five one of 80 %."""
    assert ThresholdController().wanted(observed(busy=busy)) == wanted


def test_tuples_that_wait_for_cores_count_as_a_full_load():
    short = observed(stalled=500)
    assert ThresholdController().wanted(short) == 6
    # More cores do not help where results fill the output.
    assert ThresholdController().wanted(replace(short, output=900)) == 4
    assert ThresholdController().wanted(observed(stalled=499)) == 4


def test_the_prediction_counts_the_queue_and_windows_that_will_grow():
    law = PredictiveController()
    assert law.wanted(observed(busy=6_000)) == 4
    assert law.wanted(observed(busy=6_000, pending=50)) == 6  # 9,000 cycles of work, of 12,000
    assert law.wanted(observed(busy=6_000, ahead=160)) == 8
    assert law.wanted(observed(busy=6_000, ahead=40)) == 4  # what is stored must still be read
    assert law.wanted(observed(busy=3_000)) == 2


def test_the_energy_controller_is_ready_for_the_highest_rate():
    law = EnergyController(1_000, target=Fraction(3, 4), most=Fraction(19, 20))
    calm = observed(busy=1_500, latency=10, window=8_000, ahead=8_000)
    assert law.wanted(calm) == 1
    # Two intervals of the jump are stored in the same cores: 800 tuples beside 8,000.
    assert law.wanted(replace(calm, peak=400)) == math.ceil(400 * 15 / 2_000 * 1.1 / 0.95) == 4
    assert law.wanted(replace(calm, peak=400, window=800, ahead=800)) == 7
    assert replace(law, rate=0.4).wanted(calm) == 4
    assert law.wanted(replace(calm, latency=750)) == 4
    assert law.wanted(replace(calm, latency=751)) == 5
    assert law.wanted(replace(calm, latency=187, ahead=16_000)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ThresholdController(upper=1.5), "upper threshold of a load is a share .* not 1.5"),
        (lambda: ThresholdController(lower=0), "lower threshold of a load is a share .* not 0"),
        (lambda: ThresholdController(target=0.95), "lower <= target <= upper, not 0.45, 0.95 and"),
        (lambda: PredictiveController(lower="x"), "not 'x'"),
        (lambda: EnergyController(0), "whole number of cycles from 1 on, not 0"),
        (lambda: EnergyController(5, target=0.99), "target load of 0.99 is above the most of 0.95"),
        (lambda: EnergyController(5, rate=0), "tuples per cycle must be above 0"),
        (lambda: CoreControl(ThresholdController(), 0), "at least one core, not 0"),
        (lambda: CoreControl(ThresholdController(), 3, patience=0), "patience, not 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_controllers_say_what_they_do():
    assert str(ThresholdController()) == "threshold 90/70/45 %"
    assert str(PredictiveController()) == "predictive 80/75/70 %"
    assert str(EnergyController(5_000)) == "energy, latency of at most 5,000 cycles"
