# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.parameters import JoinParameters
from hdl.predicates.rule import Comparator
from tests.halves import half
from tests.hdl.input_words import criterion_of, stored_key
from tests.hdl.key_fields import FIELD_SETS, bounds, keys

UNLIKE = FIELD_SETS["unlike"]


def near(r, s):
    """A custom predicate: Manhattan distance."""
    distance_a = (r.a - s.a) * (r.a - s.a)
    return (distance_a <= 4) & (r.b != s.b) & ~(r.c > s.c)


def parameters_of(comparator, fields="unlike"):
    """Parameters with these key fields."""
    predicate = f"{__name__}:near" if comparator == "custom" else None
    return JoinParameters.of(keys=FIELD_SETS[fields], comparator=comparator, predicate=predicate)


def simulate(parameters, probe_side, cases):
    """Compare a (probe, stored, bounds, expected) in every cycle."""
    dut = Comparator(parameters, probe_side=probe_side)
    assert dut.latency == 1
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        for probe, stored, limits, expected in cases:
            for name, value in criterion_of(parameters, probe_side, probe, limits).items():
                ctx.set(getattr(dut.criterion, name), value)
            ctx.set(dut.key, stored_key(parameters, stored))
            await ctx.tick()
            assert bool(ctx.get(dut.match)) == expected

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("fields", "probe_side"), half([(fields,) for fields in FIELD_SETS], [0, 1])
)
@settings(max_examples=15)
@given(data=st.data())
def test_band_compares_differences_inclusively(fields, probe_side, data):
    parameters = parameters_of("band", fields)
    key = keys(parameters.keys)
    cases = []
    for limits, probe, stored in data.draw(
        st.lists(st.tuples(bounds(parameters.keys), key, key), max_size=20)
    ):
        r, s = (stored, probe) if probe_side else (probe, stored)
        within = all(low <= r[n] - s[n] <= high for n, (low, high) in limits.items())
        exact = {n: (r[n] - s[n],) * 2 for n in limits}  # this pair and no other difference
        cases += [
            (probe, stored, limits, within),
            (probe, stored, exact, True),
            (probe, probe, exact, probe == stored),
        ]
    simulate(parameters, probe_side, cases)


@pytest.mark.parametrize("probe_side", [0, 1])
def test_each_field_decides_alone(probe_side):
    """No borrow of a field reaches its neighbours."""
    zero, limits = dict.fromkeys("abc", 0), dict.fromkeys("abc", (0, 0))
    cases = [(zero, zero, limits, True)]
    for name, value in [("a", 1), ("a", -16), ("b", 1), ("b", 15), ("c", -1)]:
        other = {**zero, name: value}
        cases += [
            (zero, other, limits, False),
            (other, zero, limits, False),
            (other, other, limits, True),
        ]
    simulate(parameters_of("band"), probe_side, cases)


@pytest.mark.parametrize("probe_side", [0, 1])
def test_open_bounds_are_always_met(probe_side):
    extremes = [{"a": a, "b": b, "c": c} for a in (-16, 15) for b in (0, 15) for c in (-1, 0)]
    cases = [(probe, stored, None, True) for probe in extremes for stored in extremes]
    simulate(parameters_of("band"), probe_side, cases)


@pytest.mark.parametrize("fields", FIELD_SETS)
@settings(max_examples=15)
@given(data=st.data())
def test_equality_compares_all_fields(fields, data):
    parameters = parameters_of("equality", fields)
    key = keys(parameters.keys)
    cases = []
    for probe, stored in data.draw(st.lists(st.tuples(key, key), max_size=20)):
        name = data.draw(st.sampled_from(sorted(probe)))
        near_miss = {**probe, name: stored[name]}
        cases += [
            (probe, stored, None, probe == stored),
            (probe, near_miss, None, probe == near_miss),
            (probe, probe, None, True),
        ]
    simulate(parameters, 0, cases)


@pytest.mark.parametrize("probe_side", [0, 1])
@settings(max_examples=15)
@given(pairs=st.lists(st.tuples(keys(UNLIKE), keys(UNLIKE)), max_size=20))
def test_a_custom_predicate_is_the_same_function_in_hardware_and_in_numpy(probe_side, pairs):
    cases = []
    for probe, stored in pairs:
        r, s = (stored, probe) if probe_side else (probe, stored)
        r, s = ({n: np.int64(v) for n, v in key.items()} for key in (r, s))
        expected = near(SimpleNamespace(**r), SimpleNamespace(**s))  # the very same function
        cases.append((probe, stored, None, bool(expected)))
    simulate(parameters_of("custom"), probe_side, cases)


@pytest.mark.parametrize("name", ["nowhere:near", "hdl:nothing", "near"])
def test_a_predicate_that_is_not_there_is_named(name):
    with pytest.raises(ValueError, match=f"Predicate '{name}' is not an importable"):
        Comparator(JoinParameters.of(comparator="custom", predicate=name), probe_side=0)
