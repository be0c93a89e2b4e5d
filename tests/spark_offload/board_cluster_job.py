# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: a join on a cluster of two workers with a board each.

Its arguments are a folder to work in and the addresses of two boards; it prints the answer and the
devices as JSON on the last line.
"""

import json
from pathlib import Path
import sys

from spark_offload import metrics, stream_join
from spark_offload.cluster.session import open_session
from tests.spark_offload.discovery import discovery_options

__all__ = ["main"]


def main(folder, first, second):
    """Join two ranges on the boards that Spark assigns to the tasks."""
    options = discovery_options(Path(folder), first, second, amount="1")
    spark = open_session("boards", master="local-cluster[2,1,1024]", options=options)
    left = spark.range(0, 160, 2).selectExpr("id as t", "id % 11 as k")
    right = spark.range(1, 160, 2).selectExpr("id as t", "id % 11 as k")
    pairs = stream_join(
        left, right, on="k", time="t", rows=30, device="resource:card", partitions=2
    )
    answer = {
        "pairs": sorted(tuple(row) for row in pairs.collect()),
        "devices": sorted({task.device for task in metrics(pairs).tasks}),
        "tuples_r": metrics(pairs).counters()["tuples_r"],
    }
    spark.stop()
    print()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
