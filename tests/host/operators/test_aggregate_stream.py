# SPDX-License-Identifier: Apache-2.0

import datetime as dt
from decimal import Decimal
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host.errors import AcceleratorLimitError, OrderError, UnsupportedTypeError, UsageError
from host.operators.aggregate import WindowAggregation
from host.pipeline import Pipeline
from host.query.quantities import Duration, parse_duration
from host.query.queries import AggregateQuery
from tests.host.operators.by_rows import SCHEMA, expected_rows, tables

AGGREGATES = {
    "n": "count", "prices": "count:price", "total": "sum:price", "low": "min:price",
    "high": "max:price", "mean": "mean:price", "heavy": "max:weight", "light": "min:weight",
    "weights": "sum:weight", "names": "count:name",
}  # fmt: skip
KEYS = st.sampled_from([(), ("item",), ("name",), ("item", "name"), ("weight",)])
WINDOWS = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(
    lambda lengths: (max(lengths), min(lengths))
)


def query(window=10, advance=None, on=("item",), **changes):
    given = {"time": "time", "window": window, "advance": advance, "on": on}
    return AggregateQuery(**{**given, "aggregates": AGGREGATES, **changes})


def rows_of(batches):
    """Return rows as tuples in which NaN equals NaN."""
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return [tuple("NaN" if value != value else value for value in row) for row in rows]


def expected(table, asked):
    rows = expected_rows(
        table.to_pylist(),
        time=asked.time,
        window=asked.window,
        advance=asked.advance,
        keys=asked.on,
        aggregates=[(one.function, one.column) for one in asked.aggregates.values()],
    )
    return [tuple("NaN" if value != value else value for value in row) for row in rows]


def pieces(data, table):
    """Cut a table into batches at random places."""
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    edges = [0, *cuts, table.num_rows]
    whole = pa.RecordBatch.from_pylist(table.to_pylist(), table.schema)
    return [whole.slice(a, b - a) for a, b in pairwise(edges)]


@settings(max_examples=80)
@given(tables(), WINDOWS, KEYS.filter(lambda keys: keys != ("weight",)), st.data())
def test_results_are_those_of_sql(table, lengths, keys, data):
    asked = query(*lengths, keys)
    work = WindowAggregation(SCHEMA, asked)
    for piece in pieces(data, table):
        work.more_rows(piece)
    result = work.last_rows()
    assert rows_of([result]) == expected(table, asked)
    assert (work.rows, work.results, work.late_rows) == (table.num_rows, result.num_rows, 0)
    assert work.held == 0


@settings(max_examples=60)
@given(tables(is_sorted=True), WINDOWS, st.data())
def test_results_of_sorted_rows_leave_when_their_windows_end(table, lengths, data):
    asked = query(*lengths)
    work, batches, reached = WindowAggregation(SCHEMA, asked), [], None
    for piece in pieces(data, table):
        batches.append(work.rows_in_order(piece))
        if piece.num_rows:
            reached = piece.column("time")[-1].as_py()
        assert all(end.as_py() <= reached for end in batches[-1].column("window_end"))
        open_panes = sum(batch.num_rows for batch in batches)
        assert open_panes == work.results
    batches.append(work.last_rows())
    assert all(reached is None or end.as_py() > reached for end in batches[-1].column("window_end"))
    assert rows_of(batches) == expected(table, asked)


@settings(max_examples=60)
@given(tables(), WINDOWS, st.data())
def test_late_rows_count_only_in_windows_that_are_open(table, lengths, data):
    asked = query(*lengths, aggregates={"n": "count"})
    work, batches, ended, late = WindowAggregation(SCHEMA, asked), [], None, 0
    counted = {}
    for piece in pieces(data, table):
        for row in piece.to_pylist():
            ends = [
                (number * asked.advance + asked.window)
                for number in range(-60, 60)
                if 0 <= row["time"] - number * asked.advance < asked.window
            ]
            still_open = [end for end in ends if ended is None or end > ended]
            late += not still_open
            for end in still_open:
                counted[end, row["item"]] = counted.get((end, row["item"]), 0) + 1
        watermark = data.draw(st.integers(-25, 50))
        batches.append(work.rows_until(piece, watermark))
        ended = watermark if ended is None else max(ended, watermark)
    batches.append(work.last_rows())
    got = rows_of(batches)
    assert {(end, item): n for _, end, item, n in got} == counted
    assert len(got) == len(counted)
    assert work.late_rows == late


def test_floats_that_are_equal_are_one_key():
    weights = [-0.0, 0.0, float("nan"), -float("nan"), -1.5, None]
    table = pa.table(
        {"time": [0] * 6, "weight": pa.array(weights, pa.float64(), from_pandas=False)}
    )
    asked = query(on=["weight"], aggregates={"n": "count"})
    work = WindowAggregation(table.schema, asked)
    got = rows_of([work.last_rows(table.to_batches()[0])])
    assert str(got[1][2]) == "0.0"
    assert [(key, n) for *_, key, n in got] == [(-1.5, 1), (0.0, 2), ("NaN", 2), (None, 1)]


