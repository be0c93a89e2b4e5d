# SPDX-License-Identifier: Apache-2.0
"""Ranges of time read from Parquet files are those of the same rows sorted by a plain loop."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf, nan
import operator
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from host import FailureError
from host.errors import OrderError
from host.reference.types import JoinType
from spark_offload.cluster.query_plans import ParquetRead
from spark_offload.partitioning import stored
from spark_offload.partitioning.halos import time_halos
from spark_offload.partitioning.stored import StoredRanges, stored_input

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = {
    "int64": (pa.int64(), int),
    "int8": (pa.int8(), int),
    "date32": (pa.date32(), lambda t: (EPOCH + timedelta(days=t)).date()),
    "instant": (pa.timestamp("us", "UTC"), lambda t: EPOCH + timedelta(microseconds=t)),
    "local": (pa.timestamp("us"), lambda t: datetime(1970, 1, 1) + timedelta(microseconds=t)),
}
ROWS = st.lists(st.tuples(st.integers(-20, 20), st.one_of(st.none(), st.text(max_size=3))))


def written(folder, side, rows, kind, *, files, group):
    """Write rows to so many files, in row groups of so many rows; return what reads them."""
    dtype, value = TIMES[kind]
    schema = pa.schema([("s", pa.string()), ("t", dtype), ("unread", pa.int8())])
    share = -(-len(rows) // files) or 1
    paths = []
    for number in range(files):
        part = rows[number * share : (number + 1) * share]
        path = folder / f"{side}-{number}.parquet"
        columns = {
            "s": [s for _, s in part], "t": [value(t) for t, _ in part], "unread": [1] * len(part)
        }  # fmt: skip
        pq.write_table(pa.table(columns, schema), path, row_group_size=group)
        paths.append(str(path))
    return ParquetRead(tuple(paths), ("s", "t")), schema.field("t").type


def found(folder, side, rows, kind, *, is_sorted=False, files=1, group=100):
    read, dtype = written(folder, side, rows, kind, files=files, group=group)
    schema = pa.schema([("word", pa.string()), ("t", dtype)])
    return stored_input(side, read, schema, "t", is_sorted=is_sorted)


def read_out(ranges):
    """Return the rows of all ranges as tuples, range by range."""
    answer = []
    for part in range(ranges.partitions):
        batches = list(ranges.tagged(iter([pa.record_batch({"id": [part]})])))
        answer.append([tuple(row.values()) for batch in batches for row in batch.to_pylist()])
    return answer


def expected(sides, kind, halos, how, *, files):
    """Return the same from a plain loop."""
    _, value = TIMES[kind]
    common = int if kind.startswith("int") else value
    answer = []
    for part in range(len(halos.starts) + 1):
        end = halos.starts[part] if part < len(halos.starts) else 1 << 62
        rows = []
        for side, own in enumerate(sides):
            begin = halos.reaches[side][part - 1] if part else -(1 << 62)
            share = -(-len(own) // files) or 1
            for at, (t, s) in enumerate(own):
                number = (at // share << 33) + at % share
                if begin <= t < end:
                    rows.append((t, side, number, s))
        tagged = []
        for t, side, number, s in sorted(rows, key=lambda row: row[:3]):
            halo = part > 0 and t < halos.starts[part - 1]
            row = (side, common(t), number, s, value(t), part, halo)
            if how is not JoinType.INNER:
                steps = halos.departures
                row += (sum(step <= t for step in steps) == part,)
            tagged.append(row)
        answer.append(tagged)
    return answer


@settings(max_examples=60)
@given(
    left=ROWS,
    right=ROWS,
    kind=st.sampled_from(sorted(TIMES)),
    how=st.sampled_from([JoinType.INNER, JoinType.LEFT, JoinType.FULL, JoinType.LEFT_SEMI]),
    starts=st.sets(st.integers(-22, 22), max_size=4).map(sorted),
    width=st.integers(0, 9),
    files=st.integers(1, 3),
    group=st.integers(1, 5),
    is_sorted=st.booleans(),
    unit=st.sampled_from([1, 4, 1 << 20]),
    batch=st.sampled_from([1, 3, 1 << 16]),
)
def test_each_range_has_its_rows_and_its_halo_in_the_order_of_arrival(
    tmp_path_factory,
    left, right, kind, how, starts, width, files, group, is_sorted, unit, batch,
):  # fmt: skip
    sides = [sorted(rows, key=lambda row: row[0]) if is_sorted else rows for rows in (left, right)]
    folder = tmp_path_factory.mktemp("stored")
    inputs = StoredRanges(
        *(
            found(folder, side, rows, kind, is_sorted=is_sorted, files=files, group=group)
            for side, rows in zip(("left", "right"), sides, strict=True)
        )
    )
    halos = time_halos(starts, width, how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "UNIT_ROWS", unit)
        patch.setattr(stored, "BATCH_ROWS", batch)
        answer = read_out(replace(inputs, halos=halos))
    assert answer == expected(sides, kind, halos, how, files=files)


def test_columns_of_different_types_stand_beside_each_other(tmp_path):
    left = found(tmp_path, "left", [(0, "a"), (2, "b")], "int64")
    right = found(tmp_path, "right", [(1, "c"), (2, "d")], "int8")
    (rows,) = read_out(StoredRanges(left, right))
    assert rows == [
        (0, 0, 0, "a", 0, None, None, 0, False),
        (1, 1, 0, None, None, "c", 1, 0, False),
        (0, 2, 1, "b", 2, None, None, 0, False),
        (1, 2, 1, None, None, "d", 2, 0, False),
    ]


def test_a_profile_follows_the_row_groups(tmp_path):
    rows = [(t, None) for t in range(-20, 0)] + [(t, None) for t in range(100, 120) for _ in "four"]
    left = found(tmp_path, "left", rows, "int64", group=20)
    right = found(tmp_path, "right", [], "int64")
    profile = StoredRanges(left, right).profile(2)
    assert (profile.rows, profile.least, profile.greatest) == ((100, 0), -20, 119)
    (start,) = profile.starts(2)
    assert 106 < start <= 109, "three eighths of the eighty rows from 100 on lie before it"


def test_what_is_read_again_is_known(tmp_path):
    rows = [(t, None) for t in range(100)]
    left = found(tmp_path, "left", rows, "int64", group=10)
    right = found(tmp_path, "right", rows, "int64", group=100)
    halos = time_halos((50,), 5, JoinType.INNER)
    # The left row group from 40 on is read for the halo of the second range; the right one twice.
    assert StoredRanges(left, right, halos).read_share() == (110 + 200) / 200


TESTED = {
    "whole": (pa.int32(), [-1, 0, 1, 2]),
    "text": (pa.string(), ["", "a", "ab", "\u00e9"]),
    "flag": (pa.bool_(), [False, True]),
    "real": (pa.float64(), [-inf, -0.0, 0.0, 1.5, nan]),
    "key": (pa.int64(), [3]),
}
FIELDS = pa.schema([(name, dtype) for name, (dtype, _) in TESTED.items()])


@st.composite
def comparisons(draw):
    """Return conditions on one column, as those of Spark become Arrow's."""
    name = draw(st.sampled_from(sorted(TESTED)))
    dtype, values = TESTED[name]
    column = pc.field(name)
    sign = draw(st.sampled_from(["eq", "lt", "le", "gt", "ge", "is_null", "is_valid"]))
    if sign.startswith("is"):
        return getattr(column, sign)()
    value = draw(st.sampled_from([value for value in values if value == value]))
    found = getattr(operator, sign)(column, pa.scalar(value, dtype))
    return found | pc.is_nan(column) if name == "real" and sign.startswith("g") else found


