# SPDX-License-Identifier: Apache-2.0
"""Decimals of any size and scale, compared as a plain loop compares them."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import UsageError, open_device
from host.operators.aggregate import WindowAggregation
from host.operators.asof import AsofJoin
from host.query.queries import AggregateQuery, AsofQuery, Query, Term
from host.reference.types import JoinType
from host.session.join import join_tables
from tests.host.small_bundles import BUNDLES, write_manifest

KINDS = [
    pa.decimal128(38, 18), pa.decimal128(38, 0), pa.decimal128(19, 1), pa.decimal128(12, 2),
    pa.decimal256(60, 20), pa.dictionary(pa.int32(), pa.decimal128(38, 18)),
]  # fmt: skip

#: Values near the limits of 64 bits in units of several scales, and far beyond them.
VALUES = [
    Decimal(text) for text in (
        "0", "1.5", "-1.5", "9.2", "9.3", "100.5", "9223372036854775807", "9223372036854775808",
        "-9223372036854775809", "18446744073709551616", "18446744073709551617", "99999999999999999",
    )
]  # fmt: skip


def has(kind, value):
    """Tell whether a type of decimals has a value."""
    fits = abs(value) < Decimal(10) ** (kind.precision - kind.scale)
    return fits and -value.as_tuple().exponent <= kind.scale


def column(kind, values):
    """A column with those of the values that its type has, and nulls for the others."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    kept = [value if value is not None and has(plain, value) else None for value in values]
    array = pa.array(kept, plain)
    return array.dictionary_encode() if plain is not kind else array


@st.composite
def tables(draw):
    """Two tables of rising times, decimals of two types and a number of few values."""
    found = []
    for _ in range(2):
        rows = draw(st.lists(st.sampled_from([*VALUES, None]), max_size=12))
        times = sorted(draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows))))
        few = draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
        kind = draw(st.sampled_from(KINDS))
        found.append(
            pa.table({
                "t": pa.array(times, pa.int64()), "p": column(kind, rows),
                "q": pa.array(few, pa.int64()), "row": pa.array(range(len(rows)), pa.int64()),
            })
        )  # fmt: skip
    return found


def pairs(left, right, *, within, also=False):
    """Rows of equal decimals, by a loop."""
    return Counter(
        (one["row"], other["row"])
        for one in left.to_pylist() for other in right.to_pylist()
        if one["p"] is not None and one["p"] == other["p"] and abs(one["t"] - other["t"]) <= within
        and (not also or one["q"] == other["q"])
    )  # fmt: skip


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """Software that holds anything, and a device with two fields of few bits."""
    folder = tmp_path_factory.mktemp("tiny") / "bundle"
    write_manifest(BUNDLES["tiny"].with_(sub_window=64, timestamp_bits=16), folder)
    opened = [open_device("software:"), open_device(f"software:{folder}")]
    yield opened
    for device in opened:
        device.close()


@settings(max_examples=60, deadline=None)
@given(tables(), st.booleans(), st.integers(0, 1))
def test_joins_of_tables_and_of_streams(devices, sides, also, device):
    left, right = sides
    terms = (Term("p", "p"), *([Term("q", "q")] if also else []))
    expected = pairs(left, right, within=4, also=also)
    for given_left, given_right, is_sorted in (
        (left, right, False),
        (left.to_reader(max_chunksize=5), right.to_reader(max_chunksize=5), True),
    ):
        query = Query(
            band=terms, time="t", within=4, sorted=is_sorted,
            how=JoinType.INNER,
        )  # fmt: skip
        found = join_tables(given_left, given_right, query, devices[device]).table
        assert expected == Counter(
            zip(found["row"].to_pylist(), found["row_right"].to_pylist(), strict=True)
        )


