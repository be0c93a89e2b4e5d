# SPDX-License-Identifier: Apache-2.0
"""Aggregation over windows, row by row in plain Python: what SQL says, and nothing of the kit."""

import math

from hypothesis import strategies as st
import pyarrow as pa

__all__ = ["SCHEMA", "expected_rows", "tables"]

SCHEMA = pa.schema(
    [
        ("time", pa.int64()),
        ("item", pa.int8()),
        ("name", pa.string()),
        ("price", pa.int32()),
        ("weight", pa.float64()),
    ]
)


def tables(*, most=30, is_sorted=False, nulls=True):
    """Return a strategy of tables with :data:`SCHEMA`."""
    maybe = st.none() if nulls else st.nothing()
    rows = st.fixed_dictionaries(
        {
            "time": st.integers(-20, 40),
            "item": maybe | st.integers(0, 2),
            "name": maybe | st.sampled_from(["a", "b", ""]),
            "price": maybe | st.integers(-(1 << 31), (1 << 31) - 1),
            # Sums of eighths are exact, so that their order does not matter.
            "weight": maybe | st.integers(-64, 64).map(lambda n: n / 8) | st.just(math.nan),
        }
    )
    lists = st.lists(rows, max_size=most)
    if is_sorted:
        lists = lists.map(lambda rows: sorted(rows, key=lambda row: row["time"]))
    return lists.map(lambda rows: pa.Table.from_pylist(rows, SCHEMA))


def greatest(values):
    return math.nan if any(map(is_nan, values)) else max(values)


def least(values):
    return min((value for value in values if not is_nan(value)), default=math.nan)


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


VALUES = {
    "sum": sum,
    "min": least,
    "max": greatest,
    "mean": lambda values: sum(values) / len(values),
}


def value_of(rows, function, column):
    if column is None:
        return len(rows)
    values = [row[column] for row in rows if row[column] is not None]
    if function == "count":
        return len(values)
    return VALUES[function](values) if values else None


def expected_rows(rows, *, time, window, advance, keys, aggregates):
    """Return the rows of the result, each as a tuple, in its order."""
    groups = {}
    for row in rows:
        number = row[time] // advance
        while number * advance + window > row[time]:
            key = tuple(row[name] for name in keys)
            groups.setdefault((number * advance, key), []).append(row)
            number -= 1

    def order(place):
        start, key = place
        return start, [(value is None, 0 if value is None else value) for value in key]

    return [
        (start, start + window, *key, *(value_of(groups[start, key], *a) for a in aggregates))
        for start, key in sorted(groups, key=order)
    ]