CONDITIONS = st.recursive(
    comparisons(),
    lambda part: st.one_of(
        part.map(operator.invert),
        st.tuples(part, part).map(lambda two: two[0] & two[1]),
        st.tuples(part, part).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=4,
)


@settings(max_examples=150)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {n: st.sampled_from([None, *v]) for n, (_, v) in TESTED.items() if n != "key"}
        ),
        max_size=12,
    ),
    where=CONDITIONS,
    group=st.integers(1, 4),
    key=st.sampled_from([3, 4, None]),
)
@example(
    rows=[{"whole": 0, "text": "", "flag": None, "real": real} for real in (0.0, nan)],
    where=~(pc.field("real") <= 0.0),
    group=2,
    key=3,
)
def test_row_groups_are_left_out_only_if_a_filter_leaves_nothing_of_them(
    tmp_path_factory, rows, where, group, key
):
    path = tmp_path_factory.mktemp("filtered") / "rows.parquet"
    schema = FIELDS.remove(len(FIELDS) - 1).append(pa.field("t", pa.int64()))
    table = pa.Table.from_pylist([{**row, "t": at} for at, row in enumerate(rows)], schema)
    pq.write_table(table, path, row_group_size=group)
    keys = {"key": (pa.scalar(key, pa.int64()),)}
    read = ParquetRead((str(path),), ("t", "text"), keys, where, FIELDS)
    columns = pa.schema([schema.field("t"), schema.field("text")])
    own = stored_input("left", read, columns, "t", is_sorted=True)
    found = [row for chunk in own.chunks(0, 100) for row in chunk.rows.to_pylist()]
    whole = table.append_column("key", pa.array([key] * len(rows), pa.int64()))
    assert found == whole.filter(where).select(["t", "text"]).to_pylist()


