# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sim.rewriter.netlist import Bits, Run

RUNS = st.lists(
    st.one_of(
        st.builds(Run, st.sampled_from(["a", "b"]), st.integers(0, 9), st.integers(1, 6)),
        st.integers(1, 6).flatmap(
            lambda width: st.builds(Run, st.none(), st.integers(0, 2**width - 1), st.just(width))
        ),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


def single(bits):
    """Bits one by one: name and number, or a constant."""
    return [
        (run.name, run.low + place) if run.name else run.low >> place & 1
        for run in bits.runs
        for place in range(run.width)
    ]


@given(RUNS)
def test_runs_that_belong_together_are_joined(runs):
    bits = Bits.of(runs)
    assert single(bits) == single(Bits(tuple(runs)))
    assert all(one.followed_by(two) is None for one, two in pairwise(bits.runs))
    assert bits.width == len(single(bits))


@given(RUNS, st.data())
def test_a_part_is_the_bits_from_the_lowest_one_up(runs, data):
    bits = Bits.of(runs)
    low = data.draw(st.integers(0, bits.width - 1))
    width = data.draw(st.integers(1, bits.width - low))
    assert single(bits.part(low, width)) == single(bits)[low : low + width]


@given(RUNS)
def test_a_signal_is_replaced_by_the_bits_that_it_is(runs):
    source = Bits.of([Run("c", 4, 7), Run(None, 0b101, 3), Run("b", 0, 8)])
    found = Bits.of(runs).substitute({"a": source})
    expected = [
        single(source)[bit[1]] if isinstance(bit, tuple) and bit[0] == "a" else bit
        for bit in single(Bits.of(runs))
    ]
    assert single(found) == expected
    assert "a" not in found.names


def test_only_constants_have_a_value():
    assert Bits.of([Run(None, 1, 1), Run(None, 2, 2)]).value == 5
    assert Bits.of([Run(None, 1, 1), Run("a", 0, 2)]).value is None
    assert Bits.whole("a", 2).value is None
