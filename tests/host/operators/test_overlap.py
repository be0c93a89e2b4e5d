# SPDX-License-Identifier: Apache-2.0
"""Joins of intervals that overlap give the pairs that the reference names, on a device."""

from datetime import date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import UsageError, open_device
from host.errors import UnsupportedTypeError
from host.operators.overlap import overlap_query
from host.reference.asof import reference_overlap
from host.session.join import join_tables

LEFT, RIGHT = ("start", "end"), ("begin", "stop")
ROW = st.tuples(st.integers(-6, 6), st.none() | st.integers(0, 8), st.sampled_from("ab"))
ROWS = st.lists(
    ROW.map(lambda row: (row[0], None if row[1] is None else row[0] + row[1], row[2])), max_size=12
)
#: How small numbers become values: the types of starts and ends, and the function.
VALUES = {
    "integer": (pa.int32(), pa.int64(), int),
    "extreme": (pa.int64(), pa.int64(), lambda n: n - (1 << 63) + 6),
    "date": (pa.date32(), pa.date32(), lambda n: date(2026, 1, 10) + timedelta(n)),
    "timestamp": (
        pa.timestamp("s"),
        pa.timestamp("us"),
        lambda n: datetime(2026, 1, 1) + timedelta(seconds=n),
    ),
}


def table(rows, names, kind):
    start, end, value = VALUES[kind]
    begins, ends, keys = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            names[0]: pa.array(map(value, begins), start),
            names[1]: pa.array([None if n is None else value(n) for n in ends], end),
            "k": pa.array(keys, pa.string()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def software():
    with open_device("software:") as device:
        yield device


@given(
    left=ROWS,
    right=ROWS,
    kind=st.sampled_from(list(VALUES)),
    touching=st.booleans(),
    keyed=st.booleans(),
)
def test_pairs_are_those_of_the_reference(software, left, right, kind, touching, keyed):
    tables = table(left, LEFT, kind), table(right, RIGHT, kind)
    by = [("k", "k")] if keyed else []
    query = overlap_query(tables, LEFT, RIGHT, on=by, touching=touching)
    found = join_tables(*tables, query, software).table
    if not keyed:
        left, right = ([(*row[:2], 0) for row in rows] for rows in (left, right))
    expected = reference_overlap(left, right, touching=touching)
    rows = zip(found["row"].to_pylist(), found["row_right"].to_pylist(), strict=True)
    assert list(rows) == expected


def test_left_rows_without_an_overlap_can_come_alone(software):
    tables = (
        table([(0, 2, "a"), (9, 9, "a")], LEFT, "integer"),
        table([(2, 4, "a")], RIGHT, "integer"),
    )
    query = overlap_query(tables, LEFT, RIGHT, how="left")
    found = join_tables(*tables, query, software).table
    assert list(zip(found["row"].to_pylist(), found["row_right"].to_pylist(), strict=True)) == [
        (0, 0),
        (1, None),
    ]


GOOD = table([(0, 2, "a")], LEFT, "integer")
DOUBLE = pa.table({"start": [0.1, 0.5], "end": [0.3, float("nan")]})
REAL = pa.table({"start": [1], "end": [2.5]})


@pytest.mark.parametrize(
    ("left", "interval", "touching", "error", "said"),
    [
        (GOOD, ("start", "stop"), True, UsageError, "no column 'stop' in the left table"),
        (GOOD, ("k", "k"), True, UnsupportedTypeError, "left.k"),
        (GOOD, ("row", "start"), True, None, ""),
        (REAL, LEFT, True, UsageError, "left.start.*cannot be compared with.*left.end"),
        (REAL, LEFT, False, UsageError, "left.start.*cannot be compared with.*left.end"),
        (DOUBLE, LEFT, True, UnsupportedTypeError, "'left.start' has type double, which cannot"),
        (DOUBLE, LEFT, False, UnsupportedTypeError, "'left.start' has type double, which cannot"),
        (
            table([(0, 1, "a"), (5, 4, "a")], LEFT, "integer"),
            LEFT,
            True,
            UsageError,
            r"interval in row 1 .* of the left table ends before it starts: start=5, end=4; swap",
        ),
        (
            table([(0, 1, "a")], LEFT, "date"),
            LEFT,
            True,
            UsageError,
            "intervals of one side are temporal and those of the other are not",
        ),
    ],
)
def test_what_is_no_interval_is_named(left, interval, touching, error, said):
    right = table([(0, 2, "a")], RIGHT, "integer")
    if error is None:
        assert overlap_query((left, right), interval, RIGHT, touching=touching).least_fields == 2
        return
    with pytest.raises(error, match=said):
        overlap_query((left, right), interval, RIGHT, touching=touching)
