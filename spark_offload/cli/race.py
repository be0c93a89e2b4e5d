# SPDX-License-Identifier: Apache-2.0
"""Ways to the same answer that take turns, and the figures of such a race."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
import json
from pathlib import Path
from statistics import median
import sys
import time
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from host import FailureError
from spark_offload.cli.processor_time import processor_seconds

__all__ = ["Answer", "BenchRow", "Times", "answer", "race", "ratio", "show", "stored_frames"]

Times: TypeAlias = list[float]
"""Seconds, or ratios of them, turn by turn."""

Answer = tuple[int, int]
"""Rows of a join, and the sum of their hashes over all columns."""


@dataclass(frozen=True)
class BenchRow:
    """One measured figure.

    Parameters
    ----------
    name, unit, goal : str
        What it is, in what, and what it should be (``"> 1"``); no goal is empty.
    value : float
        What it is.
    met : bool or None
        Whether the goal is reached; None without a goal.
    spread : (float, float) or None
        Least and greatest value, if it is the median of several.
    """

    name: str
    value: float
    unit: str
    goal: str
    met: bool | None
    spread: tuple[float, float] | None = None


def stored_frames(
    spark: SparkSession, tables: Sequence[pa.Table], folder: Path, prefix: str = "spark"
) -> tuple[DataFrame, DataFrame]:
    """Write both tables to Parquet, as somebody's data would lie, and return them as frames."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for name, table in zip(("left", "right"), tables, strict=True):
        path = folder / f"{prefix}-{name}.parquet"
        pq.write_table(table, path, row_group_size=1 << 15)
        frames.append(spark.read.parquet(str(path.absolute())))
    return frames[0], frames[1]


def answer(frame: DataFrame) -> Answer:
    """Run ``frame``; every column of every row counts."""
    hashed = F.xxhash64(*frame.columns).cast("decimal(20,0)")
    row = frame.agg(F.count(F.lit(1)), F.coalesce(F.sum(hashed), F.lit(0))).first()
    if row is None:
        raise FailureError("Spark returned no row for an aggregate.")
    return int(row[0]), int(row[1])


def race(
    ways: dict[str, Callable[[], DataFrame]],
    turns: int,
    answers: dict[str, Answer],
    processor: dict[str, Times] | None = None,
) -> dict[str, Times]:
    """Return how long each way took in each turn; the ways take turns, ``answers`` get theirs.

    Parameters
    ----------
    ways : dict of str to callable
        What makes the frame of each way.
    turns : int
        How often each of them runs.
    answers : dict of str to Answer
        Those of earlier races of the same question; gets those of this one.
    processor : dict of str to list of float, optional
        Gets the processor time of each way in each turn, where the machine tells it.

    Raises
    ------
    FailureError
        If an answer differs from another.
    """
    seconds: dict[str, Times] = {name: [] for name in ways}
    for _ in range(turns):
        for name, make in ways.items():
            before = None if processor is None else processor_seconds()
            start = time.perf_counter()
            answers[name] = answer(make())
            spent = time.perf_counter() - start
            seconds[name].append(spent)
            if processor is not None and before is not None:
                after = processor_seconds()
                if after is not None:
                    processor.setdefault(name, []).append(after - before)
            print(f"{name}: {spent:.2f} s, {answers[name][0]:,} rows", file=sys.stderr)
            if len(set(answers.values())) > 1:
                raise FailureError(f"The answers differ: {answers}.")
    return seconds


def ratio(name: str, ratios: Times, least: float, goal: str) -> BenchRow:
    """Return a figure that is the median of ratios turn by turn."""
    middle = median(ratios)
    met = middle >= least if goal else None
    return BenchRow(name, middle, "times", goal, met, (min(ratios), max(ratios)))


def show(seconds: dict[str, Times], rows: list[BenchRow], path: Path) -> None:
    """Print the seconds of all ways and the figures, and write the figures to a file."""
    print(f"{'seconds':32} {'median':>12}  {'least':>8} {'most':>8}  turns")
    for name, spent in seconds.items():
        low, high = min(spent), max(spent)
        print(f"{name:32} {median(spent):12.4g}  {low:8.4g} {high:8.4g}  {len(spent)}")
    print(f"\n{'name':32} {'value':>12}  {'unit':8} {'goal':8} {'met':4} spread")
    for row in rows:
        met = {True: "yes", False: "NO", None: ""}[row.met]
        spread = "" if row.spread is None else f"{row.spread[0]:.4g} to {row.spread[1]:.4g}"
        line = f"{row.name:32} {row.value:12.4g}  {row.unit:8} {row.goal:8} {met:4} {spread}"
        print(line.rstrip())
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
