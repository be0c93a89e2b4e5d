# SPDX-License-Identifier: Apache-2.0
"""What is taken for a plain read, and that a task that reads its inputs itself joins the same."""

from pyspark.sql import functions as F
import pytest

from host.errors import OrderError
from spark_offload import explain, stream_join
from spark_offload.cluster.query_plans import (
    FILTERING,
    estimated_bytes,
    is_plain_read,
    partition_settings,
)
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.test_join import collected, random_rows


def files(spark, folder, rows, *, parts=3, more=False):
    """Return rows as a frame of several files, in their order; ``more`` adds a column."""
    size = -(-len(rows) // parts)
    for part in range(parts):
        some = rows[part * size : (part + 1) * size]
        frame = spark.createDataFrame(
            [tuple(row.values()) for row in some], "t bigint, k int, x int"
        )
        frame = frame.withColumn("name", F.col("k").cast("string")) if more else frame
        frame.coalesce(1).write.parquet(str(folder / f"part={part}"))
    return spark.read.parquet(*(str(folder / f"part={part}") for part in range(parts)))


def test_a_source_and_columns_of_its_rows_are_a_plain_read(spark, tmp_path):
    stored = files(spark, tmp_path, random_rows(1, 30))
    assert is_plain_read(stored)
    assert is_plain_read(stored.select("x", (F.col("t") * 2).alias("t")))
    assert is_plain_read(spark.range(5).withColumn("x", F.lit(1)))
    assert 0 < estimated_bytes(stored) < 1 << 20


def test_what_computes_is_none(spark, tmp_path):
    stored = files(spark, tmp_path, random_rows(1, 30))
    slow = F.udf(lambda x: x, "int")
    for frame in (
        stored.where("x > 3"),
        stored.withColumn("x", slow("x")),
        stored.groupBy("k").agg(F.max("t").alias("t")),
        stored.join(stored.select("k"), "k"),
        stored.repartition(3),
        stored.limit(5),
        spark.createDataFrame(stored.rdd, stored.schema),
    ):
        assert not is_plain_read(frame)
    assert is_plain_read(stored.where("x > 3").select("t"), FILTERING)
    assert not is_plain_read(stored.where(slow("x") > 3), FILTERING)
    cached = stored.cache()
    assert not is_plain_read(cached)
    assert not is_plain_read(cached.select("t"))
    assert is_plain_read(spark.range(5))
    cached.unpersist()
    assert is_plain_read(cached)


def test_a_view_and_a_table_of_files_are_plain_reads(spark, tmp_path):
    stored = files(spark, tmp_path, random_rows(1, 30))
    stored.createOrReplaceTempView("plainly_stored")
    assert is_plain_read(spark.table("plainly_stored"))
    assert is_plain_read(spark.sql("SELECT x, t + 1 AS t FROM plainly_stored"))
    assert not is_plain_read(spark.sql("SELECT DISTINCT x FROM plainly_stored"))
    spark.catalog.dropTempView("plainly_stored")


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "window"),
    [
        (False, {"within": 9}),
        (True, {"rows": 6}),
        pytest.param(True, {"within": 9}, marks=pytest.mark.long),
        pytest.param(False, {"rows": 6}, marks=pytest.mark.long),
    ],
)
def test_a_task_that_reads_its_inputs_itself_joins_the_same(spark, tmp_path, more, window):
    frames = (
        files(spark, tmp_path / "left", random_rows(3, 70, span=25)),
        files(spark, tmp_path / "right", random_rows(4, 60, span=25), more=more),
    )
    # Spark reads files in an order of its own, which is that of the input.
    left, right = ([row.asDict() for row in frame.collect()] for frame in frames)
    asked = {"band": {"x": (-9, 9)}, "time": "t", "device": "software:", **window}
    joined = stream_join(*frames, **asked)
    assert "its task reads the inputs itself" in explain(joined).partitioning
    computed = stream_join(frames[0].where("t + 0 >= 0"), frames[1], **asked, partitions=1)
    assert "reads the inputs" not in explain(computed).partitioning
    expected = join_rows(left, right, lambda l, r: abs(l["x"] - r["x"]) <= 9, time="t", **window)
    assert collected(joined) == expected
    assert collected(computed) == expected


@pytest.mark.long
def test_rows_that_go_back_in_time_are_named_where_they_stand(spark, tmp_path):
    rows = sorted(random_rows(5, 60), key=lambda row: row["t"])
    rows[41]["t"] = -1
    frame = files(spark, tmp_path, rows)
    joined = stream_join(
        frame, frame, on="k", time="t", within=5, device="software:", sorted=True, partitions=1
    )
    with pytest.raises(Exception, match=OrderError.__name__) as caught:
        joined.count()
    assert "left.t" in str(caught.value)


def test_the_settings_of_spark_say_how_large_partitions_are_and_how_many(spark):
    sizes = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    count = "spark.sql.shuffle.partitions"
    before = {name: spark.conf.get(name) for name in (sizes, count)}
    try:
        spark.conf.set(count, 17)
        for text, size in (("64MB", 1 << 26), ("3g", 3 << 30), ("1000", 1000), ("5k", 5 << 10)):
            spark.conf.set(sizes, text)
            assert partition_settings(spark) == (size, 17)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
