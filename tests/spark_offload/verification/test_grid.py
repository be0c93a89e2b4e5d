# SPDX-License-Identifier: Apache-2.0
"""Cells of a grid: rows that match meet in one of them, and no row is repeated for many."""

import math

import pyarrow as pa
from pyspark.sql import functions as F
import pytest

from host.query.queries import Term
from spark_offload.partitioning.columns import arrow_schema
from spark_offload.verification.own_queries import (
    cells_of,
    difference_of,
    in_cells,
    repeated_for_cells,
)
from tests.spark_offload.spark_tables import frame_of_table

LONGS = [-(2**63), 1 - 2**63, -43, -42, -1, 0, 1, 41, 42, 2**62, 2**63 - 2, 2**63 - 1, None]
DOUBLES = [-math.inf, -1.7e308, -1e16, -0.1, -0.0, 5e-324, 0.1, 3.7, 1e16, 1.7e308, math.inf]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "values", "bounds"),
    [
        (pa.int64(), LONGS, (-10, 10)),
        (pa.int64(), LONGS, (2**60, 2**60 + 7)),
        (pa.float64(), [*DOUBLES, math.nan, None], (-0.1, 0.3)),
        pytest.param(pa.int64(), LONGS, (3, -3), marks=pytest.mark.long),
        pytest.param(pa.float64(), [*DOUBLES, math.nan, None], (2.5, 2.5), marks=pytest.mark.long),
    ],
)
def test_every_row_reaches_few_cells_and_a_null_none(spark, kind, values, bounds):
    frame = frame_of_table(spark, pa.table({"x": pa.array(values, kind)}), "a table")
    schemas = (frame.schema,) * 2
    arrow = (arrow_schema(frame.schema, "left"),) * 2
    cells = cells_of(difference_of(Term("x", "x", *bounds), schemas, arrow))
    fields = [(cells, F.col("x"))] * 2
    for side in (0, 1):
        placed = in_cells(frame, "cell", fields, side).collect()
        assert [row["cell"] is None for row in placed] == [value is None for value in values]
        repeated = repeated_for_cells(frame.where("x is not null"), "cell", fields, side)
        counts = repeated.groupBy("x").agg(F.count("cell"), F.count_distinct("cell")).collect()
        assert len(counts) == len(values) - values.count(None)
        for _, copies, keys in counts:
            # A band reaches two cells of each field, and a few more where doubles are coarse.
            assert 1 <= keys == copies <= 16
        assert repeated_for_cells(frame.where("x is null"), "cell", fields, side).count() == 0


def test_what_excludes_next_to_nothing_is_not_cut(spark):
    frame = spark.createDataFrame([], "x bigint, y double")
    schemas = (frame.schema,) * 2
    arrow = (arrow_schema(frame.schema, "left"),) * 2
    for term in (
        Term("x", "x"),
        Term("x", "x", 3, None),
        Term("x", "x", -(2**62), 0),
        Term("y", "y", -1e300, 1),
    ):
        assert cells_of(difference_of(term, schemas, arrow)) is None
