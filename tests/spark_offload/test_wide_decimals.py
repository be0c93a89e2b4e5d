# SPDX-License-Identifier: Apache-2.0
"""Equal decimals of 38 digits, Spark's own default among them, on every path."""

from collections import Counter

import pytest

from spark_offload import asof_join, join_aggregate, stream_aggregate, stream_join, verify
from spark_offload.verification.comparison import all_of_stream
from tests.spark_offload.stream_folders import rows_of

#: Beyond 64 bits in units of the last digit, and equal to them in the lower 64 bits.
VALUES = ["100.5", "9.3", "18446744073709551616", "0", "18446744073709551617.5", "-100.5", None]


def rows(spark, kind):
    """Each value twice, at two times, as far as its type has it."""
    frame = spark.createDataFrame(
        [(at * 3 + again, value, at) for at, value in enumerate(VALUES) for again in (0, 1)],
        "t int, p string, id int",
    )
    return frame.selectExpr("t", f"try_cast(p as {kind}) as p", "id")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["decimal(38,18)", "decimal(38,1)", "decimal(30,2)"])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_decimals_of_two_scales_are_joined(spark, kind, how):
    left, right = rows(spark, "decimal(38,18)"), rows(spark, kind)
    answer = stream_join(left, right, on="p", time="t", within=1, how=how, device="software:")
    found = Counter((row.id, row.id_right) for row in answer.collect())
    expected = Counter({(at, at): 4 for at, value in enumerate(VALUES) if value is not None})
    if how == "full":
        expected += Counter({(6, None): 2, (None, 6): 2})
    assert found == expected


def test_a_value_that_the_other_type_does_not_have_meets_nothing_and_is_kept(spark):
    nines = "9" * 38
    left = spark.sql(f"select 1 as t, cast('{nines}' as decimal(38,0)) as p")
    right = spark.sql("select 1 as t, cast('1.5' as decimal(38,18)) as p")
    for how, count in (("inner", 0), ("left", 1), ("full", 2)):
        answer = stream_join(left, right, on="p", time="t", within=1, how=how, device="software:")
        assert answer.count() == count


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "path",
    [
        lambda f: stream_join(f, f, on="p", time="t", within=1, device="software:"),
        lambda f: asof_join(f, f, time="t", on="p", allow_exact_matches=False),
        lambda f: stream_aggregate(
            f, time="t", window=100, on="p", aggregates={"n": "count", "last": ("max", "id")}
        ),
        lambda f: join_aggregate(
            f, f, on="p", time="t", within=1, aggregates={"n": "count"}, device="software:"
        ),
    ],
    ids=["stream_join", "asof_join", "stream_aggregate", "join_aggregate"],
)
def test_the_answer_is_that_of_spark(spark, path):
    answer = path(rows(spark, "decimal(38,18)"))
    assert answer.where("p = 100.5").count() > 0
    assert verify(answer).agrees


@pytest.mark.long
def test_streams_have_the_rows_of_a_batch(spark, tmp_path):
    frame = rows(spark, "decimal(38,18)").selectExpr("timestamp_seconds(t) as t", "p", "id")
    frame.coalesce(1).write.parquet(str(tmp_path / "rows"))
    batch = spark.read.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(batch.schema).parquet(str(tmp_path / "rows"))
    stream = stream.withWatermark("t", "1 second")
    asked = {"on": "p", "time": "t", "within": "1s", "device": "software:"}
    with all_of_stream(stream_join(stream, stream, **asked)) as streamed:
        answer = rows_of(streamed)
    assert answer == rows_of(stream_join(batch, batch, **asked))
    assert answer.total() == 4 * (len(VALUES) - 1)
