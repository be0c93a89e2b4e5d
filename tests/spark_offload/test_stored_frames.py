# SPDX-License-Identifier: Apache-2.0
"""Frames that are nothing but Parquet files are read by the tasks; others go through Spark."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
import pytest

from host import UsageError
from spark_offload import asof_join, explain, metrics, stream_aggregate, stream_join


@pytest.fixture
def rows(spark, tmp_path):
    path = tmp_path / "a folder" / "rows.parquet"
    path.parent.mkdir()
    columns = {"t": list(range(90)), "k": [n % 3 for n in range(90)], "v": ["a"] * 90}
    pq.write_table(pa.table(columns), path, row_group_size=10)
    return spark.read.parquet(str(path))


def answer(left, right, **options):
    return stream_join(left, right, on="k", time="t", within=3, device="software:", **options)


def test_columns_may_be_chosen_and_renamed(spark, rows):
    chosen = rows.select(F.col("k").alias("key"), F.col("t").alias("at")).select("at", "key")
    other = rows.toDF("when", "key", "w").alias("other")
    asked = {"on": "key", "time": ("at", "when"), "within": 3, "device": "software:"}
    joined = stream_join(chosen, other, **asked, partitions=4)
    found = [tuple(row) for row in joined.collect()]
    assert "which tasks read from Parquet files" in explain(joined).partitioning
    assert explain(joined).partitions == 4
    # In the order of arrival of the later row, a left one first.
    expected = [(t, t % 3, u, t % 3, "a") for t in range(90) for u in (t - 3, t, t + 3)]
    expected = [row for row in expected if 0 <= row[2] < 90]
    expected.sort(key=lambda row: (max(row[0], row[2]), row[2] >= row[0], min(row[0], row[2])))
    assert found == expected
    measured = metrics(joined)
    assert measured.total("left_rows") == measured.total("right_rows") == 90
    assert measured.total("halo_rows") == 3 * 6


def test_a_join_of_files_has_no_shuffle_and_reads_nothing_through_the_jvm(rows, capsys):
    answer(rows, rows).explain()
    plan = capsys.readouterr().out
    assert "Exchange" not in plan
    assert "FileScan" not in plan
    answer(rows.where("t + 0 >= 0"), rows).explain()
    assert "FileScan" in capsys.readouterr().out


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda spark, rows, folder: rows.where("t % 2 > 0"), "a filter with Remainder"),
        (lambda spark, rows, folder: rows.where("v <=> 'a'"), "a filter with EqualNullSafe"),
        (lambda spark, rows, folder: rows.where("t < 2.5D"), "a filter with Cast"),
        (lambda spark, rows, folder: rows.where("t < k"), "a filter with AttributeReference"),
        (lambda spark, rows, folder: rows.where("t < year(now())"), "a filter with Cast"),
        (lambda spark, rows, folder: rows.withColumn("v", F.upper("v")), "that are computed"),
        (lambda spark, rows, folder: rows.cache(), "more than a read of files"),
        (lambda spark, rows, folder: spark.range(9).selectExpr("id t", "id k"), "no read of files"),
        (lambda spark, rows, folder: spark.read.json(folder), "no read of Parquet files"),
        (lambda spark, rows, folder: spark.read.parquet(f"{folder}/keyed"), "times in the names"),
        (
            lambda spark, rows, folder: spark.read.option("mergeSchema", True).parquet(folder),
            "options that Spark alone knows",
        ),
    ],
)
def test_what_else_a_frame_is_goes_through_spark(spark, rows, tmp_path, change, words):
    folder = str(tmp_path / "other")
    if "names" in words:
        rows.where("t < 9").write.partitionBy("t").parquet(f"{folder}/keyed")
    elif "options" in words:
        rows.write.parquet(folder)
    (tmp_path / "other").mkdir(exist_ok=True)
    if "of Parquet" in words:
        (tmp_path / "other" / "rows.json").write_text('{"t": 1, "k": 1}\n')
    other = change(spark, rows, folder)
    with pytest.raises(UsageError, match=f"the (left|right) input .*{words}"):
        answer(rows, other, partition_by="files")
    joined = answer(rows, other)
    assert "tasks read" not in explain(joined).partitioning
    assert joined.count() == answer(other, rows).count()
    other.unpersist()


def test_rows_that_a_filter_leaves_and_keys_of_folders_are_joined(spark, rows, tmp_path):
    folder = str(tmp_path / "keyed")
    rows.write.partitionBy("k").parquet(folder)
    keyed = spark.read.parquet(folder).where("k != 1 and t < 80").where(F.col("v") == "a")
    few = rows.where("t > 30").select("t", "k").where("t between 40 and 70 or k = 0")
    joined = answer(few, keyed, partition_by="files")
    expected = answer(few, keyed.where("t + 0 = t"), partitions=2)
    assert "which tasks read from Parquet files" in explain(joined).partitioning
    assert "which tasks read from Parquet files" not in explain(expected).partitioning
    found = [tuple(row) for row in joined.collect()]
    assert sorted(found) == sorted(tuple(row) for row in expected.collect())
    left = [t for t in range(31, 90) if 40 <= t <= 70 or t % 3 == 0]
    right = [t for t in range(80) if t % 3 != 1]
    assert len(found) == sum(t % 3 == u % 3 and abs(t - u) <= 3 for t in left for u in right)
    assert metrics(joined).total("left_rows") == len(left)


def test_rows_declared_sorted_need_be_so_only_where_a_filter_leaves_them(spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": [1, 2, 9, 3, 4], "k": [0, 0, 1, 0, 0]}), path)
    frame = spark.read.parquet(str(path))
    few = frame.where("k = 0")
    joined = answer(few, few, sorted=True)
    assert "which tasks read from Parquet files" in explain(joined).partitioning
    assert joined.count() == 4 * 4
    with pytest.raises(PySparkException, match="has 3 after 9"):
        answer(frame, frame, sorted=True).count()


def test_files_that_spark_may_leave_out_go_through_spark(spark, rows):
    spark.conf.set("spark.sql.files.ignoreMissingFiles", True)
    try:
        assert "tasks read" not in explain(answer(rows, rows)).partitioning
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_window_of_rows_has_no_ranges_of_time(rows):
    with pytest.raises(UsageError, match="rows=... counts the rows"):
        stream_join(rows, rows, on="k", time="t", rows=3, partition_by="files")


def test_an_aggregation_of_files_has_the_answer_of_the_same_rows(spark, tmp_path):
    rng = random.Random(1)
    for number, count in enumerate((50, 0, 31)):
        columns = {
            "v": [rng.choice([None, 1.5, 2.0]) for _ in range(count)],
            "t": [rng.choice([None, *range(100)]) for _ in range(count)],
            "k": [rng.choice(["a", "b", None]) for _ in range(count)],
        }
        schema = pa.schema([("v", pa.float64()), ("t", pa.int64()), ("k", pa.string())])
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table(columns, schema), path, row_group_size=7)
    rows = spark.read.parquet(str(tmp_path))
    asked = {"time": "t", "window": 20, "advance": 5, "on": "k", "partitions": 2}
    asked["aggregates"] = {"n": "count", "least": "min:v", "mean": "mean:v"}
    found, expected = (
        stream_aggregate(given, **asked) for given in (rows, rows.where("t + 0 = t or true"))
    )
    assert "which tasks read from Parquet files" in explain(found).partitioning
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))
    assert found.count() > 50
    assert metrics(found).total("left_rows") == rows.where("t is not null").count()


def test_decimals_are_no_order_that_footers_tell(spark, tmp_path):
    """Spark orders them; the numbers of a footer are bytes."""
    columns = {"m": pa.array([1, 2, 3], pa.decimal128(12, 2)), "k": [1, 1, 1]}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
    found = asof_join(rows, rows, time="m", on="k").collect()
    assert [(row[0], row[2]) for row in found] == [(value, value) for value in map(int, (1, 2, 3))]
