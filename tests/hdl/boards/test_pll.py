# SPDX-License-Identifier: Apache-2.0
from hypothesis import assume, given
from hypothesis import strategies as st
import pytest

from hdl.boards.top import pll_divisors


@given(st.sampled_from([12, 25, 27, 48, 100]), st.integers(1, 12), st.integers(1, 8))
def test_divisors_give_the_clock_within_the_ranges_of_the_pll(source_mhz, feedback, source):
    mhz = source_mhz * feedback / source
    assume(mhz == int(mhz) and 4 <= mhz <= 400 and source_mhz / source >= 10)
    source, feedback, output = pll_divisors(source_mhz, mhz)
    assert source_mhz * feedback == mhz * source
    assert 400 <= mhz * output <= 800
    assert source_mhz / source >= 10
    assert max(source, feedback, output) <= 128


def test_the_clock_of_the_ecpix5_is_half_that_of_its_oscillator():
    assert pll_divisors(100, 50) == (2, 1, 12)


@pytest.mark.parametrize(("source_mhz", "mhz"), [(100, 3), (100, 99), (100, 900), (25, 24)])
def test_a_clock_that_no_divisors_give_is_refused(source_mhz, mhz):
    with pytest.raises(ValueError, match="choose another clock, whose ratio has small numbers"):
        pll_divisors(source_mhz, mhz)
