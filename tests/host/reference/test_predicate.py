# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import EQUAL, OPEN, Bounds, DifferenceBand, Side
from host.errors import UsageError
from host.reference.arrivals import places
from host.reference.predicate import evaluate, load_predicate

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


EDGES = [0, 1, 2, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 2, (1 << 64) - 1]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("side", Side)
def test_partners_are_exact_at_the_ends_of_64_bits(dtype, side):
    least = int(np.iinfo(dtype).min)
    mine = np.array([least + edge for edge in EDGES], dtype)
    other = np.array([least + edge for edge in EDGES], dtype)
    far = [1 << 64, (1 << 64) + 1]
    ends = [sign * end for end in [*EDGES, *far] for sign in (1, -1)]
    for low, high in [*((None, end) for end in ends), *((end, None) for end in ends)] + [
        (end, end + width) for end in ends for width in (0, 1, 1 << 63)
    ]:
        bounds = Bounds(low, high)
        first, last, none = bounds.partners(mine, side)
        inside = (places(other)[:, None] >= first) & (places(other)[:, None] <= last) & ~none
        for at, of_other in enumerate(other.tolist()):
            differences = [(m - of_other) * (1 if side is Side.R else -1) for m in mine.tolist()]
            want = [(low is None or low <= d) and (high is None or d <= high) for d in differences]
            assert inside[at].tolist() == want
            assert [bounds.hold(d) for d in differences] == want


def test_a_field_of_one_tuple_may_be_a_number_and_that_of_the_others_an_array():
    band = DifferenceBand({"x": Bounds(0, 1)})
    array = np.array([1, 2, 3, 4])
    assert band(SimpleNamespace(x=3), SimpleNamespace(x=array)).tolist() == [0, 1, 1, 0]
    assert band(SimpleNamespace(x=array), SimpleNamespace(x=3)).tolist() == [0, 0, 1, 1]
    one = band(SimpleNamespace(x=np.int64(3)), SimpleNamespace(x=np.int64(3)))
    assert (np.shape(one), bool(one)) == ((), True)
    assert evaluate(band, {"x": np.array(3)}, {"x": np.array(3)}).tolist() is True


def test_a_band_without_bounds_holds_for_as_many_pairs_as_there_are():
    band = DifferenceBand({"x": OPEN})
    column, row = np.zeros((3, 1), np.int64), np.zeros(2, np.int64)
    grid = band(SimpleNamespace(x=column), SimpleNamespace(x=row))
    assert (grid.tolist(), grid.dtype) == ([[True, True]] * 3, bool)
    assert band(SimpleNamespace(x=1), SimpleNamespace(x=2)) is True


def test_a_band_keeps_the_bounds_that_it_was_made_of():
    bounds = {"x": EQUAL}
    band = DifferenceBand(bounds)
    bounds["y"] = EQUAL
    assert band.closed_fields == ("x",)
    assert hash(band) != hash(DifferenceBand(bounds))
    with pytest.raises(TypeError, match=r"^Field 'x' needs Bounds, not \(0, 1\)$"):
        DifferenceBand({"x": (0, 1)})


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], np.int64),
        ([1 - (1 << 30), (1 << 30) - 1], np.int64),
        ([-(1 << 30), 0], object),
        ([0, 1 << 30], object),
    ],
)
def test_a_function_gets_numbers_that_its_arithmetic_cannot_overflow(values, kind):
    seen = []

    def predicate(r, s):
        seen.append((r.x.dtype, s.x.dtype))
        return r.x + s.x  # true unless it is zero

    small = np.zeros(len(values), np.int32)
    found = evaluate(predicate, {"x": np.array(values, np.int64)}, {"x": small})
    assert seen == [(kind, np.int64)]
    assert (found.tolist(), found.dtype) == ([bool(value) for value in values], bool)


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
    with pytest.raises(UsageError, match="'w'"):
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
    assert load_predicate("tests.host.small_bundles:near").__name__ == "near"


@pytest.mark.parametrize("name", ["", "near", ":near", "tests.host.small_bundles:"])
def test_a_custom_predicate_is_named_by_its_module_too(name):
    with pytest.raises(UsageError) as raised:
        load_predicate(name)
    assert str(raised.value) == f"A custom predicate is 'module:function', not {name!r}."


@pytest.mark.parametrize(
    "name", ["", "near", "tests.host.small_bundles:", "tests.host.small_bundles:far"]
)
def test_a_custom_predicate_that_is_not_there_says_so(name):
    with pytest.raises(UsageError, match=repr(name)):
        load_predicate(name)


def test_a_custom_predicate_is_a_function():
    with pytest.raises(UsageError, match="not a function"):
        load_predicate("tests.host.small_bundles:BUNDLES")