def test_footers_tell_of_which_row_groups_a_filter_leaves_nothing(tmp_path):
    path = tmp_path / "rows.parquet"
    columns = {"t": range(8), "s": ["a", "a", "b", None, "c", "c", None, None], "x": [0.5] * 8}
    pq.write_table(pa.table(columns), path, row_group_size=2)
    tested = pa.schema([("s", pa.string()), ("x", pa.float64())])

    def groups(where, names):
        fields = pa.schema([tested.field(name) for name in names])
        read = ParquetRead((str(path),), ("t",), where=where, tested=fields)
        own = stored_input("left", read, pa.schema([("t", pa.int64())]), "t", is_sorted=True)
        return [(group.place, group.first) for group in own.groups]

    assert groups(pc.field("s") >= "b", ["s"]) == [(1, 2), (2, 4)]
    assert groups(pc.field("s").is_null(), ["s"]) == [(1, 2), (3, 6)]
    assert groups(pc.field("s") > "c", ["s"]) == []
    assert len(groups((pc.field("s") > "c") & (pc.field("x") < 0.0), ["s", "x"])) == 4


def test_a_row_that_goes_back_in_time_is_named_if_declared_sorted(tmp_path):
    rows = [(0, None), (5, None), (3, None), (9, None)]
    own = found(tmp_path, "left", rows, "int64", is_sorted=True)
    with pytest.raises(OrderError, match=r"'left\.t': row 2 .* has 3 after 5"):
        list(own.chunks(4, 100))
    assert isinstance(found(tmp_path, "left", rows, "int64", is_sorted=True, group=2), str)


def test_a_file_that_changed_is_an_error(tmp_path):
    own = found(tmp_path, "left", [(0, None), (5, None)], "int64")
    found(tmp_path, "left", [(0, None), (6, None)], "int64")
    with pytest.raises(FailureError, match="changed after the join was planned"):
        list(own.chunks(0, 100))


def damage(path):
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 60 + data[64:])


@pytest.mark.parametrize("harm", [damage, lambda path: path.write_bytes(b"text"), Path.unlink])
def test_a_file_that_cannot_be_read_any_more_is_an_error_that_names_it(tmp_path, harm):
    own = found(tmp_path, "left", [(t, None) for t in range(99)], "int64")
    harm(tmp_path / "left-0.parquet")
    with pytest.raises(FailureError, match=r"left-0\.parquet.*plan the join again\.$"):
        list(own.chunks(0, 100))


@pytest.mark.parametrize(
    ("times", "changes", "words"),
    [
        ([1, None], {}, "nulls among them"),
        ([1], {"write_statistics": False}, "does not tell the times"),
        ([1], {"most": ("MOST_FILES", 0)}, "has 1 files, more than 0"),
        ([3, 1, 2, 0], {"most": ("MOST_SORTED", 3), "row_group_size": 2}, "overlap in time"),
    ],
)
def test_what_tasks_cannot_read_is_told(tmp_path, monkeypatch, times, changes, words):
    path = tmp_path / "rows.parquet"
    if "most" in changes:
        monkeypatch.setattr(stored, *changes.pop("most"))
    pq.write_table(pa.table({"t": times}), path, **changes)
    read = ParquetRead((str(path),), ("t",))
    schema = pa.schema([("t", pa.int64())])
    assert words in stored_input("left", read, schema, "t", is_sorted=False)


def test_columns_must_be_to_arrow_what_they_are_to_spark(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns", "UTC")), "u": [1]}), path)
    read = ParquetRead((str(path),), ("t",))
    instants = pa.schema([("t", pa.timestamp("us", "UTC"))])
    assert "column 't' is timestamp[ns, tz=UTC] to Arrow and timestamp[us, tz=UTC] to Spark" in (
        stored_input("left", read, instants, "t", is_sorted=False)
    )
    lacking = ParquetRead((str(path),), ("T",))
    assert "without exactly one column 'T'" in stored_input(
        "left", lacking, instants, "t", is_sorted=False
    )
    gone = ParquetRead((str(tmp_path / "gone.parquet"),), ("t",))
    assert "Arrow does not read" in stored_input("left", gone, instants, "t", is_sorted=False)