@pytest.mark.parametrize(
    ("dtype", "window", "advance", "time", "units"),
    [
        (pa.timestamp("us"), "1h", "30min", 59 * 60 * 10**6, (3600 * 10**6, 1800 * 10**6)),
        (pa.timestamp("ns", "UTC"), "90s", "90s", -1, (90 * 10**9, 90 * 10**9)),
        (pa.date32(), "7d", "1d", 20_000, (7, 1)),
        (pa.date64(), "2d", "1d", 86_400_000 * 9, (172_800_000, 86_400_000)),
        (pa.duration("s"), "10s", "5s", -3, (10, 5)),
        (pa.uint16(), 7, 7, 65_535, (7, 7)),
        (pa.int64(), 10**9, 10**9, -1, (10**9, 10**9)),
    ],
)
def test_boundaries_have_the_type_of_the_column(dtype, window, advance, time, units):
    spans = [span if isinstance(span, int) else parse_duration(span) for span in (window, advance)]
    asked = query(*spans, on=(), aggregates={"n": "count"})
    plain = pa.int32() if dtype == pa.date32() else pa.int64()
    table = pa.table({"time": pa.array([time], plain).cast(dtype)})
    result = WindowAggregation(table.schema, asked).last_rows(table.to_batches()[0])
    bounds = pa.int64() if pa.types.is_integer(dtype) else dtype
    assert result.schema.types == [bounds, bounds, pa.int64()]
    starts, ends = (result[at].cast(plain).to_pylist() for at in (0, 1))
    size, step = units
    assert starts == [n * step for n in range(-9999, 70_000) if n * step <= time < n * step + size]
    assert [end - start for start, end in zip(starts, ends, strict=True)] == [size] * len(starts)


def test_least_and_greatest_keep_the_type_of_their_column():
    columns = {
        "time": [1, 2, 3],
        "day": pa.array([dt.date(2026, 1, 2), None, dt.date(2025, 1, 2)]),
        "flag": [True, False, None],
        "small": pa.array([3, None, -4], pa.int8()),
        "at": pa.array([None, None, dt.datetime(2026, 1, 1)], pa.timestamp("ms")),
    }
    table = pa.table(columns)
    aggregates = {f"{f}_{name}": (f, name) for name in list(columns)[1:] for f in ("min", "max")}
    asked = query(window=2, on=(), aggregates=aggregates)
    result = WindowAggregation(table.schema, asked).last_rows(table.to_batches()[0])
    assert [result.schema.field(name).type for name in ("min_day", "max_flag", "min_small")] == [
        pa.date32(), pa.bool_(), pa.int8(),
    ]  # fmt: skip
    rows = result.to_pylist()
    assert [row["min_day"] for row in rows] == [dt.date(2026, 1, 2), dt.date(2025, 1, 2)]
    assert [row["max_flag"] for row in rows] == [True, False]
    assert [row["max_small"] for row in rows] == [3, -4]
    assert [row["max_at"] for row in rows] == [None, dt.datetime(2026, 1, 1)]


def test_sums_are_exact_beyond_64_bits_and_refused_only_if_they_end_there():
    most = (1 << 63) - 1
    table = pa.table({"time": [0, 1, 2, 10], "x": [most, most, -most, 7]})
    asked = query(on=(), aggregates={"total": "sum:x", "mean": "mean:x"})
    work = WindowAggregation(table.schema, asked)
    for batch in table.to_batches(max_chunksize=1):
        work.more_rows(batch)
    assert work.last_rows().column("total").to_pylist() == [most, 7]
    work = WindowAggregation(table.schema, asked)
    with pytest.raises(
        AcceleratorLimitError, match=f"'total' holds {most + 1 - 1 + most}, outside"
    ):
        work.last_rows(table.slice(0, 2).to_batches()[0])


def test_keys_of_encoded_columns_come_back_as_they_were():
    names = pa.array(["b", "a", None, "b"]).dictionary_encode()
    table = pa.table({"time": [0, 1, 2, 3], "name": names, "d": [Decimal("1.5")] * 4})
    asked = query(on=("name", "d"), aggregates={"n": "count", "d_n": "count:d"})
    result = WindowAggregation(table.schema, asked).last_rows(table.to_batches()[0])
    assert result.column("name").type == names.type
    assert result.column("name").to_pylist() == ["a", "b", None]
    assert result.column("n").to_pylist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"time": "when"}, UsageError, "There is no column 'when' in the input table"),
        ({"time": "name"}, UnsupportedTypeError, "Column 'name' has type string"),
        ({"on": ["what"]}, UsageError, "There is no column 'what'"),
        ({"aggregates": {"a": "sum:what"}}, UsageError, "There is no column 'what'"),
        ({"aggregates": {"a": "sum:name"}}, UnsupportedTypeError, "integers, floats (for a sum"),
        ({"aggregates": {"a": "min:name"}}, UnsupportedTypeError, "(for min or max)"),
        ({"window": Duration(5)}, UsageError, "of type int64 must be a whole number, not 5ns."),
    ],
)  # fmt: skip
def test_queries_that_do_not_suit_the_columns_are_refused(changes, kind, message):
    with pytest.raises(kind) as caught:
        WindowAggregation(SCHEMA, query(**changes))
    assert message in str(caught.value)


