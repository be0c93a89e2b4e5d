# SPDX-License-Identifier: Apache-2.0
"""As-of joins of tables give the rows that the reference and pandas' ``merge_asof`` name."""

from datetime import date, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import UsageError
from host.errors import OrderError, UnsupportedTypeError
from host.operators.asof import AsofJoin, encode_sides
from host.query.quantities import parse_duration
from host.query.queries import AsofQuery
from host.reference.asof import reference_asof
from host.reference.types import NO_ROW, Direction

START = datetime(2026, 11, 1)
#: How a small number becomes a value of time: type, value, length of a step in a tolerance.
TIMES = {
    "integer": (pa.int32(), int, 1),
    "extreme": (pa.int64(), lambda n: n + (1 << 63) - 8, 1),
    "timestamp": (pa.timestamp("us"), lambda n: START + timedelta(seconds=n), timedelta(seconds=1)),
    "date": (pa.date32(), lambda n: date(2026, 1, 10) + timedelta(n), timedelta(1)),
}
NAMES = st.none() | st.sampled_from("ab")
PLACES = st.none() | st.sampled_from([0.5, -0.0, 0.0])
ROWS = st.lists(st.tuples(st.integers(-6, 6), NAMES, PLACES), max_size=10)


def table(rows, kind, other=""):
    dtype, value, _ = TIMES[kind]
    time, name, place = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "time": pa.array([value(n) for n in time], dtype),
            f"name{other}": pa.array(name, pa.string()),
            f"place{other}": pa.array(place, pa.float64()),
        }
    )


def expected_rows(left, right, keys, query, tolerance):
    """Return pairs of row numbers by the reference, from the Python values."""
    order = sorted(range(len(left)), key=lambda row: left[row][0])

    def keyed(rows):
        found = []
        for time, name, place in rows:
            values = [(name, None if place is None else place + 0.0)[place_] for place_ in keys]
            found.append((time, None if None in values else tuple(values)))
        return found

    sides = [keyed(left)[row] for row in order], keyed(right)
    found = reference_asof(
        *sides, query.direction, tolerance=tolerance, exact=query.allow_exact_matches
    )
    pairs = list(zip(order, found, strict=True))
    return [pair for pair in pairs if pair[1] != NO_ROW or query.how.value == "left"]


@given(
    ROWS,
    ROWS,
    st.sampled_from(list(TIMES)),
    st.sampled_from([(), (0,), (1,), (0, 1)]),
    st.sampled_from(Direction),
    st.none() | st.integers(0, 4),
    st.booleans(),
    st.sampled_from(["left", "inner"]),
)
def test_tables_are_joined_as_the_reference_says(
    left, right, kind, keys, direction, tolerance, exact, how
):
    named = [("name", "name_"), ("place", "place_")]
    query = AsofQuery(
        time="time",
        on=[named[key] for key in keys],
        direction=direction,
        within=None if tolerance is None else tolerance * TIMES[kind][2],
        allow_exact_matches=exact,
        how=how,
    )
    join = AsofJoin(table(left, kind), table(right, kind, "_"), query)
    expected = expected_rows(left, right, keys, query, tolerance)
    assert list(zip(*(rows.tolist() for rows in join.rows), strict=True)) == expected
    for mine, theirs in zip(join.rows, join.reference_rows(), strict=True):
        assert np.array_equal(mine, theirs)
    sides = table(left, kind).to_pylist(), table(right, kind, "_").to_pylist()
    values = [
        (
            *sides[0][row].values(),
            *([None] * 3 if other == NO_ROW else sides[1][other].values()),
        )
        for row, other in expected
    ]
    assert [tuple(row.values()) for row in join.table().to_pylist()] == values
    assert join.table().column_names == ["time", "name", "place", "time_right", "name_", "place_"]


def test_units_of_time_are_brought_to_one():
    left = pa.table({"t": pa.array([1_500, 2_500], pa.timestamp("ms"))})
    right = pa.table({"u": pa.array([1, 2, 3], pa.timestamp("s"))})
    query = AsofQuery(time=("t", "u"), direction="forward", within=parse_duration("500ms"))
    assert AsofJoin(left, right, query).rows[1].tolist() == [1, 2]
    query = AsofQuery(time=("t", "u"), direction="forward", within=parse_duration("499ms"))
    assert AsofJoin(left, right, query).rows[1].tolist() == [NO_ROW, NO_ROW]


