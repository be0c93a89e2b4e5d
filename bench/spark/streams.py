# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.spark streams``: rows a second of streaming joins, windows sliding."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
import json
import os
from pathlib import Path
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from host import FailureError, UsageError
from host.installation import CommandParser
from spark_offload.api.joins import stream_join
from spark_offload.cluster.session import open_session
from spark_offload.errors import task_error
from spark_offload.plan.plan import plan_of
from spark_offload.stream.metrics import MicroBatch, stream_metrics
from spark_offload.stream.task import SHUFFLE_PARTITIONS

__all__ = [
    "CASES",
    "StreamBenchmark",
    "WARM_UP",
    "add_parser",
    "main",
    "sustained_rate",
]

# Streaming joins whose rows a second are measured, windows sliding.

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
            time="t",
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


# ``python -m bench.spark streams``: rows a second of streaming joins, windows sliding.

OUTPUT = Path("build") / "bench" / "spark-stream.json"
"""Where the figures go by default."""


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``streams``."""
    defaults = CASES["small"]
    parser = subparsers.add_parser(
        "streams",
        help="measure streaming joins",
        description="Join two generated streams in Spark's Structured Streaming and print the rows "
        "a second: once with a state about as large as a micro-batch, and once with a state ten "
        "times as large. Rows of both sides of one file each are a micro-batch. With any of "
        "--rows, --batches, --keys and --window, one join of these numbers is measured instead.",
        example="--state small",
    )
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "--state", choices=[*CASES, "both"], default="both", help="default: %(default)s"
    )
    for name, text in (
        ("rows", "rows of a micro-batch, both sides together"),
        ("batches", "micro-batches"),
        ("keys", "different keys"),
        ("window", "rows of a side in the window"),
    ):
        group.add_argument(
            f"--{name}",
            type=int,
            metavar="N",
            help=f"{text}; {getattr(defaults, name)} if another of these four is given",
        )
    group.add_argument(
        "--warm-up",
        type=int,
        metavar="N",
        help="first micro-batches that are not measured; default: until the window is full, and "
        f"two more, but at least {WARM_UP}",
    )
    group.add_argument(
        "--device", default="software:", help="device to join on; default: %(default)s"
    )
    group.add_argument(
        "--groups",
        type=int,
        metavar="N",
        help="groups of rows, and partitions of the state; default: one for each core of Spark",
    )
    group.add_argument("--master", default="local[*]", help="Spark master; default: %(default)s")
    group.add_argument(
        "--output", type=Path, default=OUTPUT, metavar="FILE", help="default: %(default)s"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the benchmark; return the exit code."""
    for name in ("rows", "batches", "keys", "window", "groups"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} must be at least 1, not {value}.")
    cases = _cases(options)
    skips = {
        name: case.warm_up if options.warm_up is None else options.warm_up
        for name, case in cases.items()
    }
    for name, case in cases.items():
        if not 0 <= skips[name] < case.batches:
            raise UsageError(
                f"--warm-up must be at least 0 and less than the {case.batches} micro-batches of "
                f"--batches, not {skips[name]}."
            )
    spark = open_session("splitjoin bench-stream", master=options.master)
    groups = options.groups or spark.sparkContext.defaultParallelism
    spark.conf.set(SHUFFLE_PARTITIONS, str(groups))
    figures = []
    for name, case in cases.items():
        batches = case.run(spark, device=options.device, groups=groups)
        kept = _show(batches)
        rate = sustained_rate(batches, skip=skips[name])
        figures.append(
            {
                "name": f"spark.stream.rows_per_s_{name}_state",
                "value": rate,
                "unit": "rows/s",
                "micro_batch_rows": case.rows,
                "state_rows": kept,
            }
        )
        print(
            f"\n{rate:,.0f} rows/s, the first {skips[name]} micro-batches left out, with micro-"
            f"batches of {case.rows:,} rows and up to {kept:,} rows in the state\n"
        )
    for figure in figures:
        print(f"{figure['name']:36} {figure['value']:12,.0f}  {figure['unit']}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _cases(options: argparse.Namespace) -> dict[str, StreamBenchmark]:
    """Return what is to be measured, by name."""
    given = {
        name: getattr(options, name)
        for name in ("rows", "batches", "keys", "window")
        if getattr(options, name) is not None
    }
    if given:
        return {"chosen": replace(CASES["small"], **given)}
    return CASES if options.state == "both" else {options.state: CASES[options.state]}


def _show(batches: Sequence[MicroBatch]) -> int:
    """Print a row for each micro-batch; return the greatest size of the state."""
    print("\nmicro-batch       rows    results  late   in state  seconds  device s")
    kept = most = 0
    for batch in batches:
        kept += batch.stored - batch.expired
        most = max(most, kept)
        print(
            f"{batch.batch:11} {batch.rows:10,} {batch.results:10,} {batch.late_rows:5,} "
            f"{kept:10,} {batch.trigger_seconds:8.2f} {batch.device_seconds:9.2f}"
        )
    return most
