# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import open_device
from host.engine import sorted_index
from host.errors import AcceleratorLimitError, UnsupportedTypeError, UsageError
from host.operators import matches
from host.operators.matches import aggregate_matches
from host.operators.verification import reference_pairs
from host.query.queries import Query, Term
from host.reference.types import JoinType
from host.reference.window import CountWindow, TimeWindow
from tests.windows import over

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int16()), ("v", pa.int32()), ("w", pa.float64())])
BAND = Query(band=[("x", "x", -2, 1)], time="t", within=5)
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


EQUAL = Term("x", "x")
TERMS = {
    "band": BAND.terms, "equality": (EQUAL,), "two equalities": (EQUAL, Term("v", "v")),
    "both": (EQUAL, Term("v", "v", -3, 2)), "shifted": (Term("x", "x", 1, 1),), "none": (),
    "one-sided": (Term("x", "v", None, 0),), "floats": (Term("w", "w", -1.5, 2),),
    "impossible": (Term("x", "x", 3, 2),),
}  # fmt: skip
WINDOWS = {
    "time": TimeWindow(5), "all times": TimeWindow(1 << 40), "rows": CountWindow(3),
    "all rows": CountWindow(1 << 29),
}  # fmt: skip


@pytest.mark.few(12)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("terms", TERMS)
@settings(max_examples=12)
@given(left=tables(), right=tables())
def test_each_left_row_has_the_aggregates_of_its_matches(terms, window, left, right):
    terms, window = TERMS[terms], WINDOWS[window]
    query = Query(band=terms, time="t", **over(window), how=JoinType.FULL)
    with open_device("software:") as device, pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_PIECE", 5)
        result = aggregate_matches(left, right, query, AGGREGATES, device)
    inner = Query(band=query.terms, time=query.time, **over(window))
    assert result.to_pylist() == expected(left, right, inner)
    assert result.schema.names == [*SCHEMA.names, *AGGREGATES]


SUMS = {"n": "count", "values": "count:v", "total": "sum:v"}
TWO = {
    "a band and a window": (TERMS["band"], TimeWindow(5)),
    "an equality, a band and a window": (TERMS["both"], TimeWindow(4)),
    "a band and rows": (TERMS["band"], CountWindow(3)),
    "two bands": ((Term("x", "x", -2, 1), Term("v", "v", None, 1)), TimeWindow(1 << 40)),
    "three ranges": ((Term("x", "x", -2, 1), Term("v", "v", -3, 1)), TimeWindow(5)),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", TWO)
@settings(max_examples=25)
@given(left=tables(), right=tables())
def test_sums_over_two_ranges_are_those_of_the_matches(name, left, right):
    """However few the matches are: by default they are added up without being seen where many."""
    terms, window = TWO[name]
    query = Query(band=terms, time="t", **over(window))
    with open_device("software:") as device, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_index, "_SUM_COST", -1.0)
        result = aggregate_matches(left, right, query, SUMS, device)
    known = [
        {name: row[name] for name in result.schema.names} for row in expected(left, right, query)
    ]
    assert result.to_pylist() == known


@pytest.mark.parametrize("within", [1 << 18, 1 << 21], ids=["band and window", "two bands"])
def test_sums_over_two_ranges_see_no_pair(within):
    """2 x 60,000 rows have 3e8 and more pairs here."""
    rng, count = np.random.default_rng(7), 60_000
    left, right = (
        columns_of(rng, count, clustered(rng, count), v=rng.integers(-99, 99, count))
        for _ in range(2)
    )
    terms = [("x", "x", -50, 50), *([("v", "v", -40, 60)] if within == 1 << 21 else [])]
    query = Query(band=terms, time="t", within=within)
    began = process_time()
    with open_device("software:") as device:
        result = aggregate_matches(left, right, query, SUMS, device)
    assert process_time() - began < 5
    other = {name: right.column(name).to_numpy() for name in "txv"}
    for row in rng.integers(0, count, 20).tolist():
        own = {name: left.column(name)[row].as_py() for name in "txv"}
        met = np.abs(other["x"] - own["x"]) <= 50
        met &= np.abs(other["t"] - own["t"]) <= within
        if len(terms) == 2:
            met &= (own["v"] - other["v"] <= 60) & (own["v"] - other["v"] >= -40)
        assert result.column("n")[row].as_py() == met.sum()
        assert result.column("total")[row].as_py() == (other["v"][met].sum() if met.any() else None)


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


