# SPDX-License-Identifier: Apache-2.0
"""Eight streaming joins run in one session at the same time, on two cores."""

import random
import time

import pytest

from tests.spark_offload.stream_folders import random_batch, rows_of

pytest.importorskip("google.protobuf", reason="Spark's state store is spoken to by protobuf")

QUERIES = 8


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_eight_queries_of_a_session_have_the_answers_of_the_batch_joins(spark, folders, tmp_path):
    rng = random.Random(5)
    asked = [
        {"on": "k", "time": "t", "within": f"{1 + number}s", "partitions": 1}
        for number in range(QUERIES)
    ]
    folders.drop(random_batch(rng, 0), random_batch(rng, 0))
    queries = []
    try:
        for number, words in enumerate(asked):
            writer = folders.join(**words).writeStream.format("parquet")
            writer = writer.option("path", str(tmp_path / f"out-{number}"))
            query = writer.option("checkpointLocation", str(tmp_path / f"state-{number}")).start()
            queries.append(query)
            # Spark starts a Python process in the first micro-batch, and waits ten seconds for it.
            while query.isActive and query.lastProgress is None:
                time.sleep(0.1)
        folders.drop(random_batch(rng, 1), random_batch(rng, 1))
        for query in queries:
            query.processAllAvailable()
            assert query.isActive
    finally:
        for query in queries:
            query.stop()
    counts = []
    for number, words in enumerate(asked):
        expected = rows_of(folders.oracle(**words))
        assert rows_of(spark.read.parquet(str(tmp_path / f"out-{number}"))) == expected
        counts.append(expected.total())
    assert counts == sorted(counts)
    assert counts[0] > 0
