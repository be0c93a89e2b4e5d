# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import EQUAL, OPEN, Bounds, DifferenceBand, Side
from host.errors import PredicateError
from host.exact import places
from host.predicate import evaluate, load_predicate

INT64 = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from(
    [-(1 << 63), 1 - (1 << 63), -1, 0, 1, (1 << 63) - 1]
)
UINT64 = st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1])
BOUND = st.none() | st.integers(-(1 << 65), 1 << 65) | st.integers(-3, 3)
BOUND |= st.sampled_from([-(1 << 64), 1 - (1 << 64), (1 << 64) - 1, 1 << 64])


def pairs_of_one_type():
    """Strategy for a dtype and some pairs of values of it."""
    signed = st.tuples(st.just(np.int64), st.lists(st.tuples(INT64, INT64), min_size=1))
    unsigned = st.tuples(st.just(np.uint64), st.lists(st.tuples(UINT64, UINT64), min_size=1))
    return signed | unsigned


@given(pairs_of_one_type(), BOUND, BOUND)
def test_a_band_is_exact_for_all_64_bit_values(case, low, high):
    dtype, pairs = case
    r, s = np.array(pairs, dtype).T.copy()
    band = DifferenceBand({"x": Bounds(low, high)})
    got = evaluate(band, {"x": r}, {"x": s})
    want = [
        (low is None or low <= int(a) - int(b)) and (high is None or int(a) - int(b) <= high)
        for a, b in zip(r, s, strict=True)
    ]
    assert got.tolist() == want


@given(pairs_of_one_type(), BOUND, BOUND, st.sampled_from(Side))
def test_partners_are_the_values_that_match(case, low, high, side):
    dtype, pairs = case
    mine, other = np.array(pairs, dtype).T.copy()
    first, last, none = Bounds(low, high).partners(mine, side)
    inside = (places(other) >= first) & (places(other) <= last) & ~none
    r, s = (mine, other) if side is Side.R else (other, mine)
    band = DifferenceBand({"x": Bounds(low, high)})
    assert inside.tolist() == evaluate(band, {"x": r}, {"x": s}).tolist()


def test_all_fields_must_match_and_absent_ones_are_open():
    keys = {"x": np.array([0, 0, 5]), "y": np.array([0, 9, 0]), "z": np.array([7, 7, 7])}
    zeros = {name: np.zeros(3, np.int64) for name in keys}
    band = DifferenceBand({"x": EQUAL, "y": Bounds(-1, 1), "z": OPEN})
    assert band.closed_fields == ("x", "y")
    assert evaluate(band, keys, zeros).tolist() == [True, False, False]
    assert evaluate(DifferenceBand({}), keys, zeros).tolist() == [True] * 3


def test_a_band_takes_python_integers_and_broadcasts():
    band = DifferenceBand({"x": Bounds(0, None)})
    assert band(SimpleNamespace(x=1 << 80), SimpleNamespace(x=-(1 << 80)))
    assert not band(SimpleNamespace(x=1), SimpleNamespace(x=2))
    column, row = np.arange(3).reshape(3, 1), np.arange(4)
    grid = band(SimpleNamespace(x=column), SimpleNamespace(x=row))
    assert grid.tolist() == (column >= row).tolist()


def test_bounds_that_contradict_never_hold():
    zeros = {"x": np.zeros(2, np.int64)}
    assert not evaluate(DifferenceBand({"x": Bounds(1, -1)}), zeros, zeros).any()


def test_equal_bands_are_equal():
    assert DifferenceBand({"x": EQUAL}) == DifferenceBand({"x": Bounds(0, 0)})
    assert len({DifferenceBand({"x": EQUAL}), DifferenceBand({"x": Bounds(0, 0)})}) == 1
    assert OPEN.is_open
    assert not EQUAL.is_open


@pytest.mark.parametrize("bound", [1.5, "3"])
def test_bounds_are_integers(bound):
    with pytest.raises(TypeError, match="integer or None"):
        Bounds(bound, None)


def test_a_band_over_an_unknown_field_says_so():
    zeros = {"x": np.zeros(2, np.int64)}
    with pytest.raises(PredicateError, match="'w'"):
        evaluate(DifferenceBand({"w": EQUAL}), zeros, zeros)


def product(r, s):
    """A custom predicate whose arithmetic needs more than 64 bits."""
    return ((r.x - s.x) * (r.x - s.x) <= 4) & ~(r.y == s.y)


@given(pairs_of_one_type())
def test_a_custom_predicate_does_not_wrap(case):
    dtype, pairs = case
    r, s = np.array(pairs, dtype).T.copy()
    y = np.zeros(len(r), np.int64), np.ones(len(r), np.int64)
    got = evaluate(product, {"x": r, "y": y[0]}, {"x": s, "y": y[1]})
    assert got.tolist() == [abs(int(a) - int(b)) <= 2 for a, b in zip(r, s, strict=True)]


def test_a_custom_predicate_is_loaded_by_name():
    assert load_predicate("tests.host.bundles:near").__name__ == "near"


@pytest.mark.parametrize("name", ["", "near", "tests.host.bundles:", "tests.host.bundles:far"])
def test_a_custom_predicate_that_is_not_there_says_so(name):
    with pytest.raises(PredicateError, match=repr(name)):
        load_predicate(name)


def test_a_custom_predicate_is_a_function():
    with pytest.raises(PredicateError, match="not a function"):
        load_predicate("tests.host.bundles:BUNDLES")
