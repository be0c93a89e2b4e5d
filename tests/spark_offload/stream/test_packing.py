# SPDX-License-Identifier: Apache-2.0
"""Packed rows come out as they went in, each in the group of its key."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host.errors import OrderError
from spark_offload import errors
from spark_offload.stream import packing
from spark_offload.stream.groups import REGISTRY
from spark_offload.stream.packing import pack_function, unpack_function
from spark_offload.stream.task import from_blob, to_blob, whole_table
from tests.spark_offload.stream_model import SCHEMA, stream_task

GATHERED = 5
"""Rows that are packed together in these tests."""


def task(groups):
    return stream_task(equal=True, groups=groups, within=timedelta(seconds=1))


RIGHT = pa.schema([SCHEMA.field(name) for name in ("id", "t", "x", "k")])
"""Columns of the right side, in another order."""


def hashed(hashes, begin=0, schema=SCHEMA):
    """Return a batch: a hash and the columns of a side; rows are numbered from ``begin`` on."""
    numbers = list(range(begin, begin + len(hashes)))
    columns = [
        pa.array([None if field.name == "k" and n % 3 == 0 else n for n in numbers]).cast(
            field.type
        )
        if numbers
        else pa.array([], field.type)
        for field in schema
    ]
    names = ["group", *schema.names]
    return pa.RecordBatch.from_arrays([pa.array(hashes, pa.int32()), *columns], names=names)


@pytest.fixture(autouse=True)
def _small_packs(monkeypatch):
    monkeypatch.setattr(packing, "PACKED_ROWS", GATHERED)


@given(
    st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=7), max_size=5),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 1]),
)
def test_each_row_is_packed_once_into_the_group_of_its_hash(parts, groups, side):
    now = replace(task(groups), right=RIGHT)
    schema = (SCHEMA, RIGHT)[side]
    batches, rows, gathered = [], [], [0]
    for part in parts:
        batches.append(hashed(part, len(rows), schema))
        rows += part
        gathered[-1] += len(part)
        if gathered[-1] >= GATHERED:
            gathered.append(0)
    pack = pack_function(now, side)
    assert pack.__name__ == ("splitjoin_pack_left", "splitjoin_pack_right")[side]
    packed = list(pack(iter(batches)))
    if not rows:
        assert packed == []
        return
    assert packed[0].to_pylist() == [{"group": REGISTRY, "side": side, "rows": None}]
    found, sizes = [], []
    for batch in packed[1:]:
        sizes.append(0)
        groups_of_batch = batch.column("group").to_pylist()
        assert len(set(groups_of_batch)) == len(groups_of_batch)
        for row in batch.to_pylist():
            assert row["side"] == side
            table = whole_table(from_blob(row["rows"], schema), schema)
            ids = table.column("id").to_pylist()
            assert ids == sorted(ids)
            found += [(number, row["group"]) for number in ids]
            sizes[-1] += len(ids)
            for name in ("t", "x", "k"):
                values = table.column(name).cast(pa.int64()).to_pylist()
                assert values == [None if name == "k" and n % 3 == 0 else n for n in ids]
    assert sorted(found) == [(n, now.groups[hash % groups]) for n, hash in enumerate(rows)]
    assert sizes == [size for size in gathered if size], "as many as there must be, no more"


@pytest.mark.parametrize("side", [0, 1])
def test_the_first_row_without_a_time_is_shown(monkeypatch, side):
    batch = hashed([0, 0, 0, 0])
    times = pa.array([0, 1, None, None], pa.int64()).cast(SCHEMA.field("t").type)
    batch = batch.set_column(1, "t", times)
    with pytest.raises(OrderError) as raised:
        list(pack_function(task(1), side)(iter([batch])))
    assert str(raised.value).endswith("(In Spark partition 0.)")
    assert f"'{('left', 'right')[side]}.t' is null in" in str(raised.value)
    assert "x=2, id=2" in str(raised.value)
    context = SimpleNamespace(get=lambda: SimpleNamespace(partitionId=lambda: 7))
    monkeypatch.setattr(errors, "TaskContext", context)
    with pytest.raises(OrderError, match=r"\(In Spark partition 7\.\)$"):
        list(pack_function(task(1), side)(iter([batch])))


def test_columns_get_the_types_that_were_declared():
    narrow = pa.schema([*list(SCHEMA)[:3], pa.field("id", pa.int16())])
    (_, packed) = pack_function(task(1), 0)(iter([hashed([4, 4], schema=narrow)]))
    assert whole_table(from_blob(packed["rows"][0].as_py(), SCHEMA), SCHEMA).num_rows == 2


def test_pairs_are_unpacked_past_the_rows_that_hold_numbers_only():
    now = task(1)
    left = hashed([0, 0]).select(range(1, 5))
    pairs = pa.RecordBatch.from_arrays([*left.columns, *left.columns], schema=now.output)
    blob = to_blob([pairs.slice(0, 1), pairs.slice(1)], now.output)
    column = pa.array([None, blob, None, blob], pa.binary())
    unpack = unpack_function(now, "shown in plans")
    assert unpack.__name__ == unpack.__qualname__ == "shown in plans"
    found = list(unpack(iter([pa.record_batch({"pairs": column})])))
    assert pa.Table.from_batches(found) == pa.Table.from_batches([pairs, pairs])