def test_an_empty_side_leaves_every_left_row_alone():
    left = pa.table({"t": [3, 1]})
    right = pa.table({"t": pa.array([], pa.int64()), "y": pa.array([], pa.int64())})
    join = AsofJoin(left, right, AsofQuery(time="t", direction="nearest"))
    assert join.table().to_pylist() == [
        {"t": 1, "t_right": None, "y": None},
        {"t": 3, "t_right": None, "y": None},
    ]
    assert AsofJoin(right, left, AsofQuery(time="t")).table().num_rows == 0


TIMED = pa.table({"t": [1, 2], "k": ["a", "b"]})
STAMPED = pa.table({"t": pa.array([1, 2], pa.timestamp("s"))})


@pytest.mark.parametrize(
    ("left", "right", "given", "error", "said"),
    [
        (
            TIMED,
            TIMED,
            {"time": ("t", "time")},
            UsageError,
            "no column 'time' in the right",
        ),
        (TIMED, TIMED, {"on": [("k", "key")]}, UsageError, "no column 'key' in the right"),
        (TIMED, STAMPED, {}, UsageError, "left.t.*cannot be compared with.*cast one of them"),
        (TIMED, TIMED, {"on": [("k", "t")]}, UsageError, "left.k.*cannot be compared"),
        (TIMED, TIMED, {"time": "k"}, UnsupportedTypeError, "left.k.*string.*cast it"),
        (
            TIMED,
            TIMED,
            {"within": timedelta(1)},
            UsageError,
            "The distance 1d is a duration",
        ),
        (
            STAMPED,
            STAMPED,
            {"within": 5},
            UsageError,
            "The distance 5 is a plain number",
        ),
        (TIMED, TIMED, {"within": -1}, UsageError, "at least 0, or .*not -1"),
        (TIMED, TIMED, {"within": 1.5}, UsageError, "a whole number.*not 1.5"),
        (TIMED, TIMED, {"how": "full"}, UsageError, "'left' .* or 'inner' .*not 'full'"),
        (TIMED, TIMED, {"direction": "up"}, UsageError, "direction must be.*not 'up'"),
        (TIMED, pa.table({"t": [1, None]}), {}, OrderError, "null in row 1"),
        (pa.table({"t": [2, 1]}), TIMED, {"sorted": True}, OrderError, "row 1 .* has 1 after 2"),
        (
            pa.table({"t": [Decimal("1.5")]}),
            TIMED,
            {},
            UnsupportedTypeError,
            "left.t.*decimal.*cast it to one of: int8",
        ),
    ],
)
def test_what_cannot_be_joined_is_named(left, right, given, error, said):
    with pytest.raises(error, match=said):
        AsofJoin(left, right, AsofQuery(**{"time": "t", **given}))


def test_the_query_says_what_it_finds():
    query = AsofQuery(time=("t", "u"), on=[("k", "l")], within=5, how="inner")
    assert str(query) == (
        "inner as-of join: the last right row with right.u <= left.t and left.k = right.l, "
        "at most 5 away"
    )
    query = AsofQuery(time=("t", "u"), direction="forward", allow_exact_matches=False)
    assert "the first right row with right.u > left.t" in str(query)


@pytest.mark.parametrize(
    "keys", [[-3, -1, 0, -3], [(1 << 62), -(1 << 62), 5, 5]], ids=["close together", "far apart"]
)
def test_keys_are_numbered_from_zero_to_less_than_there_are_rows(keys):
    """Those that lie close together without a search for equal ones."""
    left, right = (pa.table({"t": [0, 1, 2, 3], "k": keys[::step]}) for step in (1, -1))
    sides = encode_sides(left, right, AsofQuery(time="t", on="k"))
    codes = [sides.left.key.tolist(), sides.right.key.tolist()]
    assert codes[0] == codes[1][::-1]
    assert len(set(codes[0])) == len(set(keys)) == len(set(zip(codes[0], keys, strict=True)))
    assert all(0 <= code < 8 for code in codes[0])
