# SPDX-License-Identifier: Apache-2.0
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, Manifest, TimeWindow, UsageError
from host.columns.encoding import encode
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import AcceleratorLimitError, OrderError, UnsupportedTypeError
from host.query.quantities import Duration, parse_duration
from host.query.queries import Query, Term
from tests.host.tables import manifest_of
from tests.windows import over

WIDE = Manifest.load(SOFTWARE_MANIFEST)
WINDOW = CountWindow(10)
INTEGERS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
]  # fmt: skip


def limits(dtype):
    info = np.iinfo(dtype.to_pandas_dtype())
    return int(info.min), int(info.max)


def encoded(left, right, term, manifest=WIDE, window=WINDOW):
    """Encode two columns called k, in tables whose order is that of the rows."""
    tables = [
        pa.table({"k": values, "t": pa.array(range(len(values)), pa.int64())})
        for values in (left, right)
    ]
    return encode(*tables, Query(band=term, time="t", **over(window)), manifest)


def matches(join):
    """All pairs of rows that the accelerator's own rule lets through."""
    pairs = set()
    for i, j in product(range(len(join.left)), range(len(join.right))):
        if join.left.valid is not None and not join.left.valid[i]:
            continue
        if join.right.valid is not None and not join.right.valid[j]:
            continue
        if all(
            bounds.hold(int(join.left.keys[name][i]) - int(join.right.keys[name][j]))
            for name, bounds in join.plan.bounds.items()
        ):
            pairs.add((int(join.left.row[i]), int(join.right.row[j])))
    return pairs


def wanted(left, right, holds):
    return {
        (i, j)
        for (i, r), (j, s) in product(enumerate(left), enumerate(right))
        if r is not None and s is not None and holds(r, s)
    }


@st.composite
def integer_columns(draw):
    columns = []
    for _ in range(2):
        dtype = draw(st.sampled_from(INTEGERS))
        low, high = limits(dtype)
        edge = st.sampled_from([low, low + 1, high, high - 1, 0])
        near = st.integers(max(low, -20), min(high, 20))
        value = st.none() | edge | near | st.integers(low, high)
        columns.append(pa.array(draw(st.lists(value, max_size=8)), dtype))
    return columns


bound = st.none() | st.integers(-30, 30) | st.integers(-(1 << 66), 1 << 66)


@given(integer_columns(), bound, bound)
def test_any_integers_match_as_whole_numbers_do_or_are_looked_at_again(columns, low, high):
    left, right = columns
    term = Term("k", "k", low, high)

    def holds(r, s):
        return (low is None or low <= r - s) and (high is None or r - s <= high)

    join = encoded(left, right, [term])
    expected = wanted(left.to_pylist(), right.to_pylist(), holds)
    assert matches(join) >= expected
    assert matches(join) == expected or join.plan.rough_terms


@given(integer_columns())
def test_any_integers_can_be_compared_for_equality(columns):
    left, right = columns
    join = encoded(left, right, [Term("k", "k")])
    assert matches(join) == wanted(left.to_pylist(), right.to_pylist(), lambda r, s: r == s)


@given(
    st.lists(st.integers(-100, 100), min_size=1, max_size=6),
    st.lists(st.integers(-100, 100), min_size=1, max_size=6),
    st.integers(-500, 500),
    st.integers(0, 300),
    st.sampled_from(["x8", "u8"]),
    st.integers(1, 7),
)
def test_values_too_wide_for_a_field_are_divided_exactly(
    tmp_path_factory, left, right, low, width, key, unit
):
    manifest = manifest_of(tmp_path_factory.mktemp("bundle"), keys=[key])
    sides = [[value * 1000 * unit + 7 for value in values] for values in (left, right)]
    term = Term("k", "k", low, low + width)
    join = encoded(*(pa.array(side) for side in sides), [term], manifest)
    field = manifest.keys[0]
    for side in (join.left, join.right):
        assert all(field.low <= int(value) <= field.high for value in side.keys["f0"])
    assert matches(join) == wanted(*sides, lambda r, s: low <= r - s <= low + width)


