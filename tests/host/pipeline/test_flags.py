# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.pipeline import Effect, Flag, Traits

STREAM = Flag.SIZED | Flag.ORDERED | Flag.SORTED | Flag.DISTINCT
FLAGS = st.integers(0, int(STREAM)).map(Flag)


@st.composite
def effects(draw):
    inject = draw(FLAGS)
    return Effect(inject, draw(FLAGS) & ~inject)


@given(FLAGS, effects())
def test_each_flag_is_injected_cleared_or_preserved(flags, effect):
    after = effect(flags)
    for flag in (Flag.SIZED, Flag.ORDERED, Flag.SORTED, Flag.DISTINCT):
        expected = flag in effect.inject or (flag in flags and flag not in effect.clear)
        assert (flag in after) == expected


def test_an_effect_cannot_do_both():
    with pytest.raises(ValueError, match="injected and cleared: SIZED"):
        Effect(Flag.SIZED, Flag.SIZED)


def test_short_circuit_belongs_to_one_operation():
    limit = Effect(inject=Flag.SHORT_CIRCUIT)
    assert Flag.SHORT_CIRCUIT in limit(Flag.ORDERED)
    assert Flag.SHORT_CIRCUIT not in Effect()(limit(Flag.ORDERED))


def test_traits_read_well():
    traits = Traits(Flag.SIZED | Flag.SORTED | Flag.ORDERED, 7, ("t", "x"))
    assert str(traits) == "SIZED(7) ORDERED SORTED(t, x)"
    assert traits.is_sorted_by(("t",))
    assert not traits.is_sorted_by(("x",))
    assert str(Traits()) == "none"
