# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.comparator import Comparator, load_predicate
from hdl.parameters import JoinParameters
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
    return JoinParameters(keys=FIELD_SETS[fields], comparator=comparator, predicate=predicate)


def simulate(parameters, probe_side, body):
    """Run ``body(compare)`` on a comparator; ``compare(probe, stored, bounds)`` takes no time."""
    dut = Comparator(parameters, probe_side=probe_side)
    assert dut.latency == 0
    simulator = Simulator(dut)

    async def bench(ctx):
        def compare(probe, stored, limits=None):
            for name, value in criterion_of(parameters, probe_side, probe, limits).items():
                ctx.set(getattr(dut.criterion, name), value)
            ctx.set(dut.key, stored_key(parameters, stored))
            return bool(ctx.get(dut.match))

        body(compare)

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("fields", FIELD_SETS)
@pytest.mark.parametrize("probe_side", [0, 1])
@settings(max_examples=25)
@given(data=st.data())
def test_band_compares_differences_inclusively(fields, probe_side, data):
    parameters = parameters_of("band", fields)
    key = keys(parameters.keys)
    cases = data.draw(st.lists(st.tuples(bounds(parameters.keys), key, key), max_size=20))

    def body(compare):
        for limits, probe, stored in cases:
            r, s = (stored, probe) if probe_side else (probe, stored)
            expected = all(low <= r[n] - s[n] <= high for n, (low, high) in limits.items())
            assert compare(probe, stored, limits) == expected
            exact = {n: (r[n] - s[n],) * 2 for n in limits}  # this pair and no other
            assert compare(probe, stored, exact)
            assert compare(probe, probe, exact) == (probe == stored)

    simulate(parameters, probe_side, body)


@pytest.mark.parametrize("probe_side", [0, 1])
def test_each_field_decides_alone(probe_side):
    """No borrow of a field reaches its neighbours."""
    zero = dict.fromkeys("abc", 0)
    cases = [{**zero, name: value} for name in "ab" for value in (1, 7)] + [{**zero, "c": -1}]

    def body(compare):
        for other in cases:
            limits = dict.fromkeys("abc", (0, 0))
            assert compare(zero, zero, limits)
            assert not compare(zero, other, limits)
            assert not compare(other, zero, limits)
            assert compare(other, other, limits)

    simulate(parameters_of("band"), probe_side, body)


@pytest.mark.parametrize("probe_side", [0, 1])
def test_open_bounds_are_always_met(probe_side):
    extremes = [{"a": a, "b": b, "c": c} for a in (-16, 15) for b in (0, 15) for c in (-1, 0)]

    def body(compare):
        assert all(compare(probe, stored) for probe in extremes for stored in extremes)

    simulate(parameters_of("band"), probe_side, body)


@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(keys(UNLIKE), keys(UNLIKE)), max_size=20))
def test_equality_compares_all_fields(pairs):
    def body(compare):
        for probe, stored in pairs:
            assert compare(probe, stored) == (probe == stored)
            assert compare(probe, probe)

    simulate(parameters_of("equality"), 0, body)


@pytest.mark.parametrize("probe_side", [0, 1])
@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(keys(UNLIKE), keys(UNLIKE)), max_size=20))
def test_a_custom_predicate_is_the_same_function_in_hardware_and_in_numpy(probe_side, pairs):
    def body(compare):
        for probe, stored in pairs:
            r, s = (stored, probe) if probe_side else (probe, stored)
            r, s = ({n: np.int64(v) for n, v in key.items()} for key in (r, s))
            expected = near(SimpleNamespace(**r), SimpleNamespace(**s))  # the very same function
            assert compare(probe, stored) == bool(expected)

    simulate(parameters_of("custom"), probe_side, body)


@pytest.mark.parametrize("name", ["nowhere:near", "hdl:nothing", "near"])
def test_a_predicate_that_is_not_there_is_named(name):
    with pytest.raises(ValueError, match=f"Predicate '{name}' is not an importable"):
        load_predicate(name)
