# SPDX-License-Identifier: Apache-2.0
"""Columns that Spark treats in its own way: names that differ in case only, and texts that are
equal though their bytes differ."""

from collections import Counter
import unicodedata

from pyspark.sql import functions as F
import pytest

from host import UsageError
from host.errors import AcceleratorLimitError
from spark_offload import (
    asof_join,
    explain,
    join_aggregate,
    overlap_join,
    stream_aggregate,
    stream_join,
    verify,
)
from spark_offload.verification.comparison import all_of_stream
from tests.spark_offload.stream_folders import row

NAMES = "T int, t int, K string, k string, E int, e int, V int, v int"
ROWS = [
    (0, 1, "x", "a", 0, 2, 9, 1), (0, 2, "x", "b", 0, 4, 8, 2), (0, 3, "y", "a", 0, 3, 7, 3),
    (9, 9, "y", "b", 0, 9, 6, 4),
]  # fmt: skip


@pytest.fixture(scope="module")
def twins(spark):
    """A frame each of whose names is one of another column, but for its case."""
    return spark.createDataFrame(ROWS, NAMES)


@pytest.mark.long
def test_names_that_differ_in_case_only_are_names_of_different_columns(twins):
    near = {"on": "k", "device": "software:", "partitions": 2}
    told = {"n": "count", "s": "sum:v", "S": "sum:V", "m": "mean:V"}
    matches = join_aggregate(twins, twins, time="t", within=2, aggregates=told, **near)
    assert sorted(map(tuple, matches.collect())) == [
        (*ROWS[0], 2, 4, 16, 8.0), (*ROWS[1], 1, 2, 8, 8.0), (*ROWS[2], 2, 4, 16, 8.0),
        (*ROWS[3], 1, 4, 6, 6.0),
    ]  # fmt: skip
    assert matches.columns == [*twins.columns, *told]
    overlaps = overlap_join(twins, twins, left_interval=("t", "e"), **near)
    assert overlaps.columns == [*twins.columns, *(f"{name}_right" for name in twins.columns)]
    pairs = {(row.v, row.v_right) for row in overlaps.collect()}
    assert pairs == {(1, 1), (2, 2), (3, 3), (4, 4)}
    # Spark itself has the greatest text.
    told = {"n": "max:K", "N": "max:k", "m": "sum:v"}
    windows = stream_aggregate(twins, time="t", window=5, on=["K", "k"], aggregates=told)
    assert windows.columns == ["window_start", "window_end", "K", "k", "n", "N", "m"]
    assert sorted(map(tuple, windows.collect())) == [
        (0, 5, "x", "a", "x", "a", 1), (0, 5, "x", "b", "x", "b", 2),
        (0, 5, "y", "a", "y", "a", 3), (5, 10, "y", "b", "y", "b", 4),
    ]  # fmt: skip
    assert verify(overlaps).agrees


@pytest.mark.long
def test_names_of_streams_may_differ_in_case_only(folders):
    for seconds in (1, 2, 100, 200):
        folders.drop([{**row(seconds), "k": "a", "x": seconds}], [{**row(seconds), "k": "a"}])
    left, right = (
        folders.stream(side).selectExpr("t", "k", "upper(k) as K", "x as V", "-x as v", "k as T")
        for side in ("left", "right")
    )
    told = {"v": "sum:v", "V": "sum:V"}
    windows = stream_aggregate(left, time="t", window="5s", on=["K", "k"], aggregates=told)
    with all_of_stream(windows) as answer:
        assert [tuple(found)[2:] for found in answer.toDF(*"abcdef").orderBy("a").collect()] == [
            ("A", "a", -3, 3), ("A", "a", -100, 100)
        ]  # fmt: skip
    asked = {"left_interval": ("t", "t"), "longest": "1s", "on": "k", "device": "software:"}
    with all_of_stream(overlap_join(left, right, **asked)) as answer:
        assert answer.count() >= 3


TEXTS = ["aB", "ab", "AB ", "\u00e4b", "a\u0308b", None, "x"]
BARE = str.maketrans("", "", "\u0308")
RULES = {
    "UTF8_LCASE": str.lower,
    "UNICODE_CI_AI": lambda text: unicodedata.normalize("NFD", text.lower()).translate(BARE),
    "UNICODE_RTRIM": lambda text: unicodedata.normalize("NFC", text).rstrip(" "),
}
"""By collation: texts are equal if these are."""


