# SPDX-License-Identifier: Apache-2.0
"""Joins of several frames are those of several tables, whatever the partitions."""

import pytest

from host import UsageError
from host import join_many as join_tables
from spark_offload import join_many
from tests.host.operators.test_many import NAMES, THREE, WHERE, nested_loops, rows_of, table_of
from tests.spark_offload.spark_tables import frame_of_table

FOUR = (*THREE, [(-2, 0, 1), (1, 1, None), (2, 0, 0), (7, 1, 3)])


def rows_in(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (THREE, {"within": 4, "where": WHERE}),
        (FOUR, {"within": 6, "advance": 2}),
        pytest.param(FOUR, {"within": 3, "partition_by": "range"}, marks=pytest.mark.long),
    ],
    ids=["where", "windows in common", "ranges"],
)
def test_results_are_those_of_nested_loops(spark, inputs, words):
    frames = {
        name: frame_of_table(spark, table_of(rows), name)
        for name, rows in zip(NAMES, inputs, strict=False)
    }
    found = join_many(frames, time="t", on="k", partitions=3, device="software:", **words)
    assert found.columns == [f"{name}.{own}" for name in frames for own in "tkx"]
    wanted = nested_loops(inputs, words["within"], words.get("advance"), "where" in words)
    assert rows_in(found) == sorted(rows_of(inputs, wanted), key=repr)
    assert len(wanted) > 3


def test_columns_of_their_own_names_and_times(spark):
    tables = {
        name: table_of(rows, temporal=True).rename_columns(columns)
        for name, rows, columns in zip(
            NAMES, THREE, (["t", "a key", "x"], ["earliest", "k.k", "x"], ["t", "k", "x"]),
            strict=False,
        )
    }  # fmt: skip
    words = {
        "time": ["t", "earliest", "t"], "on": [["a key", "k.k", "k"]], "within": "4s",
        "where": "abs(a.x - b.x) <= 2 and c.x != b['x']",
    }  # fmt: skip
    frames = {name: frame_of_table(spark, table, name) for name, table in tables.items()}
    expected = join_tables(tables, **words)
    found = join_many(frames, **words, partitions=2)
    assert found.columns == expected.column_names
    expected = frame_of_table(spark, expected, "expected")
    assert rows_in(found) == rows_in(expected)
    assert expected.count() > 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"on": "missing"}, "no column 'missing' in input 'a'"),
        ({"time": ["t", "t", "x"]}, "must be of one type"),
        ({"how": "left"}, "join_many has no argument how"),
    ],
)
def test_what_is_refused(spark, changes, words):
    tables = [table_of(rows, temporal=True) for rows in THREE]
    frames = {
        name: frame_of_table(spark, table, name) for name, table in zip(NAMES, tables, strict=False)
    }
    with pytest.raises(UsageError, match=words):
        join_many(frames, **{"time": "t", "within": "3s", "device": "software:"} | changes)
    streams = frames | {"b": spark.readStream.format("rate").load()}
    with pytest.raises(UsageError, match="'b'"):
        join_many(streams, time="t", within="3s")