def test_windows_of_a_temporal_column_are_durations_of_whole_units():
    schema = pa.schema([("time", pa.timestamp("s"))])
    for window, message in (
        (5, "must be a duration, such as 5min, not 5."),
        (Duration(5), "is no whole number of the units of column 'time' (timestamp[s], 1s)"),
    ):
        with pytest.raises(UsageError) as caught:
            WindowAggregation(schema, query(window, on=(), aggregates={"n": "count"}))
        assert message in str(caught.value)


def test_rows_without_a_place_in_time_are_refused_by_name():
    schema = pa.schema([("time", pa.int64()), ("item", pa.int8())])
    asked = query(aggregates={"n": "count"})

    def batch(*times):
        return pa.RecordBatch.from_pylist([{"time": t, "item": 3} for t in times], schema)

    work = WindowAggregation(schema, asked)
    work.rows_in_order(batch(1, 2))
    with pytest.raises(OrderError) as caught:
        work.rows_in_order(batch(5, None))
    assert "'time' is null in row 3 (the first is 0), the row with time=null, item=3" in str(
        caught.value
    )
    work = WindowAggregation(schema, asked)
    work.rows_in_order(batch(1, 4))
    with pytest.raises(OrderError, match="in column 'time': row 3 .* has 5 after 6"):
        work.rows_in_order(batch(6, 5))
    with pytest.raises(OrderError, match=r"row 1 .* has 3 after 4"):
        WindowAggregation(schema, asked).rows_in_order(batch(4, 3))
    with pytest.raises(
        AcceleratorLimitError, match="use shorter windows or a coarser unit of time"
    ):
        WindowAggregation(schema, asked).rows_in_order(batch((1 << 63) - 2))
    with pytest.raises(UsageError, match="A time of column 'time' is of type int64, not 'x'"):
        WindowAggregation(schema, asked).rows_until(batch(1), "x")
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([5, None], pa.int64()))
    rows = pa.RecordBatch.from_pydict({"time": coded, "item": [3, 3]})
    with pytest.raises(OrderError, match="'time' is null in row 1"):
        WindowAggregation(rows.schema, asked).more_rows(rows)
    wide = pa.RecordBatch.from_pydict({"time": [0], "x": pa.array([1 << 63], pa.uint64())})
    with pytest.raises(
        AcceleratorLimitError, match=r"of 64 bits; sum fewer rows, or ask for the mean"
    ):
        WindowAggregation(wide.schema, query(on=(), aggregates={"s": "sum:x"})).last_rows(wide)


EDGE = 1 << 63
#: Times and values of the whole range of 64 bits, and near its edges.
FAR = st.one_of(
    st.integers(-EDGE + 100, EDGE - 101),
    st.integers(-EDGE + 100, -EDGE + 120),
    st.integers(EDGE - 121, EDGE - 101),
    st.integers(-5, 5),
)
WIDE = st.none() | st.integers(0, 2 * EDGE - 1) | st.sampled_from([0, EDGE, 2 * EDGE - 1])


@given(
    st.lists(st.tuples(FAR, WIDE), min_size=1, max_size=12),
    WINDOWS,
    st.sampled_from([pa.int64(), pa.timestamp("ns"), pa.timestamp("us", "UTC")]),
    st.booleans(),
)
def test_any_time_and_any_unsigned_value_is_aggregated_exactly(rows, lengths, dtype, once):
    length, advance = lengths
    rows.sort(key=lambda row: row[0])
    unit = 1 if dtype == pa.int64() else {"ns": 1, "us": 1_000}[dtype.unit]
    span = (lambda n: n) if dtype == pa.int64() else lambda n: Duration(n * unit)
    table = pa.table(
        {
            "time": pa.array([time for time, _ in rows]).cast(dtype),
            "x": pa.array([value for _, value in rows], pa.uint64()),
        }
    )
    found = Pipeline.of_table(table, split_rows=20 if once else 3).aggregate(
        AggregateQuery(
            time="time", window=span(length), advance=span(advance), sorted=True,
            aggregates={"n": "count:x", "low": "min:x", "high": "max:x", "mean": "mean:x"},
        )
    ).collect()  # fmt: skip
    windows = {}
    for time, value in rows:
        for number in range((time - length) // advance + 1, time // advance + 1):
            windows.setdefault(number * advance, []).append(value)
    expected = []
    for start, values in sorted(windows.items()):
        known = [value for value in values if value is not None]
        mean = float(sum(known)) / len(known) if known else None
        expected.append(
            (start, len(known), min(known, default=None), max(known, default=None), mean)
        )
    starts = found["window_start"].cast(pa.int64())
    columns = [starts, *(found[name] for name in ("n", "low", "high", "mean"))]
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == expected
