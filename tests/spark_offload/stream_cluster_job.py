# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: a streaming join on a cluster of two worker processes.

Its arguments are the device, a folder to work in, and the number of executors to lose, which are
killed in the middle of a micro-batch. It prints the answer as JSON on the last line.
"""

from datetime import UTC, datetime, timedelta
import json
import os
from pathlib import Path
import signal
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from spark_offload import stream_join, stream_metrics
from spark_offload.cluster.session import open_session

__all__ = ["main"]

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def executor():
    """Return the process of the executor that a task runs in: Java, above the Python workers."""
    process = os.getppid()
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        process = int(fields[1])
    return process


def killing(losses):
    """Return the function for ``mapInArrow`` that kills an executor for each file of a folder.

    It does so when pairs of the second micro-batch have passed, of which some come from the state.
    """

    def kill(batches):
        for batch in batches:
            yield batch
            times = batch.column("t").to_pylist()
            for loss in Path(losses).iterdir():
                if any(time.minute or time.second >= 50 for time in times):
                    loss.unlink()
                    os.kill(executor(), signal.SIGKILL)

    return kill


def main(device, folder, lose="0"):
    """Join two streams of two files each."""
    losses = Path(folder, "losses")
    losses.mkdir()
    for number in range(int(lose)):
        losses.joinpath(str(number)).touch()
    spark = open_session("stream cluster test", master="local-cluster[2,1,1024]")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    frames = []
    for side in ("left", "right"):
        place = Path(folder, side)
        place.mkdir()
        for number in range(2):
            seconds = [number * 50 + index for index in range(50)]
            table = pa.table(
                {
                    "t": pa.array(
                        [BEGIN + timedelta(seconds=second) for second in seconds],
                        pa.timestamp("us", tz="UTC"),
                    ),
                    "k": pa.array([second % 3 for second in seconds], pa.int32()),
                }
            )
            pq.write_table(table, place / f"{number}.parquet")
            os.utime(place / f"{number}.parquet", (1_600_000_000 + number,) * 2)
        stream = spark.readStream.schema("t timestamp, k int").option("maxFilesPerTrigger", 1)
        frames.append(stream.parquet(str(place)).withWatermark("t", "1 second"))
    # A pool of one: the tasks of both groups take turns, in every micro-batch.
    joined = stream_join(*frames, on="k", time="t", within="7s", device=[device], partitions=2)
    joined = joined.mapInArrow(killing(str(losses)), joined.schema)
    query = (
        joined.writeStream.format("parquet")
        .option("path", str(Path(folder, "out")))
        .option("checkpointLocation", str(Path(folder, "checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    pairs = [
        [int((time - BEGIN.replace(tzinfo=None)).total_seconds()) for time in row]
        for row in spark.read.parquet(str(Path(folder, "out")))
        .selectExpr("cast(t as timestamp_ntz) as l", "cast(t_right as timestamp_ntz) as r")
        .collect()
    ]
    cycles = sum(batch.cycles for batch in stream_metrics(query))
    spark.stop()
    print()
    left = len(list(losses.iterdir()))
    print(json.dumps({"pairs": sorted(pairs), "cycles": cycles, "losses left": left}))


if __name__ == "__main__":
    main(*sys.argv[1:])