def collated(spark, collation, first=0):
    """Return rows of a time and a text, each text twice."""
    rows = [(first + at, text) for at, text in enumerate(TEXTS * 2)]
    frame = spark.createDataFrame(rows, "t int, k string")
    return frame.select("t", F.collate("k", collation).alias("k"))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "collation",
    ["UTF8_LCASE", pytest.param("UNICODE_CI_AI", marks=pytest.mark.long), "UNICODE_RTRIM"],
)
def test_texts_are_equal_where_spark_finds_them_equal(spark, collation):
    rows, near = collated(spark, collation), {"on": "k", "time": "t", "within": 9}
    keys = [None if text is None else RULES[collation](text) for text in TEXTS * 2]
    for refused in (
        lambda: stream_join(rows, rows, device="software:", **near),
        lambda: join_aggregate(rows, rows, aggregates={"n": "count"}, **near),
    ):
        with pytest.raises(AcceleratorLimitError, match=f"k' has collation {collation}"):
            refused()
    earlier = asof_join(rows, rows, time="t", on="k", allow_exact_matches=False)
    assert earlier.schema["k_right"].dataType.collation == collation
    assert f"has collation {collation}" in str(explain(earlier))
    found = {row.t: row.t_right for row in earlier.collect() if row.t_right is not None}
    assert found == {
        at: max(other for other in range(at) if keys[other] == key)
        for at, key in enumerate(keys)
        if key is not None and key in keys[:at]
    }
    groups = stream_aggregate(
        rows, time="t", window=100, on="k", aggregates={"n": "count", "last": "max:k"}
    )
    assert sorted(row.n for row in groups.collect()) == sorted(Counter(keys).values())
    for answer in (earlier, groups):
        assert not explain(answer).offloaded


def test_what_cannot_be_left_to_spark_is_refused_by_name(spark, folders):
    rows, other = collated(spark, "UTF8_LCASE"), collated(spark, "UNICODE_CI")
    near = {"on": "k", "time": "t", "within": 9}
    folders.drop([row(1)], [row(1)])
    streams = [
        folders.stream(side).select("t", "x", F.collate("k", "UTF8_LCASE").alias("k"))
        for side in ("left", "right")
    ]
    within = {"on": "k", "time": "t", "within": "9s", "device": "software:"}
    for refused in (
        lambda: stream_join(rows, rows, **near),
        lambda: stream_join(rows, rows, **{**near, "within": None, "rows": 5}),
        lambda: asof_join(rows, rows, time="t", on="k", strict=True),
        lambda: stream_aggregate(
            rows, time="t", window=9, on="k", aggregates={"n": "count"}, strict=True
        ),
        lambda: stream_join(*streams, **within),
        lambda: asof_join(*streams, time="t", on="k"),
        lambda: overlap_join(*streams, left_interval=("t", "t"), longest="1s", on="k"),
    ):
        with pytest.raises(AcceleratorLimitError) as caught:
            refused()
        assert "k' has collation UTF8_LCASE" in str(caught.value)
        assert "such as collate(lower(k), 'UTF8_BINARY')" in str(caught.value)
    for refused in (
        lambda: stream_join(rows, other, **near),
        lambda: asof_join(rows, other, time="t", on="k"),
    ):
        with pytest.raises(UsageError, match=r"'left\.k' has collation UTF8_LCASE and 'right\.k'"):
            refused()


@pytest.mark.long
def test_collations_of_other_columns_are_kept_and_do_not_matter(spark):
    rows = collated(spark, "UNICODE_CI").withColumn("key", F.col("t") % 3)
    near = {"on": "key", "time": "t", "within": 9, "device": "software:"}
    joined = stream_join(rows, rows, **near)
    assert explain(joined).offloaded
    assert (
        joined.where("k = 'AB'").count() > joined.where("collate(k, 'UTF8_BINARY') = 'AB'").count()
    )
    assert asof_join(rows, rows, time="t", on="key").schema == joined.schema


def test_padded_texts_of_other_lengths_are_refused(spark):
    def padded(length):
        kind = {"__CHAR_VARCHAR_TYPE_STRING": f"char({length})"}
        return collated(spark, "UTF8_BINARY").withMetadata("k", kind)

    near = {"time": "t", "within": 9, "device": "software:"}
    said = r"'left\.k' is char\(5\) and 'right\.k' char\(3\): .* rtrim\(k\)"
    with pytest.raises(UsageError, match=said):
        stream_join(padded(5), padded(3), on="k", **near)
    with pytest.raises(UsageError, match=said):
        asof_join(padded(5), padded(3), time="t", on="k")
    assert explain(stream_join(padded(5), padded(5), on="k", **near)).offloaded