def test_values_that_do_not_fit_let_no_pair_of_a_band_be_lost(tmp_path):
    manifest = manifest_of(tmp_path, keys=["x8"])
    left, right = [5, 6, 1 << 40, -7], [500, 7, (1 << 40) + 1, -(1 << 63)]
    join = encoded(pa.array(left), pa.array(right), [Term("k", "k", -1, 1)], manifest)
    assert [str(term.term) for term in join.plan.rough_terms] == ["-1 <= left.k - right.k <= 1"]
    assert wanted(left, right, lambda r, s: -1 <= r - s <= 1) <= matches(join)


def test_too_many_distinct_values_for_codes_are_an_error(tmp_path):
    manifest = manifest_of(tmp_path, keys=["u2"])
    strings = pa.array(list("abcde"))
    with pytest.raises(AcceleratorLimitError, match="more than 4 distinct values"):
        encoded(strings, strings, [Term("k", "k")], manifest)


@pytest.mark.parametrize("large", [pa.string(), pa.large_string()])
def test_strings_share_their_codes_whatever_their_encoding(large, tmp_path):
    left = pa.chunked_array([pa.array(["b", "", None], large), pa.array(["ü", "b"], large)])
    right = pa.array(["b", "x", None, "ü", ""]).dictionary_encode()
    join = encoded(left, right, [Term("k", "k")], manifest_of(tmp_path, keys=["u3"]))
    assert matches(join) == wanted(left.to_pylist(), right.to_pylist(), lambda r, s: r == s)


def test_booleans_dictionary_encoded_integers_and_columns_of_nulls(tmp_path):
    manifest = manifest_of(tmp_path, keys=["u1"])
    flags = pa.array([True, False, None])
    join = encoded(flags, flags, [Term("k", "k")], manifest)
    assert matches(join) == {(0, 0), (1, 1)}
    join = encoded(flags, flags, [Term("k", "k", 1, 1)], manifest)
    assert matches(join) == {(0, 1)}
    numbers = pa.array([7, 8, 7]).dictionary_encode()
    assert matches(encoded(numbers, numbers, [Term("k", "k", -1, -1)])) == {(0, 1), (2, 1)}
    nothing = pa.array([None, None], pa.int64())
    assert matches(encoded(nothing, nothing, [Term("k", "k", None, None)])) == set()


def test_dates_and_times_of_different_units_meet_exactly():
    days = pa.array([date(2024, 2, 28), date(1969, 12, 31), None])
    for other in (pa.date32(), pa.date64()):
        right = pa.array([date(2024, 3, 1), date(1970, 1, 1)], other)
        join = encoded(days, right, [Term("k", "k", timedelta(days=-2), timedelta(0))])
        assert matches(join) == {(0, 0), (1, 1)}


MOMENTS = st.integers(-(10**15), 10**15)
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@given(
    st.sampled_from(list(UNITS)),
    st.sampled_from(list(UNITS)),
    st.lists(st.integers(-50, 50), max_size=6),
    st.lists(st.integers(-50, 50), max_size=6),
    st.integers(-(10**10), 10**10),
    st.integers(0, 10**11),
    st.sampled_from([(None, None), ("UTC", "Europe/Berlin")]),
)
def test_timestamps_of_any_two_units_match_as_instants(mine, theirs, left, right, low, width, zone):
    columns = [
        pa.array(values, pa.int64()).cast(pa.timestamp(unit, tz))
        for values, unit, tz in zip((left, right), (mine, theirs), zone, strict=True)
    ]
    instants = [[value * UNITS[unit] for value in values]
                for values, unit in ((left, mine), (right, theirs))]  # fmt: skip
    join = encoded(*columns, [Term("k", "k", Duration(low), Duration(low + width))])
    assert matches(join) == wanted(*instants, lambda r, s: low <= r - s <= low + width)


