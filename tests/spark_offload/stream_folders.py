# SPDX-License-Identifier: Apache-2.0
"""Two folders of files as streams of Spark, their join, and the batch join of the same rows."""

from collections import Counter
from datetime import UTC, datetime, timedelta
import os

import pyarrow as pa
import pyarrow.parquet as pq

from spark_offload import stream_join

__all__ = ["ARROW", "BEGIN", "SCHEMA", "Folders", "at", "random_batch", "row", "rows_of"]

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
SCHEMA = "t timestamp, k string, x bigint, tag array<struct<id:int>>"
ARROW = pa.schema(
    [
        ("t", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("x", pa.int64()),
        ("tag", pa.list_(pa.struct([("id", pa.int32())]))),
    ]
)


class Folders:
    """Two folders of files, each file one micro-batch of a stream."""

    def __init__(self, spark, path):
        self._spark = spark
        self._path = path
        self._files = 0
        self.checkpoint = str(path / "checkpoint")
        self.out = str(path / "out")
        for side in ("left", "right"):
            (path / side).mkdir()

    def drop(self, left, right):
        """Add a micro-batch."""
        for side, rows in (("left", left), ("right", right)):
            hidden = self._path / side / f".{self._files}"
            pq.write_table(pa.Table.from_pylist(rows, ARROW), hidden)
            # Spark takes files by their age.
            os.utime(hidden, (1_600_000_000 + self._files,) * 2)
            hidden.rename(self._path / side / f"{self._files}.parquet")
        self._files += 1

    def stream(self, side, delay="4 seconds"):
        """Read a folder as a stream, a file at a time."""
        reader = self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        frame = reader.parquet(str(self._path / side))
        return frame if delay is None else frame.withWatermark("t", delay)

    def batch(self, side):
        """Read all files of a folder."""
        return self._spark.read.schema(SCHEMA).parquet(str(self._path / side))

    def join(self, **arguments):
        """Join both streams."""
        return stream_join(
            self.stream("left"), self.stream("right"), **{"device": "software:", **arguments}
        )

    def oracle(self, **arguments):
        """Join all rows, as a batch."""
        return stream_join(
            self.batch("left"), self.batch("right"), **{"device": "software:", **arguments}
        )

    def run(self, joined):
        """Run all micro-batches that there are, into files."""
        query = (
            joined.writeStream.format("parquet")
            .option("path", self.out)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def answer(self):
        """Read what was written."""
        return self._spark.read.parquet(self.out)


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


def row(seconds, key="a", x=0, number=0):
    return {"t": at(seconds), "k": key, "x": x, "tag": [{"id": number}]}


def random_batch(rng, number, count=25):
    """Rows of a micro-batch of 10 seconds, at most 3 seconds out of order, some with nulls."""
    return [
        {
            "t": at(10 * number + 13 * rng.random() - 3),
            "k": rng.choice(["a", "b", "ü", None]),
            "x": rng.choice([2**62, 2**62 + 1, 2**62 + 3, None]),
            "tag": [{"id": rng.randrange(1000)}],
        }
        for _ in range(count)
    ]


def rows_of(frame):
    return Counter(str(row) for row in frame.collect())
