# SPDX-License-Identifier: Apache-2.0
"""Columns keep their values in the tagged frame, whatever their names."""

import pytest

from host.query.queries import Query
from spark_offload.partitioning.tagged import TaggedInputs
from tests.halves import half

NAMES = [
    ("time", "x"),
    ("order", "side"),  # which the tagged frame has too
    ("select", "null"),  # which SQL reads as something else
    ("t", "T"),  # which Spark does not tell apart
    ("a.b", "a"),
    ("`", "two words"),
    ("current_date", "größe"),
    ("c1", "c0"),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("names", "keyed", "direct"),
    half([(names,) for names in NAMES], [False, True], [False, True], of=3),
)
def test_any_name_will_do(spark, names, keyed, direct):
    rows = [(place, 10 * place) for place in range(5)]
    frame = spark.createDataFrame(rows, "t bigint, x bigint").toDF(*names)
    other = frame.selectExpr("*", "'r' AS text").toDF(*names, "text")
    keys = (names[1],) if keyed else ()
    inputs = TaggedInputs(frame, other, Query(time=names[0], within=1), (keys, keys))
    tagged = inputs.in_partitions(1, direct=direct)
    assert tagged.columns == ["side", "order", "row", "l0", "l1", "r0", "r1", "r2"]
    found = [(row.side, row.order, *row[3:]) for row in tagged.collect()]
    expected = [
        row
        for time, x in rows
        for row in ((0, time, time, x, None, None, None), (1, time, None, None, time, x, "r"))
    ]
    assert found == expected


def test_sides_of_the_same_types_share_their_columns(spark):
    frame = spark.createDataFrame([(1, 2)], "t bigint, x bigint")
    other = frame.toDF("time", "y")
    tagged = TaggedInputs(frame, other, Query(time=("t", "time"), within=1)).in_partitions(1)
    assert tagged.columns == ["side", "order", "row", "c0", "c1"]
    assert [(row.side, row.c0, row.c1) for row in tagged.collect()] == [(0, 1, 2), (1, 1, 2)]
