# SPDX-License-Identifier: Apache-2.0

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import open_device
from host.errors import UnknownColumnError, UnsupportedTypeError, UsageError
from host.operators import matches
from host.operators.matches import aggregate_matches
from host.operators.verification import reference_pairs
from host.query.queries import JoinQuery, Term
from host.reference.types import JoinType
from host.reference.window import CountWindow, TimeWindow

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int16()), ("v", pa.int32()), ("w", pa.float64())])
BAND = JoinQuery(terms=(Term("x", "x", -2, 1),), order=("t", "t"), window=TimeWindow(5))
AGGREGATES = {
    "n": "count", "values": "count:v", "total": "sum:v", "low": ("min", "v"), "high": "max:w",
    "mean": "mean:v",
}  # fmt: skip


def tables():
    number = st.integers(-6, 6)
    rows = st.fixed_dictionaries(
        {
            "t": st.integers(0, 12),
            "x": st.none() | number,
            "v": st.none() | number,
            "w": number.map(float),
        }
    )
    return st.lists(rows, max_size=14).map(lambda rows: pa.Table.from_pylist(rows, SCHEMA))


def expected(left, right, query):
    """Aggregate the pairs of the reference join, row by row."""
    pairs = list(
        zip(*(numbers.tolist() for numbers in reference_pairs(left, right, query)), strict=True)
    )
    others, rows = right.to_pylist(), []
    for number, row in enumerate(left.to_pylist()):
        matches = [others[other] for own, other in pairs if own == number]
        values = [match["v"] for match in matches if match["v"] is not None]
        rows.append(
            row
            | {
                "n": len(matches),
                "values": len(values),
                "total": sum(values) if values else None,
                "low": min(values, default=None),
                "high": max((match["w"] for match in matches), default=None),
                "mean": sum(values) / len(values) if values else None,
            }
        )
    return rows


@pytest.mark.parametrize("window", [TimeWindow(5), CountWindow(3)], ids=["time", "rows"])
@settings(max_examples=30)
@given(left=tables(), right=tables())
def test_each_left_row_has_the_aggregates_of_its_matches(window, left, right):
    query = JoinQuery(terms=BAND.terms, order=("t", "t"), window=window, how=JoinType.FULL)
    with open_device("software:") as device, pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_PIECE", 5)
        result = aggregate_matches(left, right, query, AGGREGATES, device)
    inner = JoinQuery(terms=query.terms, order=query.order, window=window)
    assert result.to_pylist() == expected(left, right, inner)
    assert result.schema.names == [*SCHEMA.names, *AGGREGATES]


def test_a_count_of_rows_reads_no_column_and_types_are_those_of_sql():
    left = pa.Table.from_pylist([{"t": 1, "x": 0}, {"t": 99, "x": 0}], SCHEMA)
    with open_device("software:") as device:
        counted = aggregate_matches(left, left, BAND, {"n": "count"}, device)
        none = aggregate_matches(left, left.slice(0, 0), BAND, AGGREGATES, device)
    assert counted.column("n").to_pylist() == [1, 1]
    assert [none.schema.field(name).type for name in ("n", "total", "low", "mean")] == [
        pa.int64(), pa.int64(), pa.int32(), pa.float64(),
    ]  # fmt: skip
    assert none.select(list(AGGREGATES)).to_pylist()[0] == {
        "n": 0, "values": 0, "total": None, "low": None, "high": None, "mean": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("aggregates", "kind", "message"),
    [
        ({}, UsageError, "Matches need at least one aggregate, such as n=count."),
        ({"x": "count"}, UsageError, "cannot be called 'x', as a left column is"),
        ({"n": "sum:what"}, UnknownColumnError, "There is no column 'what' in the right table"),
        ({"n": "sum:name"}, UnsupportedTypeError, "Column 'name' has type string"),
        ({"n": "median:v"}, UsageError, "one of count, sum, min, max, mean"),
    ],
)
def test_wrong_aggregates_are_refused(aggregates, kind, message):
    left = pa.Table.from_pylist([{"t": 1, "x": 0}], SCHEMA)
    right = left.append_column("name", pa.array(["a"]))
    with open_device("software:") as device, pytest.raises(kind) as caught:
        aggregate_matches(left, right, BAND, aggregates, device)
    assert message in str(caught.value)
