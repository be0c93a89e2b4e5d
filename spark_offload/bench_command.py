# SPDX-License-Identifier: Apache-2.0
"""`python -m spark_offload bench`: the accelerator against what Spark does by itself."""

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
import json
from pathlib import Path
import sys
import time

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from host import FailureError, UsageError
from spark_offload.benchmark import Benchmark
from spark_offload.join import metrics, plan_join
from spark_offload.request import Bands
from spark_offload.session import open_session

__all__ = ["BenchRow", "add_parser", "bucketed", "main"]

OUTPUT = Path("build") / "bench" / "spark.json"
"""Where the rows go by default."""

Answer = tuple[int, int]
"""Rows of a join, and the sum of their hashes over all columns."""


@dataclass(frozen=True)
class BenchRow:
    """One measured figure.

    Parameters
    ----------
    name, unit, goal : str
        What it is, in what, and what it should be (``"> 1"``).
    value : float
        What it is.
    met : bool
        Whether the goal is reached.
    """

    name: str
    value: float
    unit: str
    goal: str
    met: bool


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``bench``."""
    parser = subparsers.add_parser(
        "bench",
        help="measure the join against Spark's own",
        description="Join the paper's benchmark on the simulated accelerator, by Spark's own join "
        "as it is written (which takes minutes), and by the best recipe in Spark alone: buckets, "
        "an equality on the bucket, an exact filter. All in one run; the answers are compared.",
    )
    parser.add_argument("--tuples", type=int, default=200_000, metavar="N", help="of each stream")
    parser.add_argument("--window", type=int, default=20_000, metavar="ROWS", help="of each window")
    parser.add_argument("--device", metavar="URI", help="default: the simulated accelerator")
    parser.add_argument("--master", default="local[2]", metavar="URL", help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=10, metavar="N", help="of the quick ones")
    parser.add_argument(
        "--without-own", action="store_true", help="leave out Spark's own join as it is written"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Measure, print a row per figure, and write them to a file."""
    for name in ("tuples", "window", "turns"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name} must be at least 1, not {getattr(options, name)}.")
    benchmark = Benchmark(rows=options.tuples, window=options.window)
    print(benchmark, file=sys.stderr)
    spark = open_session("splitjoin bench", master=options.master)
    left, right = _frames(spark, benchmark, options.output.parent)
    band: Bands = {(name, name): (-benchmark.reach, benchmark.reach) for name in "xy"}

    def offloaded() -> DataFrame:
        plan = plan_join(
            left, right, band=band, order="t", within=benchmark.within, device=options.device
        )
        frames.append(plan.dataframe())
        return frames[-1]

    frames: list[DataFrame] = []
    ways: dict[str, Callable[[], DataFrame]] = {
        "accelerator": offloaded,
        "recipe": lambda: bucketed(benchmark, left, right),
    }
    _answer(offloaded())  # Python workers started, code compiled
    seconds, answers = _race(ways, options.turns)
    if not options.without_own:
        own = {"Spark's own": lambda: benchmark.in_spark(left, right)}
        more, answer = _race(own, 1)
        seconds |= more
        answers |= answer
    if len(set(answers.values())) > 1:
        raise FailureError(f"The answers differ: {answers}.")
    done = metrics(frames[-1])
    spent = done.total("seconds") - done.total("waited_seconds")
    rows = _rows(seconds, spent / (2 * benchmark.rows) * 1e6)
    _show(rows, options.output)
    return 0


def _frames(spark: SparkSession, benchmark: Benchmark, folder: Path) -> tuple[DataFrame, DataFrame]:
    """Write both streams to Parquet, as somebody's data would lie, and return them as frames."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for name, table in zip(("left", "right"), benchmark.tables(), strict=True):
        path = folder / f"spark-{name}.parquet"
        pq.write_table(table, path, row_group_size=1 << 15)
        frames.append(spark.read.parquet(str(path.absolute())))
    return frames[0], frames[1]


def bucketed(benchmark: Benchmark, left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the join as an expert writes it in Spark alone.

    Buckets as wide as the band for both fields, the right rows repeated for every bucket that
    they can meet, an equality on the buckets, and the exact conditions as a filter. (Buckets of
    one field only take ten times as long.)
    """
    width = 2 * benchmark.reach + 1
    own = left.select(
        *(F.floor(F.col(name) / width).alias(f"bucket_{name}") for name in "xy"), *left.columns
    )
    other = right.toDF(*(f"{name}_right" for name in right.columns))
    for name in "xy":
        value = F.col(f"{name}_right")
        low, high = (F.floor((value + end) / width) for end in (-benchmark.reach, benchmark.reach))
        other = other.withColumn(f"bucket_{name}", F.explode(F.sequence(low, high)))
    near = [
        F.abs(F.col(name) - F.col(f"{name}_right")) <= limit
        for name, limit in (("t", benchmark.within), *((name, benchmark.reach) for name in "xy"))
    ]
    return (
        own.join(other, [f"bucket_{name}" for name in "xy"])
        .where(near[0] & near[1] & near[2])
        .select(*left.columns, *(f"{name}_right" for name in right.columns))
    )


def _answer(frame: DataFrame) -> Answer:
    """Run ``frame``; every column of every row counts."""
    hashed = F.xxhash64(*frame.columns).cast("decimal(20,0)")
    row = frame.agg(F.count(F.lit(1)), F.coalesce(F.sum(hashed), F.lit(0))).first()
    if row is None:
        raise FailureError("Spark returned no row for an aggregate.")
    return int(row[0]), int(row[1])


def _race(
    ways: dict[str, Callable[[], DataFrame]], turns: int
) -> tuple[dict[str, float], dict[str, Answer]]:
    """Return the least time of each way, taken in turns, and its answer."""
    seconds: dict[str, float] = {}
    answers: dict[str, Answer] = {}
    for _ in range(turns):
        for name, make in ways.items():
            start = time.perf_counter()
            answers[name] = _answer(make())
            spent = time.perf_counter() - start
            seconds[name] = min(spent, seconds.get(name, spent))
            print(f"{name}: {spent:.2f} s, {answers[name][0]:,} rows", file=sys.stderr)
    return seconds, answers


def _rows(seconds: dict[str, float], overhead: float) -> list[BenchRow]:
    """Return the figures."""
    ours = seconds["accelerator"]
    recipe = seconds["recipe"] / ours
    rows = []
    if "Spark's own" in seconds:
        own = seconds["Spark's own"] / ours
        rows.append(BenchRow("spark.band.speedup_vs_spark", own, "times", ">= 100", own >= 100))
    rows.append(BenchRow("spark.band.speedup_vs_recipe", recipe, "times", "> 1", recipe > 1))
    rows.append(BenchRow("spark.overhead_us_per_row", overhead, "us", "< 1", overhead < 1))
    return rows


def _show(rows: list[BenchRow], path: Path) -> None:
    print(f"{'name':32} {'value':>12}  {'unit':8} {'goal':8} met")
    for row in rows:
        met = "yes" if row.met else "NO"
        print(f"{row.name:32} {row.value:12.4g}  {row.unit:8} {row.goal:8} {met}")
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
