# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload bench-stream``: rows a second of a streaming join, window sliding."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
import os
from pathlib import Path
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from host import FailureError, UsageError
from spark_offload.failures import task_error
from spark_offload.join import stream_join
from spark_offload.plan import plan_of
from spark_offload.session import open_session
from spark_offload.streaming.metrics import MicroBatch, stream_metrics
from spark_offload.streaming.store import SHUFFLE_PARTITIONS

__all__ = ["StreamBenchmark", "add_parser", "main", "sustained_rate"]

TICK = 10
"""Microseconds of event time between two rows of a side."""

VALUES = 30_000
"""Different values of ``x``: about one pair for each left row, as benchmarked by default."""

WARM_UP = 4
"""Micro-batches that are not measured, while Java compiles what it runs."""

REACH = 1
"""Half width of the band."""


@dataclass(frozen=True)
class StreamBenchmark:
    """Two streams of rows ``t, key, x, y``, the rows of a micro-batch shuffled in time.

    A pair matches if the keys are equal and ``x``, uniform over 0 to 29,999, differs by at most 1.

    Parameters
    ----------
    rows : int
        Rows of a micro-batch, both sides together.
    batches : int
        Micro-batches.
    keys : int
        Different keys.
    window : int
        Rows of a side that the window holds.
    seed : int
        Of the random numbers.
    """

    rows: int = 400_000
    batches: int = 12
    keys: int = 4
    window: int = 20_000
    seed: int = 2016

    @property
    def within(self) -> str:
        """Width of the window."""
        return f"{self.window * TICK}us"

    @property
    def delay(self) -> str:
        """Delay of the watermark: a quarter of a micro-batch."""
        return f"{max(1, self.rows // 2 * TICK // 4000)} milliseconds"

    def write(self, folder: Path) -> None:
        """Write both streams, a file for each micro-batch and side."""
        rng = np.random.default_rng(self.seed)
        count = self.rows // 2
        for side in ("left", "right"):
            (folder / side).mkdir()
            for number in range(self.batches):
                ticks = number * count + np.arange(count)
                # Out of order by up to a quarter of a micro-batch, less than the delay.
                order = np.argsort(ticks + rng.integers(0, max(1, count // 4), count))
                table = pa.table(
                    {
                        "t": pa.array(1_600_000_000_000_000 + ticks[order] * TICK).cast(
                            pa.timestamp("us", tz="UTC")
                        ),
                        "key": rng.integers(0, self.keys, count, dtype=np.int32),
                        "x": rng.integers(0, VALUES, count, dtype=np.int32),
                        "y": rng.random(count),
                    }
                )
                path = folder / side / f"{number:04}.parquet"
                pq.write_table(table, path)
                # Spark takes files by their age.
                os.utime(path, (1_600_000_000 + number,) * 2)

    def join(self, spark: SparkSession, folder: Path, *, device: str, groups: int) -> DataFrame:
        """Return the join of both streams, a file of each side in a micro-batch."""
        frames = [
            spark.readStream.schema("t timestamp, key int, x int, y double")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / side))
            .withWatermark("t", self.delay)
            for side in ("left", "right")
        ]
        return stream_join(
            frames[0],
            frames[1],
            on="key",
            band={"x": (-REACH, REACH)},
            order="t",
            within=self.within,
            device=device,
            partitions=groups,
        )

    def run(self, spark: SparkSession, *, device: str, groups: int) -> tuple[MicroBatch, ...]:
        """Run all micro-batches; the pairs are computed and thrown away.

        Raises
        ------
        JoinError
            If the query fails.
        """
        with tempfile.TemporaryDirectory(prefix="splitjoin-bench-") as name:
            folder = Path(name)
            self.write(folder)
            joined = self.join(spark, folder, device=device, groups=groups)
            print(plan_of(joined).explanation)
            query = (
                joined.writeStream.format("noop")
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                raise task_error(error) from error
            return stream_metrics(query)


def sustained_rate(batches: Sequence[MicroBatch], *, skip: int = WARM_UP) -> float:
    """Return rows a second over whole micro-batches, the first ``skip`` left out.

    Raises
    ------
    FailureError
        If there are no others.
    """
    measured = [batch for batch in batches if batch.rows][skip:]
    if not measured:
        raise FailureError(f"No micro-batch came after the first {skip}; give more --batches.")
    return sum(batch.rows for batch in measured) / sum(batch.trigger_seconds for batch in measured)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``bench-stream``."""
    defaults = StreamBenchmark()
    parser = subparsers.add_parser(
        "bench-stream",
        help="measure a streaming join",
        description="Join two generated streams in Spark's Structured Streaming and print the rows "
        "a second. Rows of both sides of one file each are a micro-batch.",
    )
    for name, text in (
        ("rows", "rows of a micro-batch, both sides together"),
        ("batches", "micro-batches"),
        ("keys", "different keys"),
        ("window", "rows of a side in the window"),
    ):
        parser.add_argument(
            f"--{name}",
            type=int,
            default=getattr(defaults, name),
            metavar="N",
            help=f"{text}; default: %(default)s",
        )
    parser.add_argument(
        "--warm-up",
        type=int,
        default=WARM_UP,
        metavar="N",
        help="first micro-batches that are not measured; default: %(default)s",
    )
    parser.add_argument(
        "--device", default="software:", help="device to join on; default: %(default)s"
    )
    parser.add_argument(
        "--groups",
        type=int,
        metavar="N",
        help="groups of rows, and partitions of the state; default: one for each core of Spark",
    )
    parser.add_argument("--master", default="local[*]", help="Spark master; default: %(default)s")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the benchmark; return the exit code."""
    for name in ("rows", "batches", "keys", "window", "groups"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} must be at least 1, not {value}.")
    if not 0 <= options.warm_up < options.batches:
        raise UsageError(
            f"--warm-up must be at least 0 and less than the {options.batches} micro-batches of "
            f"--batches, not {options.warm_up}."
        )
    benchmark = StreamBenchmark(options.rows, options.batches, options.keys, options.window)
    spark = open_session("splitjoin bench-stream", master=options.master)
    groups = options.groups or spark.sparkContext.defaultParallelism
    spark.conf.set(SHUFFLE_PARTITIONS, str(groups))
    batches = benchmark.run(spark, device=options.device, groups=groups)
    print("\nmicro-batch       rows    results  late   in state  seconds  device s")
    kept = 0
    for batch in batches:
        kept += batch.stored - batch.expired
        print(
            f"{batch.batch:11} {batch.rows:10,} {batch.results:10,} {batch.late_rows:5,} "
            f"{kept:10,} {batch.trigger_seconds:8.2f} {batch.device_seconds:9.2f}"
        )
    rate = sustained_rate(batches, skip=options.warm_up)
    print(f"\n{rate:,.0f} rows/s, the first {options.warm_up} micro-batches left out")
    return 0
