# SPDX-License-Identifier: Apache-2.0
"""Types that are not compared as they lie in memory: decimals, floats, binary values."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, open_device
from host.errors import AcceleratorLimitError, UnsupportedTypeError, UsageError
from host.pipeline import Pipeline
from host.query.queries import Query, Term
from host.session.join import Join, join_tables
from tests.host.tables import naive_join
from tests.windows import over

WINDOW = CountWindow(50)


def joined(left, right, *terms):
    """Pairs of rows: through whole tables, and streamed, which must agree."""
    tables = [
        pa.table({"t": np.arange(len(values)), "k": values, "row": np.arange(len(values))})
        for values in (left, right)
    ]
    query = Query(band=terms, time="t", **over(WINDOW), sorted=True)
    with open_device("software:") as device:
        result = join_tables(*tables, query, device)
        sides = [Pipeline.of_table(table, sorted_by=["t"]).batch_rows(3) for table in tables]
        streamed = sides[0].join(sides[1], query, device).collect()
    rows = ["row", "row_right"]  # NaN is not equal to itself where tables are compared
    assert streamed.select(rows).equals(result.table.select(rows))
    pairs = list(zip(*(rows.tolist() for rows in result.pairs), strict=True))
    return tables, query, pairs


DIGITS = st.integers(-300, 300)


@given(
    st.lists(st.one_of(st.none(), DIGITS), max_size=12),
    st.lists(st.one_of(st.none(), DIGITS), max_size=12),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(-100, 100),
    st.integers(0, 200),
)
def test_decimals_of_any_scale_are_compared_exactly(left, right, mine, theirs, low, width):
    sides = [
        pa.array(
            [None if value is None else Decimal(value).scaleb(-scale) for value in values],
            pa.decimal128(9, scale),
        )
        for values, scale in ((left, mine), (right, theirs))
    ]
    bounds = Fraction(low, 10), Fraction(low + width, 10)
    tables, query, pairs = joined(*sides, Term("k", "k", *bounds))
    decimals = Query(band=[("k", "k", *bounds)], time="t", **over(WINDOW), sorted=True)
    assert query == decimals
    rows = [table.to_pylist() for table in tables]
    everything = naive_join(*tables, Query(time="t", **over(WINDOW)))
    assert pairs == [
        (r, s)
        for r, s in everything
        if rows[0][r]["k"] is not None
        and rows[1][s]["k"] is not None
        and bounds[0] <= Fraction(rows[0][r]["k"]) - Fraction(rows[1][s]["k"]) <= bounds[1]
    ]


def test_differences_of_decimals_too_long_for_64_bits_are_an_error():
    long = pa.array([Decimal(10) ** 20], pa.decimal128(30, 2))
    with pytest.raises(
        AcceleratorLimitError, match="'left.k'.*1e-2.*cast the column to fewer digits"
    ):
        joined(long, long, Term("k", "k", -1, 1))


REAL = st.one_of(
    st.none(), st.sampled_from([0.0, -0.0, float("nan"), float("inf"), -1.5, 0.1, 2.0**-1074])
)


@given(st.lists(REAL, max_size=12), st.lists(REAL, max_size=12), st.booleans())
def test_floats_are_equal_as_in_sql(left, right, narrow):
    kinds = (pa.float32() if narrow else pa.float64(), pa.float64())
    sides = [pa.array(values, kind) for values, kind in zip((left, right), kinds, strict=True)]

    def same(one, other):
        if one is None or other is None:
            return False
        return one == other or (one != one and other != other)

    tables, _, pairs = joined(*sides, Term("k", "k"))
    everything = naive_join(*tables, Query(time="t", **over(WINDOW)))
    values = [side.to_pylist() for side in sides]
    assert pairs == [(r, s) for r, s in everything if same(values[0][r], values[1][s])]


@pytest.mark.parametrize("kinds", [(pa.binary(), pa.large_binary()), (pa.binary(2), pa.binary())])
def test_bytes_are_compared_whatever_their_layout(kinds):
    values = [b"ab", None, b"cd", b"ab"]
    tables, query, pairs = joined(*(pa.array(values, kind) for kind in kinds), Term("k", "k"))
    assert pairs == naive_join(*tables, query)
    assert len(pairs) == 5


@pytest.mark.parametrize(
    ("values", "words"),
    [(pa.array(["a"]), "strings"), (pa.array([b"a"]), "binary values")],
)
def test_what_is_coded_is_compared_for_equality_only(values, words):
    for term in (Term("k", "k", -1, 1), Term("k", "k", None, 0)):
        with pytest.raises(UsageError, match=f"{words} can be compared for equality only"):
            joined(values, values, term)


@pytest.mark.parametrize("values", [pa.array([Decimal(1)]), pa.array([1.0]), pa.array([b"a"])])
def test_they_give_no_order_of_arrival(values):
    table = pa.table({"t": values})
    query = Query(time="t", **over(WINDOW))
    with open_device("software:") as device, pytest.raises(UnsupportedTypeError, match=r"left\.t"):
        Join(table, table, query, device)
