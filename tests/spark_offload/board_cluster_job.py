# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: a join on a cluster to whose executors Spark assigns boards.

Its arguments are a folder to work in and the addresses of two boards; it prints the answer and the
devices as JSON on the last line.
"""

import json
from pathlib import Path
import sys

from spark_offload import explain, metrics, stream_join
from spark_offload.session.spark_session import open_session
from tests.spark_offload.resource_discovery import write_discovery

__all__ = ["main"]


def main(folder, first, second):
    """Join with the boards that Spark assigns."""
    script = write_discovery(Path(folder), "board", first, second)
    options = {
        "spark.worker.resource.board.amount": "1",
        "spark.worker.resource.board.discoveryScript": str(script),
        "spark.executor.resource.board.amount": "1",
        "spark.task.resource.board.amount": "1",
    }
    spark = open_session("boards", master="local-cluster[2,1,1024]", options=options)
    left = spark.range(0, 160, 2).selectExpr("id as t", "id % 7 as k")
    right = spark.range(1, 160, 2).selectExpr("id as t", "id % 7 as k")
    pairs = stream_join(
        left, right, on="k", order="t", rows=9, device="resource:board", partitions=2
    )
    answer = {
        "pairs": sorted(tuple(row) for row in pairs.collect()),
        "chosen": explain(pairs).chosen,
        "devices": [task.device for task in metrics(pairs).tasks],
        "attempts": [task.attempt for task in metrics(pairs).tasks],
    }
    spark.stop()
    print()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