def columns_of(rng, count, keys, **values):
    return pa.table({"t": np.sort(rng.integers(0, 1 << 20, count)), "x": keys, **values})


def hot(rng, count):
    return np.where(rng.random(count) < 0.4, 0, rng.integers(0, count, count))


def clustered(rng, count):
    return rng.normal(0, 100, count).astype(np.int64)


def powers_of_two(rng, count):
    return rng.integers(0, 8, count) << 40


def constant(rng, count):
    return np.zeros(count, np.int64)


@pytest.mark.few(4)
@pytest.mark.parametrize("band", [False, True])
@pytest.mark.parametrize("keys", [hot, clustered, powers_of_two, constant])
def test_no_pair_is_seen_of_matches_that_are_many(keys, band):
    """2 x 60,000 rows have up to 3.6e9 pairs here, which take minutes if they are expanded."""
    rng, count = np.random.default_rng(7), 60_000
    right = columns_of(
        rng, count, keys(rng, count), v=rng.integers(-99, 99, count), f=rng.random(count)
    )
    left = columns_of(rng, count, keys(rng, count))
    reach = 5 if band else 0
    query = Query(band=[("x", "x", -reach, reach)], time="t", within=1 << 21)
    wanted = {"n": "count", "total": "sum:v", "mean": "mean:f", "low": "min:v", "high": "max:f"}
    began = process_time()
    with open_device("software:") as device:
        result = aggregate_matches(left, right, query, wanted, device)
    assert process_time() - began < 5
    own, values = right.column("x").to_numpy(), right.column("v").to_numpy()
    for row in rng.integers(0, count, 20).tolist():
        met = np.abs(own - left.column("x")[row].as_py()) <= reach
        assert result.column("n")[row].as_py() == met.sum()
        assert result.column("total")[row].as_py() == (values[met].sum() if met.any() else None)
        assert result.column("low")[row].as_py() == (values[met].min() if met.any() else None)
        mean, floats = result.column("mean")[row].as_py(), right.column("f").to_numpy()[met]
        assert mean == (pytest.approx(floats.mean()) if met.any() else None)


@pytest.mark.parametrize("values", [[np.inf, 1.0, -np.inf, 2.0], [np.nan, 1.0, 2.0, np.inf]])
def test_a_float_that_is_no_number_is_only_in_the_sums_of_its_matches(values):
    right = pa.table({"t": [0, 1, 2, 3], "x": [0] * 4, "f": values})
    left = pa.table({"t": [0, 1, 2, 3], "x": [0] * 4})
    query = Query(band=(EQUAL,), time="t", within=0)
    with open_device("software:") as device:
        result = aggregate_matches(left, right, query, {"total": "sum:f"}, device)
    assert repr(result.column("total").to_pylist()) == repr(values)


def test_sums_are_exact_until_64_bits_cannot_hold_them():
    top = (1 << 63) - 1
    right = pa.table({"t": [0, 1, 2], "x": [0, 0, 0], "v": [top, top, -top]})
    left = pa.table({"t": [1, 2], "x": [0, 0]})
    query = Query(band=(EQUAL,), time="t", within=1)
    with open_device("software:") as device:
        wide = replace(query, within=2)
        result = aggregate_matches(left, right, wide, {"total": "sum:v"}, device)
        assert result.column("total").to_pylist() == [top, top]
        narrow = left.slice(0, 1)
        with pytest.raises(AcceleratorLimitError, match="sum fewer rows"):
            aggregate_matches(narrow, right.slice(0, 2), query, {"total": "sum:v"}, device)


@pytest.mark.parametrize(
    ("aggregates", "kind", "message"),
    [
        ({}, UsageError, "Matches need at least one aggregate, such as n=count."),
        ({"x": "count"}, UsageError, "cannot be called 'x', as a left column is"),
        ({"n": "sum:what"}, UsageError, "There is no column 'what' in the right table"),
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
