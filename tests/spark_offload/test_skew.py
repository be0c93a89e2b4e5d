# SPDX-License-Identifier: Apache-2.0
"""A key that holds many of the rows is divided by time, and the answer is that of the oracle."""

from functools import partial
import random

import pytest

from host.query.queries import Term
from spark_offload import explain, metrics, stream_join
from spark_offload.partitioning import placement
from spark_offload.partitioning.ranges import RangeRule
from tests.spark_offload.test_join import SCHEMA
from tests.spark_offload.test_join_types import expected

KINDS = ["inner", "left", "right", "full", "left_semi", "left_anti"]


def skewed(seed, count, span):
    rng = random.Random(seed)
    return [
        {
            "t": rng.randrange(span),
            "k": 0 if rng.random() < 0.4 else rng.choice([*range(1, 30), None]),
            "x": rng.randrange(40),
        }
        for _ in range(count)
    ]


@pytest.fixture
def stored(spark, tmp_path, monkeypatch):
    """Two inputs whose sizes Spark knows, taken for large, and a filter that passes all rows."""
    monkeypatch.setattr(placement, "SMALL_BYTES", 0)
    monkeypatch.setattr(placement, "PAYING_ROWS", 0)
    monkeypatch.setattr(placement, "FULL_ROWS", 8)
    monkeypatch.setattr(placement, "RangeRule", partial(RangeRule, paying=10))

    def store(*sides):
        frames = []
        for name, rows in zip(("left", "right"), sides, strict=True):
            path = str(tmp_path / name)
            tuples = [tuple(row.values()) for row in rows]
            spark.createDataFrame(tuples, SCHEMA).coalesce(1).write.parquet(path)
            frames.append(spark.read.parquet(path).where("t + 0 is not null"))
        return frames

    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 60)
    yield store
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("within", "how"),
    [
        *((5, how) for how in KINDS[:1]),
        *((40, how) for how in KINDS[:1]),
        *(pytest.param(40, how, marks=pytest.mark.long) for how in KINDS[1:]),
        *(pytest.param(5, how, marks=pytest.mark.long) for how in KINDS[1:]),
        pytest.param(400, "full", marks=pytest.mark.long),
    ],
)
def test_the_answer_is_that_of_the_oracle(stored, within, how):
    left, right = skewed(1, 260, 400), skewed(2, 220, 400)
    joined = stream_join(
        *stored(left, right), on="k", time="t", within=within, how=how, device="software:"
    )
    found = [tuple(row) for row in joined.collect()]
    wanted = expected(left, right, how, [Term("k", "k")], within=within)
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    assert "where a key has too many rows, by time" in explain(joined).partitioning
    tasks = metrics(joined).tasks
    used = [task.left_rows + task.right_rows for task in tasks if task.left_rows]
    assert len(used) > 2
    if within < 400:
        assert max(used) < 0.4 * 480, "the key with 40 % of the rows is divided"


@pytest.mark.long
def test_many_ranges_are_searched_in_two_steps(stored, monkeypatch):
    left, right = skewed(3, 900, 9_000), skewed(4, 900, 9_000)
    joined = stream_join(*stored(left, right), on="k", time="t", within=9, device="software:")
    assert explain(joined).partitions > 33
    found = [tuple(row) for row in joined.collect()]
    wanted = expected(left, right, "inner", [Term("k", "k")], within=9)
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    assert len([task for task in metrics(joined).tasks if task.left_rows]) > 33
