# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from amaranth import *
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.comparator import Comparator, ProbePreparation, load_predicate
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.input_words import control_word

FIELDS = (
    KeyField(name="a", bits=5),
    KeyField(name="b", bits=4, signed=False),
    KeyField(name="c", bits=1),
)


def near(r, s):
    """A custom predicate: Manhattan distance."""
    distance_a = (r.a - s.a) * (r.a - s.a)
    return (distance_a <= 4) & (r.b != s.b) & ~(r.c > s.c)


def parameters_of(comparator):
    """Parameters with three unlike fields."""
    predicate = f"{__name__}:near" if comparator == "custom" else None
    return JoinParameters(keys=FIELDS, comparator=comparator, predicate=predicate)


def fields():
    """Strategy for a key."""
    return st.fixed_dictionaries(
        {
            f.name: st.integers(
                -(1 << f.bits - 1) if f.signed else 0,
                (1 << f.bits - f.signed) - 1,
            )
            for f in FIELDS
        }
    )


def bounds():
    """Strategy for the bounds of every field, open ones included."""
    return st.fixed_dictionaries(
        {
            f.name: st.tuples(
                *[st.integers(-(1 << f.bits), (1 << f.bits) - 1)] * 2,
            )
            for f in FIELDS
        }
    )


def simulate(parameters, probe_side, body):
    """Run ``body(ctx, compare, configure)`` on a preparation and a comparator in a row."""
    m = Module()
    m.domains.sync = ClockDomain()  # without bounds there is no register
    m.submodules.preparation = preparation = ProbePreparation(parameters, probe_side=probe_side)
    m.submodules.storing = storing = ProbePreparation(parameters, probe_side=1 - probe_side)
    m.submodules.comparator = comparator = Comparator(parameters, probe_side=probe_side)
    m.d.comb += [
        comparator.criterion.eq(preparation.criterion),
        comparator.key.eq(storing.stored),
    ]
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def configure(ctx, op, index, value):
        ctx.set(preparation.control, control_word(op, index, value)["body"]["control"])
        ctx.set(preparation.configure, 1)
        await ctx.tick()
        ctx.set(preparation.configure, 0)

    def compare(ctx, probe, stored):
        ctx.set(preparation.key, probe)
        ctx.set(storing.key, stored)
        return bool(ctx.get(comparator.match))

    async def bench(ctx):
        await body(ctx, compare, configure)

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("probe_side", [0, 1])
@settings(max_examples=40)
@given(limits=bounds(), pairs=st.lists(st.tuples(fields(), fields()), max_size=20))
def test_band_compares_differences_inclusively(probe_side, limits, pairs):
    async def body(ctx, compare, configure):
        for index, f in enumerate(FIELDS):
            await configure(ctx, "BOUND_LOW", index, limits[f.name][0])
            await configure(ctx, "BOUND_HIGH", index, limits[f.name][1])
        for probe, stored in pairs:
            r, s = (stored, probe) if probe_side else (probe, stored)
            expected = all(low <= r[n] - s[n] <= high for n, (low, high) in limits.items())
            assert compare(ctx, probe, stored) == expected

    simulate(parameters_of("band"), probe_side, body)


@pytest.mark.parametrize("probe_side", [0, 1])
def test_bounds_are_open_after_reset(probe_side):
    extremes = [{"a": a, "b": b, "c": c} for a in (-16, 15) for b in (0, 15) for c in (-1, 0)]

    async def body(ctx, compare, configure):
        assert all(compare(ctx, probe, stored) for probe in extremes for stored in extremes)

    simulate(parameters_of("band"), probe_side, body)


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(fields(), fields()), max_size=20))
def test_equality_compares_all_fields(pairs):
    async def body(ctx, compare, configure):
        for probe, stored in pairs:
            assert compare(ctx, probe, stored) == (probe == stored)
            assert compare(ctx, probe, probe)

    simulate(parameters_of("equality"), 0, body)


@pytest.mark.parametrize("probe_side", [0, 1])
@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(fields(), fields()), max_size=20))
def test_a_custom_predicate_is_the_same_function_in_hardware_and_in_numpy(probe_side, pairs):
    async def body(ctx, compare, configure):
        for probe, stored in pairs:
            r, s = (stored, probe) if probe_side else (probe, stored)
            r, s = ({n: np.int64(v) for n, v in key.items()} for key in (r, s))
            expected = near(SimpleNamespace(**r), SimpleNamespace(**s))  # the very same function
            assert compare(ctx, probe, stored) == bool(expected)

    simulate(parameters_of("custom"), probe_side, body)


@pytest.mark.parametrize("name", ["nowhere:near", "hdl:nothing", "near"])
def test_a_predicate_that_is_not_there_is_named(name):
    with pytest.raises(ValueError, match=f"Predicate '{name}' is not an importable"):
        load_predicate(name)
