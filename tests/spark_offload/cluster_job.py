# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: joins and aggregates on a cluster of two worker processes.

Its argument is the device; it prints the answer and where executors found the
packages, as JSON, on the last line.
"""

import json
import sys

from spark_offload import explain, metrics, stream_join
from spark_offload.cluster.session import open_session
from tests.spark_offload.other_operations import run_operations

__all__ = ["main"]


def found_in(batches):
    """Tell where an executor imports the packages from; the input is not looked at."""
    import pyarrow as pa

    import host
    import spark_offload

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"file": [host.__file__, spark_offload.__file__]})


def main(device):
    """Join two frames, count-based and time-based."""
    spark = open_session("cluster test", master="local-cluster[2,1,1024]")
    left = spark.range(0, 400, 2).selectExpr("id as t", "id % 7 as k", "cast(id % 10 as int) as x")
    right = spark.range(1, 400, 2).selectExpr("id as t", "id % 7 as k", "cast(id % 9 as int) as x")
    timed = stream_join(
        left, right, on="k", band={"x": (-2, 2)}, time="t", within=30, device=device, partitions=4
    )
    counted = stream_join(left, right, on="k", time="t", rows=9, device=device)
    answer = {
        "timed": sorted(tuple(row) for row in timed.collect()),
        "counted": [tuple(row) for row in counted.collect()],
        "partitions": explain(timed).partitions,
        "results": int(metrics(timed).total("results")),
        "files": [row.file for row in spark.range(2).mapInArrow(found_in, "file string").collect()],
        "operations": run_operations(spark, device),
    }
    spark.stop()
    print()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
