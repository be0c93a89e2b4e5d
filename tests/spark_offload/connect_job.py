# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: joins by way of a server of Spark Connect.

Its arguments are a device, a folder to work in, and the page of which it runs the code; it prints
what came of it as JSON on the last line.
"""

from datetime import UTC, datetime, timedelta
import json
import os
from pathlib import Path
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from host import JoinError
from spark_offload import asof_join, explain, metrics, stream_join, stream_metrics, task_error
from spark_offload.cluster.session import PROVIDER, ROCKSDB
from tests.spark_offload.other_operations import run_operations

__all__ = ["main"]

MASTER = "local[2]"

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def found_in(batches):
    """Tell where an executor imports the packages from; the input is not looked at."""
    import host
    import spark_offload

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"file": [host.__file__, spark_offload.__file__]})


def refusal(function):
    """Return the message of the error that a call ends with."""
    try:
        function()
    except JoinError as error:
        return str(error)
    return None


def batch_joins(spark, device):
    """Join two frames by key, by count, and by ranges of time."""
    left = spark.range(0, 400, 2).selectExpr("id as t", "id % 7 as k", "cast(id % 10 as int) as x")
    right = spark.range(1, 400, 2).selectExpr("id as t", "id % 7 as k", "cast(id % 9 as int) as x")
    band = {"x": (-2, 2)}
    timed = stream_join(left, right, on="k", band=band, time="t", within=30, device=device)
    counted = stream_join(left, right, on="k", time="t", rows=9, device=device)
    ranges = stream_join(left, right, band=band, time="t", within=30, device=device, partitions=3)
    answer = {
        "timed": sorted(tuple(row) for row in timed.collect()),
        "counted": [tuple(row) for row in counted.collect()],
        "ranges": [tuple(row) for row in ranges.collect()],
        "partitions": explain(timed).partitions,
        "timed_partitioning": explain(timed).partitioning,
        "partitioning": explain(counted).partitioning,
        "metrics": refusal(lambda: metrics(timed)),
        "files": [row.file for row in spark.range(2).mapInArrow(found_in, "file string").collect()],
    }
    late = left.selectExpr("nullif(t, 6) as t", "k", "x")
    broken = stream_join(late, right, on="k", time="t", within=30, device=device)
    try:
        broken.collect()
    except Exception as error:
        answer["error"] = f"{type(task_error(error)).__name__}: {task_error(error)}"
    return answer


def streams(spark, folder):
    """Return two streams of two files each."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set(PROVIDER, ROCKSDB)
    frames = []
    for side in ("left", "right"):
        place = Path(folder, side)
        place.mkdir()
        for number in range(2):
            seconds = [number * 50 + index for index in range(50)]
            times = [BEGIN + timedelta(seconds=second) for second in seconds]
            table = pa.table(
                {
                    "t": pa.array(times, pa.timestamp("us", tz="UTC")),
                    "k": pa.array([second % 3 for second in seconds], pa.int32()),
                    "id": pa.array(seconds, pa.int32()),
                }
            )
            pq.write_table(table, place / f"{number}.parquet")
            os.utime(place / f"{number}.parquet", (1_600_000_000 + number,) * 2)
        rows = spark.readStream.schema("t timestamp, k int, id int").option("maxFilesPerTrigger", 1)
        frames.append(rows.parquet(str(place)).withWatermark("t", "1 second"))
    return frames


def written(spark, joined, folder):
    """Write a stream to its end; return the query, and the identities of its rows."""
    query = (
        joined.writeStream.format("parquet")
        .option("path", str(Path(folder, "out")))
        .option("checkpointLocation", str(Path(folder, "checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(Path(folder, "out"))).select("id", "id_right").collect()
    return query, sorted(tuple(row) for row in rows)


def stream(spark, device, frames, folder):
    """Join two streams over a window."""
    joined = stream_join(*frames, on="k", time="t", within="7s", device=device, partitions=2)
    query, pairs = written(spark, joined, folder)
    return {
        "pairs": pairs,
        "watermark": explain(joined).watermark,
        "results": sum(batch.results for batch in stream_metrics(query)),
        "cycles": sum(batch.cycles for batch in stream_metrics(query)),
    }


def asof_stream(spark, frames, folder):
    """Join each row of a stream with the one before it of another stream."""
    joined = asof_join(*frames, time="t", on="k", allow_exact_matches=False, partitions=2)
    query, pairs = written(spark, joined, folder)
    batches = stream_metrics(query)
    return {
        "pairs": pairs,
        "results": sum(batch.results for batch in batches),
        "stored": sum(batch.stored for batch in batches),
    }


def page_code(page):
    """Run the blocks of a page that reach a server; return how many there are."""
    blocks = re.findall(r"```python\n(.*?)```", Path(page).read_text(), re.DOTALL)
    found = [block for block in blocks if "sc://localhost" in block]
    for block in found:
        # The server of this process is known by its master instead.
        exec(compile(block.replace("sc://localhost", MASTER), page, "exec"), {})
    return len(found)


def main(device, folder, page):
    """Start a server for this very process, and join."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote(MASTER).getOrCreate()
    answer = batch_joins(spark, device)
    answer["operations"] = run_operations(spark, device)
    answer["page"] = page_code(page)
    frames = streams(spark, folder)
    answer["stream"] = stream(spark, device, frames, Path(folder, "window"))
    answer["asof_stream"] = asof_stream(spark, frames, Path(folder, "asof"))
    spark.stop()
    print()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
