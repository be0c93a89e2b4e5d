# SPDX-License-Identifier: Apache-2.0
"""Ways to the same answer that take turns, among them the query of an expert of Spark."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
import json
import os
from pathlib import Path
from statistics import median
import sys
import time
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.figures.registry import reaches
from host import FailureError, UsageError
from spark_offload.cli.demo import Benchmark, near, renamed

__all__ = [
    "Answer",
    "BenchRow",
    "Cells",
    "ClusteredBenchmark",
    "Times",
    "add_options",
    "answer",
    "by_expert",
    "grid_join",
    "near",
    "processor_seconds",
    "race",
    "ratio",
    "require_positive",
    "show",
    "stored_frames",
]

# Processor time of a program and of all processes that it has started, Spark's among them.

PROCESSES = Path("/proc")
"""Where Linux tells of all processes."""


def processor_seconds(process: int | None = None) -> float | None:
    """Return the processor time of a process and its descendants up to now, in seconds.

    Descendants that have ended count if they were waited for. On a machine whose processors are
    busy otherwise, this says more than the clock does.

    Parameters
    ----------
    process : int, optional
        By default this one.

    Returns
    -------
    float or None
        None where there is no such folder as Linux has.
    """
    if not PROCESSES.is_dir():
        return None
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has just ended
        fields = text.rpartition(")")[2].split()  # from the state on; a name may hold anything
        number = int(folder.name)
        spent[number] = sum(map(int, fields[11:15]))  # its own, and those of children that ended
        children.setdefault(int(fields[1]), []).append(number)
    waiting, total = [os.getpid() if process is None else process], 0
    while waiting:
        number = waiting.pop()
        total += spent.get(number, 0)
        waiting += children.get(number, [])
    return total / os.sysconf("SC_CLK_TCK")


# Ways to the same answer that take turns, and the figures of such a race.

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
        What it is, in what, and what it should be (``">= 1"``); no goal is empty.
    value : float
        What it is.
    spread : (float, float) or None
        Least and greatest value, if it is the median of several.
    """

    name: str
    value: float
    unit: str
    goal: str = ""
    spread: tuple[float, float] | None = None

    @classmethod
    def middle(cls, name: str, values: Times, unit: str, goal: str = "") -> "BenchRow":
        """Return a figure that is the median of values turn by turn."""
        return cls(name, median(values), unit, goal, (min(values), max(values)))

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        return reaches(self.goal, self.value)


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


def ratio(name: str, ours: Times, other: Times, goal: str = "") -> BenchRow:
    """Return how many times as long another way takes as ours.

    A machine changes its speed from minute to minute, so what ran in the same turn is compared.
    """
    ratios = [theirs / own for own, theirs in zip(ours, other, strict=True)]
    return BenchRow.middle(name, ratios, "times", goal)


def add_options(
    group: argparse._ArgumentGroup, *, output: Path, master: str = "local[2]", turns: int
) -> None:
    """Add the options that all measurements have."""
    group.add_argument("--master", default=master, metavar="URL", help="default: %(default)s")
    group.add_argument("--turns", type=int, default=turns, metavar="N", help="default: %(default)s")
    group.add_argument(
        "--output", type=Path, default=output, metavar="FILE", help="default: %(default)s"
    )


def require_positive(options: argparse.Namespace, *names: str) -> None:
    """Raise :exc:`UsageError` unless these options are at least 1, where they are given."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} must be at least 1, not {value}.")


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
    told = [{**asdict(row), "met": row.met} for row in rows]
    path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


# The query that an expert of Spark writes by hand.


@dataclass(frozen=True)
class Cells:
    """Cells of one column, twice as wide as what a row reaches; ``count`` leaves room at the end.

    ``div`` rounds towards zero, so cell 0 also holds the values that lie up to a width below zero.

    Parameters
    ----------
    name : str
        The column.
    reach : int
        Largest difference of two values that match.
    greatest : int
        Greatest value.
    """

    name: str
    reach: int
    greatest: int

    @property
    def width(self) -> int:
        """Values of a cell."""
        return 2 * (2 * self.reach + 1)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.greatest // self.width + 2

    def of(self, value: Column) -> Column:
        """Return the cell of a value."""
        return F.call_function("div", value, F.lit(self.width))


def grid_join(
    left: DataFrame,
    right: DataFrame,
    cells: Sequence[Cells],
    condition: Column,
    *,
    on: str | None = None,
    broadcast: bool = True,
) -> DataFrame:
    """Return the pairs of rows that meet in a cell and fulfil a condition, in no order.

    Left rows are broadcast unless they are too many; right rows are repeated for the cells that
    they reach, and their columns end in ``_right``. Rows also meet by the column ``on``, if given.
    """
    own, other = left, renamed(right)
    number, reached_number = F.lit(0).cast("bigint"), F.lit(0).cast("bigint")
    for each in cells:
        number = number * each.count + each.of(F.col(each.name))
        value = F.col(f"{each.name}_right")
        reached = F.sequence(each.of(value - each.reach), each.of(value + each.reach))
        other = other.withColumn(f"cell_{each.name}", F.explode(reached))
        reached_number = reached_number * each.count + F.col(f"cell_{each.name}")
    own = own.withColumn("cell", number)
    other = other.withColumn("cell", reached_number)
    meets = ["cell"]
    if on is not None:
        own, other = own.withColumn("met", F.col(on)), other.withColumn("met", F.col(f"{on}_right"))
        meets.append("met")
    return (
        (F.broadcast(own) if broadcast else own.hint("shuffle_hash"))
        .join(other, meets)
        .where(condition)
        .select(*left.columns, *(f"{name}_right" for name in right.columns))
    )


@dataclass(frozen=True)
class ClusteredBenchmark(Benchmark):
    """The paper's benchmark, or one whose fields lie in one cluster.

    Parameters
    ----------
    deviation : float or None
        Standard deviation of normal fields around 5,000, kept within 1 to 10,000; None: the fields
        are uniform.
    """

    deviation: float | None = None

    def field(self, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draw the values of one field."""
        if self.deviation is None:
            return super().field(rng)
        values = rng.normal(5_000, self.deviation, self.rows)
        return np.clip(np.rint(values), 1, 10_000).astype(np.int32)

    @property
    def values(self) -> str:
        """How the values of a field are drawn, in words."""
        if self.deviation is None:
            return super().values
        return f"normal around 5,000 with a standard deviation of {self.deviation:g}"


def by_expert(benchmark: ClusteredBenchmark, left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the same rows by the query that an expert of Spark writes by hand, in no order.

    The plane of ``x`` and ``y`` is cut into cells twice as wide as the band, so that each right
    row reaches at most two cells of a field. Spark joins by one ``bigint``, the number of the
    cell, and the exact conditions filter the pairs. The left rows are broadcast, each of them
    once; the right rows are repeated for their cells as they stream past. Spark left to itself
    broadcasts the repeated rows, which takes about twice as long. Cells of one field only take
    ten times as long.

    In a cluster the cells hold many rows, so time is cut too, into cells twice as wide as the
    window; for uniform fields that would repeat rows for nothing.
    """
    cells = [Cells(name, benchmark.reach, 10_000) for name in "xy"]
    if benchmark.deviation is not None:
        cells.append(Cells("t", benchmark.within, 2 * benchmark.rows))
    return grid_join(left, right, cells, benchmark.near())
