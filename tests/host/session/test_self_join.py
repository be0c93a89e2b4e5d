# SPDX-License-Identifier: Apache-2.0
"""Rows joined with themselves: read once, and every two of them once if asked."""

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host import Query, UsageError, join, join_aggregate, open_device
from host.__main__ import main
from host.operators.verification import reference_pairs
from host.pipeline import Pipeline
from host.session.join import Join
from tests.host.small_bundles import write_manifest
from tests.host.test_every_path import INDEX, PARAMETERS

ROWS = st.lists(st.tuples(st.integers(-5, 9), st.none() | st.integers(0, 2)), max_size=20)
WORDS = {"time": "t", "on": "k", "within": 3}


def table_of(rows):
    columns = {"t": [row[0] for row in rows], "k": [row[1] for row in rows], "i": range(len(rows))}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def expected(table, *, once):
    """Return the numbers of the pairs, found by two loops."""
    rows = table.to_pylist()
    return sorted(
        (one["i"], other["i"])
        for one in rows
        for other in rows
        if one["k"] is not None and one["k"] == other["k"] and abs(one["t"] - other["t"]) <= 3
        if not once or (one["t"], one["i"]) < (other["t"], other["i"])
    )


def found(table):
    return sorted(zip(table["i"].to_pylist(), table["i_right"].to_pylist(), strict=True))


def reader_of(table, size=3):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, once=st.booleans())
def test_pairs_are_those_of_two_loops(rows, once):
    table = table_of(rows)
    in_order = table.sort_by([("t", "ascending"), ("i", "ascending")])
    wanted = expected(table, once=once)
    words = WORDS | ({"pairs": "once"} if once else {})
    assert found(join(table, table, **words, device="software:")) == wanted
    unsorted = reader_of(table)
    assert found(join(unsorted, unsorted, **words, device="software:")) == wanted
    stream = reader_of(in_order)
    assert found(join(stream, stream, **words, sorted=True, device="software:")) == wanted
    pairs = reference_pairs(table, table, Query(**words))
    assert sorted(zip(*(side.tolist() for side in pairs), strict=True)) == wanted


def test_every_kind_of_device_gives_every_two_rows_once(tmp_path):
    table = table_of([(at // 3, at % 2) for at in range(40)])
    wanted = expected(table, once=True)
    for name, parameters in {"scan": PARAMETERS, "index": INDEX}.items():
        with open_device(f"software:{write_manifest(parameters, tmp_path / name)}") as device:
            query = Query(**WORDS, pairs="once")
            assert found(Join(table, table, query, device).run().table) == wanted
            stream = reader_of(table)
            query = Query(**WORDS, pairs="once", sorted=True)
            join_of_stream = Join(stream, stream, query, device)
            assert "both" in join_of_stream.describe()
            assert found(join_of_stream.run().table) == wanted


def test_count_based_windows_and_windows_in_common():
    table = table_of([(at // 2, 0) for at in range(12)])
    last = join(table, table, time="t", rows=2, pairs="once", device="software:")
    rows = join(table, table, time="t", rows=2, device="software:")
    assert found(last) == [pair for pair in found(rows) if pair[0] < pair[1]]
    shared = join(
        table, table, time="t", within=4, advance=2, per_window=True, pairs="once",
        device="software:",
    )  # fmt: skip
    windows = list(zip(shared["t"].to_pylist(), shared["window_start"].to_pylist(), strict=True))
    assert all(start <= time < start + 4 for time, start in windows)
    assert len(set(found(shared))) < len(windows)


def test_a_file_is_read_once(tmp_path):
    table = table_of([(3, 1), (1, 0), (2, 1), (2, 1), (9, 1)])
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path)
    wanted = expected(table, once=True)
    assert found(join(path, path, **WORDS, pairs="once", device="software:")) == wanted
    options = ["--left", path, "--right", path, "--output", tmp_path / "out.parquet"]
    asked = ["--time", "t", "--on", "k", "--within", "3", "--pairs", "once", "--verify"]
    assert main(["join", *map(str, options), *asked]) == 0
    assert found(pq.read_table(tmp_path / "out.parquet")) == wanted


def test_what_is_refused(tmp_path):
    table = table_of([(1, 0), (2, 0)])
    with pytest.raises(UsageError, match="joined with themselves"):
        join(table, table.slice(0), **WORDS, pairs="once", device="software:")
    with pytest.raises(UsageError, match="joined with themselves"):
        join(table, table, **WORDS | {"time": ("t", "i")}, pairs="once", device="software:")
    with pytest.raises(UsageError, match="'all' or 'once'"):
        Query(**WORDS, pairs="twice")
    with pytest.raises(UsageError, match="how='inner'"):
        Query(**WORDS, pairs="once", how="left")
    with pytest.raises(UsageError, match="pairs has no meaning"):
        join_aggregate(table, table, **WORDS, pairs="once", aggregates={"n": "count"})
    rows, query = Pipeline.of_table(table), Query(**WORDS, pairs="once")
    with open_device("software:") as device:
        joined = rows.join(Pipeline.of_table(table), query, device)
        with pytest.raises(UsageError, match="themselves"):
            joined.count()