@settings(max_examples=40, deadline=None)
@given(tables())
def test_asof_joins_and_keys_of_aggregates(sides):
    left, right = sides
    found = AsofJoin(left, right, AsofQuery(time="t", on=(("p", "p"),))).table()
    assert found.num_rows == left.num_rows
    met = pairs(left, right, within=10)
    for row in found.to_pylist():
        earlier = [
            other["row"] for other in right.to_pylist()
            if met[row["row"], other["row"]] and other["t"] <= row["t"]
        ]  # fmt: skip
        assert row["row_right"] == max(earlier, default=None)

    query = AggregateQuery(time="t", window=100, on=["p"], aggregates={"n": "count"})
    aggregation = WindowAggregation(left.schema, query)
    for batch in left.to_batches():
        aggregation.more_rows(batch)
    counted = aggregation.last_rows()
    assert dict(zip(counted["p"].to_pylist(), counted["n"].to_pylist(), strict=True)) == Counter(
        left["p"].to_pylist()
    )


#: Types of every width, and scales on both sides of zero.
SCALED = [
    pa.decimal32(5, 2), pa.decimal64(18, 18), pa.decimal128(18, -3), pa.decimal128(38, 38),
    pa.decimal128(38, -5), pa.decimal256(76, 60), pa.decimal256(40, 76), pa.decimal128(20, 4),
]  # fmt: skip


def of_units(kind, numbers):
    """A column of decimals with these numbers of its units."""
    size = kind.byte_width
    data = b"".join((number or 0).to_bytes(size, "little", signed=True) for number in numbers)
    valid = pa.array([number is not None for number in numbers], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(data)])


@st.composite
def scaled(draw):
    """Two columns of decimals, after rows that are cut off, and their values."""
    found = []
    for _ in range(2):
        kind = draw(st.sampled_from(SCALED))
        most = min(10**kind.precision - 1, (1 << 63) - 1)
        number = st.none() | st.integers(-9, 9) | st.sampled_from([-most, 1 - most, most])
        numbers = draw(st.lists(number, min_size=1, max_size=8))
        cut = draw(st.integers(0, len(numbers) - 1))
        unit = Fraction(10) ** -kind.scale
        values = [None if number is None else number * unit for number in numbers]
        found.append((of_units(kind, numbers).slice(cut), values[cut:]))
    return found


@settings(max_examples=150, deadline=None)
@given(
    scaled(),
    st.sampled_from([(0, None), (-1, 1), (None, Decimal("-0.001")), (Decimal("1e-70"), 10**40)]),
)
def test_differences_of_decimals_of_any_scale(devices, columns, bounds):
    (left, ours), (right, theirs) = columns
    low, high = (None if bound is None else Fraction(bound) for bound in bounds)
    expected = {
        (row, other)
        for row, one in enumerate(ours)
        for other, two in enumerate(theirs)
        if one is not None and two is not None
        and (low is None or one - two >= low) and (high is None or one - two <= high)
    }  # fmt: skip
    tables = (
        pa.table({"t": pa.array([0] * len(one)), "p": one, "row": pa.array(range(len(one)))})
        for one in (left, right)
    )
    query = Query(band={"p": bounds}, time="t", within=0)
    found = join_tables(*tables, query, devices[0]).table
    rows = zip(found["row"].to_pylist(), found["row_right"].to_pylist(), strict=True)
    assert sorted(rows) == sorted(expected)


def test_scales_beyond_all_digits_are_refused_by_name():
    table = pa.table({"t": [1], "p": of_units(pa.decimal256(5, 300), [1])})
    with (
        open_device("software:") as device,
        pytest.raises(UsageError, match=r"left.p.*256\(5, 300"),
    ):
        join_tables(table, table, Query(on="p", time="t", within=4), device)


def test_types_without_a_common_one_are_refused_by_name():
    one = pa.table({"t": [1], "p": pa.array([Decimal(1)], pa.decimal256(76, 0))})
    other = pa.table({"t": [1], "p": pa.array([Decimal("0.5")], pa.decimal256(76, 76))})
    query = Query(on="p", time="t", within=4)
    with (
        open_device("software:") as device,
        pytest.raises(UsageError, match=r"'left.p'.*'right.p'.*152 digits.*cast one of them"),
    ):
        join_tables(one, other, query, device)
