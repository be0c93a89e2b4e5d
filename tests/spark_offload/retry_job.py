# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: random joins in a Spark that runs failed tasks again.

Its arguments are a seed and the number of joins. Their inputs lie in random partitions, and come in
another order each time; about half of the tasks, those that read as those that join, fail at their
first attempt, after some rows. It prints queries, rows and answers as JSON on the last line.
"""

import json
import random
import sys

from pyspark.sql import functions as F

from spark_offload import metrics, stream_join
from spark_offload.cluster.session import open_session

__all__ = ["main"]


def failing(seed):
    """Return the function for ``mapInArrow`` that fails once in about half of the partitions."""

    def fail(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        unlucky = (context.partitionId() * 7 + seed) % 2 == 0
        for batch in batches:
            yield batch.slice(0, batch.num_rows // 2)
            if unlucky and not context.attemptNumber():
                raise ValueError("on purpose")
            yield batch.slice(batch.num_rows // 2)

    return fail


def random_query(rng):
    """Return what is asked for: window, terms, and how the work is divided."""
    window = rng.choice([{"within": rng.randrange(40)}, {"rows": rng.randrange(1, 20)}])
    asked = {"band": {"x": (-rng.randrange(9), rng.randrange(9))}} if rng.random() < 0.7 else {}
    if rng.random() < 0.5:
        asked["on"] = "k"
        if "within" in window:
            asked["partition_by"] = rng.choice(["key", "range"])
    return {**window, **asked, "partitions": rng.randrange(1, 6)}


def main(seed, joins):
    """Join random frames."""
    spark = open_session("retries", master="local[2,3]")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    rng = random.Random(int(seed))
    answers = []
    for number in range(int(joins)):
        # No two rows of a side at one time: which of them comes first would be anybody's guess.
        sides = [
            [
                {"t": t, "k": rng.randrange(4), "x": rng.randrange(20)}
                for t in sorted(rng.sample(range(150), rng.randrange(1, 60)))
            ]
            for _ in range(2)
        ]
        frames = []
        for side, rows in enumerate(sides):
            frame = spark.createDataFrame(
                [tuple(row.values()) for row in rows], "t int, k int, x int"
            )
            frame = frame.repartition(rng.randrange(1, 5)).orderBy(F.rand())
            frames.append(frame.mapInArrow(failing(number + side), frame.schema))
        query = random_query(rng)
        pairs = stream_join(*frames, time="t", device="software:", **query)
        found = [tuple(row) for row in pairs.mapInArrow(failing(number), pairs.schema).collect()]
        attempts = [task.attempt for task in metrics(pairs).tasks]
        answers.append({"query": query, "sides": sides, "rows": found, "attempts": attempts})
    spark.stop()
    print()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
