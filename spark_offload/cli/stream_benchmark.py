# SPDX-License-Identifier: Apache-2.0
"""Streaming joins whose rows a second are measured, windows sliding."""

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

from host import FailureError
from spark_offload.failures.translation import task_error
from spark_offload.join import stream_join
from spark_offload.planning.plan import plan_of
from spark_offload.streaming.metrics import MicroBatch, stream_metrics

__all__ = ["CASES", "WARM_UP", "StreamBenchmark", "sustained_rate"]

TICK = 10
"""Microseconds of event time between two rows of a side."""

WARM_UP = 4
"""The least number of micro-batches that are not measured, while Java compiles what it runs."""

REACH = 1
"""Half width of the band."""


@dataclass(frozen=True)
class StreamBenchmark:
    """Two streams of rows ``t, key, x, y``, the rows of a micro-batch shuffled in time.

    A pair matches if the keys are equal and ``x`` differs by at most 1. The values of ``x`` are
    uniform over as many as give about one pair for each left row, however large the window is.

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
    def values(self) -> int:
        """Different values of ``x``."""
        return max(1, 6 * self.window // self.keys)

    @property
    def warm_up(self) -> int:
        """Micro-batches before the rate is measured: until the window is full, and two more."""
        return max(WARM_UP, -(-self.window // max(1, self.rows // 2)) + 2)

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
                        "x": rng.integers(0, self.values, count, dtype=np.int32),
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


CASES = {
    "small": StreamBenchmark(),
    "large": StreamBenchmark(rows=40_000, batches=20, window=200_000),
}
"""By the size of the state: 1.4 times a micro-batch, and ten times as large as one."""


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
