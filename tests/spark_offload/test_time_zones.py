# SPDX-License-Identifier: Apache-2.0
"""Zones of the session, which Java knows and Python may not: instants do not depend on them."""

from collections import Counter

from pyspark.errors import PySparkException
import pytest

from spark_offload import (
    asof_join,
    join_aggregate,
    overlap_join,
    stream_aggregate,
    stream_join,
    task_error,
)
from spark_offload.verification.comparison import all_of_stream
from tests.spark_offload.stream_folders import rows_of

_ZONE = "spark.sql.session.timeZone"

#: Forms of offsets, names of three letters, names with rules for summer time, and none of them.
ZONES = [
    "GMT+8", "UTC+01:00", "PST", "Z", "+8", "UT", "GMT-3:30", "+01:02:03", "-18:00", "EST5EDT",
    "Etc/GMT+5", "IST", "America/New_York", "Australia/Lord_Howe", "EST", "CTT",
]  # fmt: skip

#: Both sides of the hour that New York repeats, and of the one that it skips.
ROWS = """select timestamp(t) as t, k, x, array(struct(timestamp(t) as `at.x`)) as tag,
    map('first', timestamp(t)) as m from values
    ('2024-11-03 05:30:00Z', 'a', 1), ('2024-11-03 06:30:00Z', 'a', 2),
    ('2024-03-10 06:59:59Z', 'a', 3), ('2024-03-10 07:00:00Z', 'b', 4),
    ('2024-03-10 07:00:00Z', 'a', 5), ('1883-11-18 17:00:00Z', 'a', 6),
    ('9999-12-31 23:59:59Z', 'b', 7) as rows(t, k, x)"""

PATHS = {
    "stream_join": lambda f: stream_join(
        f, f, on="k", time="t", within="1h", how="left", device="software:"
    ),
    "stream_join in ranges": lambda f: stream_join(
        f, f, time="t", within="1h", device="software:", partitions=3, partition_by="range"
    ),
    "stream_join by rows": lambda f: stream_join(
        f.sort("t"), f.sort("t"), time="t", rows=2, sorted=True, device="software:", partitions=2
    ),
    "asof_join": lambda f: asof_join(f, f, time="t", on="k", allow_exact_matches=False),
    "overlap_join": lambda f: overlap_join(
        f, f.withColumnRenamed("x", "y"), left_interval=("t", "t"), device="software:"
    ),
    "join_aggregate": lambda f: join_aggregate(
        f, f, on="k", time="t", within="2h", device="software:",
        aggregates={"n": "count", "last": ("max", "t")},
    ),
    "stream_aggregate": lambda f: stream_aggregate(
        f, time="t", window="2h", advance="1h", on="k",
        aggregates={"n": "count", "last": ("max", "x")},
    ),
}  # fmt: skip


@pytest.fixture
def zone(spark):
    """Return what sets the zone of the session; it is what it was again afterwards."""
    before = spark.conf.get(_ZONE)
    yield lambda name: spark.conf.set(_ZONE, name)
    spark.conf.set(_ZONE, before)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ZONES)
def test_a_join_has_its_rows_in_every_zone_that_spark_knows(spark, zone, name):
    zone(name)
    frame = spark.sql(ROWS).coalesce(1)
    answer = PATHS["stream_join"](frame)
    pairs = [(row.x, row.x_right) for row in answer.select("x", "x_right").collect()]
    assert sorted(pairs) == [
        (1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 5), (4, 4), (5, 3), (5, 5), (6, 6), (7, 7),
    ]  # fmt: skip
    assert answer.schema["t_right"].dataType == frame.schema["t"].dataType


@pytest.mark.few(1)
@pytest.mark.parametrize("path", PATHS)
def test_every_path_has_the_rows_that_it_has_in_utc(spark, zone, path):
    found = []
    for name in ("GMT+8", "UTC"):
        zone(name)
        answer = PATHS[path](spark.sql(ROWS).repartition(2))
        found.append((sorted(map(str, as_numbers(answer).collect())), answer.schema))
    assert found[0] == found[1]


def as_numbers(frame):
    """A frame with its instants as numbers, and without what is nested."""
    return frame.selectExpr(
        *(
            f"unix_micros(`{name}`) as `{name}`" if kind == "timestamp" else f"`{name}`"
            for name, kind in frame.dtypes
            if not kind.startswith(("array", "map"))
        )
    )


def test_nested_instants_come_as_they_were(spark, zone):
    zone("GMT+8")
    answer = PATHS["stream_join"](spark.sql(ROWS))
    odd = answer.where("tag[0].`at.x` <> t or m['first'] <> t or tag_right[0].`at.x` <> t_right")
    assert answer.count() == 11
    assert odd.count() == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("t", "goes backwards"), ("if(x = 2, null, t) as t", "tag=[{'at.x': datetime.date")],
)
def test_what_is_wrong_is_said(spark, zone, wrong, said):
    zone("GMT+8")
    frame = spark.sql(ROWS).coalesce(1)
    left = frame.sort("x").selectExpr(wrong, "k", "x", "tag")
    joined = stream_join(
        left, frame.sort("t"), time="t", within="1h", sorted=True, device="software:"
    )
    with pytest.raises(PySparkException) as failed:
        joined.collect()
    assert said in str(task_error(failed.value))


@pytest.mark.long
def test_streams_have_the_rows_of_a_batch(spark, zone, tmp_path):
    spark.sql(ROWS).write.parquet(str(tmp_path / "rows"))
    zone("GMT-3:30")
    batch = spark.read.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(batch.schema).parquet(str(tmp_path / "rows"))
    stream = stream.withWatermark("t", "1 second")
    for path in (
        lambda f: stream_join(f, f, on="k", time="t", within="1h", device="software:"),
        lambda f: asof_join(f, f, time="t", on="k", within="2h"),
        lambda f: stream_aggregate(
            f, time="t", window="2h", on="k", aggregates={"n": "count", "last": ("max", "x")}
        ),
    ):
        with all_of_stream(path(stream)) as streamed:
            answer, expected = (rows_of(as_numbers(frame)) for frame in (streamed, path(batch)))
        assert len(answer) > 3
        # The watermark has not passed the last row, and begins in 1970, behind the first one.
        assert answer - expected == Counter()
        assert (expected - answer).total() <= 2, expected - answer
