# SPDX-License-Identifier: Apache-2.0
"""Aggregations over columns of every type: keys in their order, and windows that suit the type."""

from decimal import Decimal

import pyarrow as pa
import pytest

from host import UsageError, aggregate
from host.query.quantities import Duration

KEYS = [
    pa.decimal32(5, 2), pa.decimal64(15, 3), pa.decimal128(38, 2), pa.decimal256(50, 2),
    pa.float16(), pa.float32(), pa.int8(), pa.uint64(), pa.date64(), pa.duration("s"),
    pa.timestamp("us", "UTC"), pa.time32("s"), pa.time64("us"), pa.bool_(), pa.string_view(),
    pa.binary(1),
]  # fmt: skip
TIMES = [
    pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.date32(), pa.date64(), pa.timestamp("s"),
    pa.timestamp("ns", "UTC"), pa.duration("ms"),
]  # fmt: skip


def values(kind):
    """Some values of a type in their order."""
    if pa.types.is_decimal(kind):
        return [Decimal(-2), Decimal("0.25"), Decimal(7)]
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [b"a", b"b", b"c"]
    if pa.types.is_string_view(kind):
        return ["", "a", "b"]
    if pa.types.is_boolean(kind):
        return [False, True]
    return [0.0, 1.0, 3.0] if pa.types.is_floating(kind) else [0, 86_400_000, 172_800_000]


@pytest.mark.parametrize("kind", KEYS, ids=str)
@pytest.mark.parametrize("encoded", [False, True])
def test_keys_come_in_their_order_nulls_last(kind, encoded):
    given = values(kind)
    if pa.types.is_time(kind) or pa.types.is_integer(kind):
        given = [0, 2, 9]
    ordered = pa.array([*given, None], kind)
    rows = pa.concat_arrays([ordered.slice(at, 1) for at in (*range(len(ordered)), 1, 0)][::-1])
    if encoded and not (pa.types.is_decimal(kind) and kind.bit_width < 128):  # not in Arrow
        rows = (rows.cast(pa.string()) if kind == pa.string_view() else rows).dictionary_encode()
    table = pa.table({"t": [5] * len(rows), "k": rows})
    found = aggregate(table, time="t", window=10, on="k", aggregates={"n": "count"})
    assert found["k"].to_pylist() == ordered.to_pylist()
    assert found["n"].to_pylist() == [2, 2, *[1] * (len(ordered) - 2)]


@pytest.mark.parametrize("kind", [pa.bool_(), pa.time32("s"), pa.time64("ns")], ids=str)
def test_times_that_windows_are_not_over_are_refused_with_other_types(kind):
    table = pa.table({"t": pa.nulls(2, kind)})
    with pytest.raises(UsageError, match=r"'t' has type .*cast it to one of: (.*)\.$") as error:
        aggregate(table, time="t", window=1, aggregates={"n": "count"})
    offered = str(error.value).rpartition(": ")[2].rstrip(".").split(", ")
    assert not {"bool", "time"} & set(offered)
    assert {"date32", "timestamp", "duration"} < set(offered)


@pytest.mark.parametrize("kind", TIMES, ids=str)
@pytest.mark.parametrize("rows", [[], [0], [0, 0]], ids=len)
def test_windows_are_as_long_as_the_type_can_say(kind, rows):
    unit = {"s": 10**9, "ms": 10**6}.get(getattr(kind, "unit", ""), 1)
    if pa.types.is_date(kind):
        unit = 86_400 * 10**9 if pa.types.is_date32(kind) else 10**6
    table = pa.table({"t": pa.array(rows, kind)})
    bits = 64 if pa.types.is_integer(kind) else kind.bit_width
    longest = (1 << (bits - 1)) - 2
    for size in (longest, longest + 1, longest << 40):
        window = size if pa.types.is_integer(kind) else Duration(size * unit)
        words = {"time": "t", "window": window, "aggregates": {"n": "count"}}
        if size > longest:
            with pytest.raises(UsageError, match=r"longer than type .* of column 't'.*shorter"):
                aggregate(table, **words)
        else:
            assert aggregate(table, **words)["n"].to_pylist() == [len(rows)] * bool(rows)
