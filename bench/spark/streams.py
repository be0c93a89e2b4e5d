# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.spark streams``: rows a second of streaming joins, windows sliding."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
import json
import os
from pathlib import Path
import tempfile
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle, StreamingQuery

from bench.spark.race import require_positive
from host import FailureError, UsageError
from host.installation import CommandParser
from spark_offload.api import stream_join
from spark_offload.cluster.session import open_session
from spark_offload.errors import task_error
from spark_offload.measures import MicroBatch, stream_metrics
from spark_offload.plan.plan import plan_of
from spark_offload.stream.task import SHUFFLE_PARTITIONS

__all__ = [
    "CASES",
    "Nothing",
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

    def frames(self, spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
        """Return both streams, a file of each side in a micro-batch."""
        left, right = (
            spark.readStream.schema("t timestamp, key int, x int, y double")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / side))
            .withWatermark("t", self.delay)
            for side in ("left", "right")
        )
        return left, right

    def join(self, spark: SparkSession, folder: Path, *, device: str, groups: int) -> DataFrame:
        """Return the join of both streams."""
        left, right = self.frames(spark, folder)
        return stream_join(
            left,
            right,
            on="key",
            band={"x": (-REACH, REACH)},
            time="t",
            within=self.within,
            device=device,
            partitions=groups,
        )

    def nothing(self, spark: SparkSession, folder: Path) -> DataFrame:
        """Return what Spark does for any stateful query in Python: two groups, nothing kept."""
        left, right = (
            frame.mapInArrow(_counted, "group int, count bigint")
            for frame in self.frames(spark, folder)
        )
        groups = left.unionAll(right).groupBy("group")
        return groups.transformWithStateInPandas(Nothing(), "count bigint", "Append", "None")

    def run(
        self, spark: SparkSession, *, device: str, groups: int, queries: int = 1
    ) -> tuple[MicroBatch, ...]:
        """Run all micro-batches, in so many queries at once; the pairs are thrown away.

        Returns
        -------
        tuple of MicroBatch
            Those of the first query.

        Raises
        ------
        JoinError
            If the query fails.
        """
        with self.streamed() as folder:
            # Queries of one frame would share what Spark changes and sends at the same time.
            frames = [
                self.join(spark, folder, device=device, groups=groups) for _ in range(queries)
            ]
            print(plan_of(frames[0]).explanation)
            running = [
                _started(frame, folder / f"checkpoint-{n}") for n, frame in enumerate(frames)
            ]
            _await(running)
            return stream_metrics(running[0])

    def floors(self, spark: SparkSession, *, skip: int) -> dict[str, float]:
        """Return rows a second of what Spark does without the join, by what that is."""
        rates = {}
        for name, frame in (
            ("reading", lambda folder: DataFrame.unionAll(*self.frames(spark, folder))),
            ("nothing", lambda folder: self.nothing(spark, folder)),
        ):
            with self.streamed() as folder:
                query = _started(frame(folder), folder / "checkpoint")
                _await([query])
            seconds = [
                batch["durationMs"]["triggerExecution"] / 1000
                for batch in query.recentProgress
                if batch["numInputRows"]
            ][skip:]
            rates[name] = self.rows * len(seconds) / sum(seconds)
        return rates

    @contextmanager
    def streamed(self) -> Iterator[Path]:
        """A folder with both streams, for as long as the body runs."""
        with tempfile.TemporaryDirectory(prefix="splitjoin-bench-") as name:
            self.write(Path(name))
            yield Path(name)


def _started(frame: DataFrame, checkpoint: Path) -> StreamingQuery:
    """Return a query that takes all that there is, and throws its answer away."""
    return (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def _await(queries: Sequence[StreamingQuery]) -> None:
    """Wait until all queries have ended; none goes on if one fails."""
    try:
        for query in queries:
            query.awaitTermination()
    except StreamingQueryException as error:
        raise task_error(error) from error
    finally:
        for query in queries:
            query.stop()


class Nothing(StatefulProcessor):
    """A processor that looks at a group's rows and keeps nothing."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare a state, as there has to be one."""
        self._state = handle.getValueState("nothing", "nothing int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Return the number of rows."""
        yield pd.DataFrame({"count": [sum(map(len, rows))]})

    def close(self) -> None:
        """There is nothing to close."""


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield two rows of a partition."""
    count = sum(batch.num_rows for batch in batches)
    yield pa.record_batch(
        {"group": pa.array([0, 1], pa.int32()), "count": pa.array([count, count], pa.int64())}
    )


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
    group.add_argument(
        "--queries",
        type=int,
        default=1,
        metavar="N",
        help="queries at once in the session, of which the first one is measured; default: 1",
    )
    group.add_argument(
        "--floors",
        action="store_true",
        help="also measure what Spark does without a join: reads the same files, and runs a "
        "stateful processor that does nothing",
    )
    group.add_argument("--master", default="local[*]", help="Spark master; default: %(default)s")
    group.add_argument(
        "--output", type=Path, default=OUTPUT, metavar="FILE", help="default: %(default)s"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the benchmark; return the exit code."""
    require_positive(options, "rows", "batches", "keys", "window", "groups", "queries")
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
        batches = case.run(spark, device=options.device, groups=groups, queries=options.queries)
        kept = _show(batches)
        rate = sustained_rate(batches, skip=skips[name])
        rates = {"state": (rate, kept)}
        if options.floors:
            floors = case.floors(spark, skip=skips[name])
            rates |= {what: (floor, 0) for what, floor in floors.items()}
        for what, (rows, held) in rates.items():
            figures.append(
                {
                    "name": f"spark.stream.rows_per_s_{name}_{what}",
                    "value": rows,
                    "unit": "rows/s",
                    "micro_batch_rows": case.rows,
                    "state_rows": held,
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