def test_timestamps_may_be_too_far_apart_for_the_finer_unit():
    seconds = pa.array([-(1 << 62), 1 << 62, 2, None]).cast(pa.timestamp("s"))
    fine = pa.array([0, 1, 2 * 10**9, None]).cast(pa.timestamp("ns"))
    join = encoded(seconds, fine, [Term("k", "k", None, parse_duration("1s"))])
    assert matches(join) >= {(0, 0), (0, 1), (0, 2), (2, 2)}
    assert join.plan.rough_terms
    assert matches(encoded(seconds, fine, [Term("k", "k")])) == {(2, 2)}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pa.array([[1]]), "list"),
        (pa.array([{"x": 1}]), "struct"),
    ],
)
def test_an_unsupported_type_names_column_type_and_what_would_do(values, name):
    with pytest.raises(UnsupportedTypeError, match=f"'left.k' has type {name}.*int8 to int64"):
        encoded(values, pa.array([1]), [Term("k", "k")])


@pytest.mark.parametrize(
    ("left", "right", "term", "message"),
    [
        (pa.array([1]), pa.array(["a"]), Term("k", "k"), "cannot be compared"),
        (pa.array([True]), pa.array([1]), Term("k", "k"), "cannot be compared"),
        (pa.array([datetime(2024, 1, 1)]),
         pa.array([datetime(2024, 1, 1, tzinfo=UTC)]),
         Term("k", "k"), "with zone"),
        (pa.array(["a"]), pa.array(["a"]), Term("k", "k", 0, 1), "equality only"),
        (pa.array(["a"]), pa.array(["a"]), Term("k", "k", None, None), "equality only"),
        (pa.array([date(2024, 1, 1)]), pa.array([date(2024, 1, 1)]), Term("k", "k", 0, 1),
         "write a duration"),
        (pa.array([1]), pa.array([1]), Term("k", "k", 0, Duration(1)), "write a plain number"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_an_error(left, right, term, message):
    with pytest.raises(UsageError, match=message):
        encoded(left, right, [term])


def test_fractions_are_rounded_to_the_inside():
    numbers = pa.array([0, 1, 2, 3, 4])
    join = encoded(numbers, pa.array([0]), [Term("k", "k", Fraction(1, 2), Fraction(7, 2))])
    assert matches(join) == {(1, 0), (2, 0), (3, 0)}


def test_equalities_share_a_field_when_fields_are_few(tmp_path):
    manifest = manifest_of(tmp_path, keys=["x8", "u3"])
    left = pa.table(
        {"t": [1, 2], "a": ["p", "q"], "b": [1, 1 << 40], "c": [True, None], "x": [1, 2]}
    )
    right = pa.table(
        {"t": [1, 2], "a": ["q", "p"], "b": [1 << 40, 1], "c": [True] * 2, "x": [3, 3]}
    )
    terms = [Term("a", "a"), Term("x", "x", -5, 5), Term("b", "b"), Term("c", "c")]
    query = Query(band=terms, time="t", **over(WINDOW))
    join = encode(left, right, query, manifest)
    assert list(join.plan.bounds) == ["f0", "f1"]
    assert matches(join) == {(0, 1)}
    bands = Query(band=[Term("x", "x", -1, 1)] * 3, time="t", **over(WINDOW))
    with pytest.raises(UsageError, match="needs 3 key fields, but the accelerator has 2"):
        encode(left, right, bands, manifest)


def test_comparators_that_do_not_do_are_an_error(tmp_path):
    numbers = pa.array([1])
    equality = manifest_of(tmp_path / "equality", comparator="equality")
    with pytest.raises(UsageError, match="equality only"):
        encoded(numbers, numbers, [Term("k", "k", 0, 1)], equality)
    assert matches(encoded(numbers, numbers, [Term("k", "k")], equality)) == {(0, 0)}
    custom = manifest_of(tmp_path / "custom", comparator="custom", predicate="a:b")
    with pytest.raises(UsageError, match="a predicate of its own"):
        encoded(numbers, numbers, [Term("k", "k")], custom)


def times(left, right, window, manifest=WIDE, **options):
    tables = [pa.table({"t": column}) for column in (left, right)]
    return encode(*tables, Query(time="t", **over(window), **options), manifest)


def test_rows_are_sorted_by_time_and_ties_stay(tmp_path):
    join = times(pa.array([5, 3, 5, 3]), pa.array([4]), TimeWindow(1))
    assert join.left.row.tolist() == [1, 3, 0, 2]
    assert join.left.timestamp.tolist() == [0, 0, 2, 2]
    assert join.right.timestamp.tolist() == [1]


def test_a_lifespan_is_scaled_with_the_times(tmp_path):
    manifest = manifest_of(tmp_path, timestamp_bits=8)
    join = times(pa.array([1000, 3000]), pa.array([250000]), TimeWindow(2999), manifest)
    assert join.left.timestamp.tolist() == [0, 2]
    assert join.plan.window == TimeWindow(2)
    seconds = pa.array([0, 60]).cast(pa.timestamp("s"))
    join = times(seconds, seconds, parse_duration("90s"), manifest)
    assert join.plan.window == TimeWindow(90)
    assert times(seconds, seconds, parse_duration("9999d"), manifest).plan.window == TimeWindow(255)


def test_times_that_do_not_fit_are_an_error(tmp_path):
    manifest = manifest_of(tmp_path / "small", timestamp_bits=8)
    with pytest.raises(AcceleratorLimitError, match="--timestamp-bits 9"):
        times(pa.array([0, 1]), pa.array([256]), TimeWindow(1), manifest)
    with pytest.raises(AcceleratorLimitError, match="too far apart"):
        times(pa.array([-5]), pa.array([(1 << 64) - 1], pa.uint64()), CountWindow(1))
    untimed = manifest_of(tmp_path / "untimed")
    with pytest.raises(AcceleratorLimitError, match="no timestamps.*a window of rows"):
        times(pa.array([0]), pa.array([0]), TimeWindow(1), untimed)
    assert len(times(pa.array([0]), pa.array([1 << 60]), CountWindow(1), untimed).left) == 1


def test_an_order_column_must_be_there_whole_and_in_order():
    good = pa.array([1, 2])
    with pytest.raises(OrderError, match="'right.t' is null in row 1"):
        times(good, pa.array([1, None]), WINDOW)
    with pytest.raises(OrderError, match="'left.t': row 2 .* has 4 after 5"):
        times(pa.array([1, 5, 4]), good, WINDOW, sorted=True)
    with pytest.raises(UnsupportedTypeError, match="'left.t'"):
        times(pa.array(["a"]), pa.array(["a"]), WINDOW)
    with pytest.raises(UsageError, match="cannot be compared"):
        times(good, pa.array([datetime(2024, 1, 1)]), WINDOW)
    with pytest.raises(UsageError, match="write a duration"):
        times(*[pa.array([datetime(2024, 1, 1)])] * 2, TimeWindow(5))
    with pytest.raises(UsageError, match="'z' in the right table"):
        encode(pa.table({"t": [1]}), pa.table({"t": [1]}),
               Query(time=("t", "z"), **over(WINDOW)), WIDE)  # fmt: skip
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["t", "t"])
    with pytest.raises(UsageError, match="several columns called 't'"):
        encode(twice, twice, Query(time="t", **over(WINDOW)), WIDE)


def test_empty_tables_are_fine():
    empty = pa.array([], pa.int64())
    join = encoded(empty, empty, [Term("k", "k", 0, 1)], window=TimeWindow(3))
    assert len(join.left) == len(join.right) == 0
