# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.spark cases``: questions of users at their size, beside an expert's Spark."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
import os
from pathlib import Path
import signal
import sys
import threading
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bench.spark.race import (
    PROCESSES,
    Answer,
    BenchRow,
    Cells,
    Times,
    add_options,
    answer,
    grid_join,
    near,
    race,
    ratio,
    require_positive,
    show,
    stored_frames,
)
from host.installation import CommandParser
from spark_offload.api import asof_join, overlap_join, stream_aggregate, stream_join
from spark_offload.cluster.session import open_session

__all__ = [
    "CASES",
    "Case",
    "add_parser",
    "main",
]

Table = Mapping[str, Any]
"""Columns of an input, by name, as NumPy arrays."""

OURS, EXPERT = "software engine", "Spark, by an expert"
"""Names of the two ways."""


@dataclass(frozen=True)
class Case:
    """A question, the rows that it is asked of, and how an expert of Spark would ask it.

    Parameters
    ----------
    tables : callable
        Draws the left and the right columns, of so many rows a side, by a generator.
    ours, expert : callable
        The frame of the answer, from those of both inputs.
    goal : float
        How many times as fast as the expert's query the kit's one is to be.
    """

    tables: Callable[[np.random.Generator, int], tuple[Table, Table]]
    ours: Callable[[DataFrame, DataFrame], DataFrame]
    expert: Callable[[DataFrame, DataFrame], DataFrame]
    goal: float


def _case(
    columns: Callable[[np.random.Generator, int], Table],
    goal: float,
    *,
    within: int,
    on: str | None = None,
    band: Mapping[str, tuple[int, int]] | None = None,
    broadcast: bool = False,
    by_time: bool = True,
) -> Case:
    """Return an equality or a band of two streams that take turns in time.

    The expert cuts the fields of a band into cells, and the time too if it pays; ``band`` has the
    reach and the greatest value of each. Right rows are repeated for the cells that they reach.
    """
    reaches = {"t": within} | {name: reach for name, (reach, _) in (band or {}).items()}

    def tables(rng: np.random.Generator, rows: int) -> tuple[Table, Table]:
        return tuple(
            {"t": np.arange(rows, dtype=np.int64) * 2 + side, **columns(rng, rows)}
            for side in range(2)
        )

    def ours(left: DataFrame, right: DataFrame) -> DataFrame:
        bands = {(name, name): (-reach, reach) for name, (reach, _) in (band or {}).items()}
        return stream_join(left, right, time="t", on=on, band=bands or None, within=within)

    def expert(left: DataFrame, right: DataFrame) -> DataFrame:
        cells = [Cells(name, *field) for name, field in (band or {}).items()]
        if by_time:
            cells.append(Cells("t", within, 1 << 40))
        return grid_join(left, right, cells, near(reaches), on=on, broadcast=broadcast)

    return Case(tables, ours, expert, goal)


def _uniform(**values: int) -> Callable[[np.random.Generator, int], Table]:
    """Return what draws columns of whole numbers from 0 up to the values."""
    return lambda rng, rows: {
        name: rng.integers(0, most, rows, dtype=np.int32) for name, most in values.items()
    }


def _clustered(rng: np.random.Generator, rows: int) -> Table:
    return {
        name: np.clip(np.rint(rng.normal(5_000, 100, rows)), 1, 10_000).astype(np.int32)
        for name in "xy"
    }


def _skewed(rng: np.random.Generator, rows: int) -> Table:
    keys = rng.integers(1, 1_000, rows, dtype=np.int32)
    return {"k": np.where(rng.random(rows) < 0.4, np.int32(0), keys)}


def _quotes(rng: np.random.Generator, rows: int) -> Table:
    """Draw symbols, the most frequent of which are traded most, and prices in cents."""
    weights = 1 / np.arange(1, 2_001)
    symbols = rng.choice(2_000, rows, p=weights / weights.sum()).astype(np.int32)
    return {"k": symbols, "x": rng.integers(0, 10_000, rows, dtype=np.int32)}


# As-of joins: an expert unites both inputs and takes the last right row of each symbol.


def _asof_expert(left: DataFrame, right: DataFrame) -> DataFrame:
    rows = left.select("t", "k", "x", F.lit(1).alias("side"), F.lit(None).alias("seen"))
    others = right.select("t", "k", "x", F.lit(0).alias("side"), F.struct("t", "k", "x"))
    earlier = Window.partitionBy("k").orderBy("t", "side")
    last = F.last("seen", ignorenulls=True).over(
        earlier.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    found = rows.unionAll(others).withColumn("last", last).where("side = 1")
    partner = [F.col(f"last.{name}").alias(f"{name}_right") for name in right.columns]
    return found.select("t", "k", "x", *partner)


# Intervals that overlap: an expert cuts the time into cells that are longer than the longest one.

_LONGEST = 200


def _intervals(rng: np.random.Generator, rows: int) -> tuple[Table, Table]:
    sides = []
    for side in range(2):
        begin = np.arange(rows, dtype=np.int64) * 2 + side
        end = begin + rng.integers(0, _LONGEST + 1, rows)
        sides.append({"b": begin, "e": end, "k": rng.integers(0, 100, rows, dtype=np.int32)})
    return sides[0], sides[1]


def _overlap(left: DataFrame, right: DataFrame) -> DataFrame:
    return overlap_join(left, right, left_interval=("b", "e"), on="k", longest=_LONGEST)


def _overlap_expert(left: DataFrame, right: DataFrame) -> DataFrame:
    overlaps = (F.col("b") <= F.col("e_right")) & (F.col("b_right") <= F.col("e"))
    cells = [Cells("b", _LONGEST, 1 << 40)]
    return grid_join(left, right, cells, overlaps, on="k", broadcast=False)


# Aggregates over windows of time: an expert groups by Spark's own window.


def _windows(keys: int, window: int, advance: int, goal: float, *, every: int = 1_000) -> Case:
    """Return counts, sums and maxima by key over windows, of rows that come every millisecond."""

    def tables(rng: np.random.Generator, rows: int) -> tuple[Table, Table]:
        times = pa.array(np.arange(rows, dtype=np.int64) * every, pa.timestamp("us", "UTC"))
        values = rng.integers(0, 1 << 20, rows)
        left = {"at": times, "k": rng.integers(0, keys, rows, dtype=np.int32), "v": values}
        return left, {"unused": np.zeros(1)}

    def ours(left: DataFrame, _: DataFrame) -> DataFrame:
        return stream_aggregate(
            left,
            time="at",
            window=f"{window}ms",
            advance=f"{advance}ms",
            on="k",
            aggregates={"n": "count", "total": "sum:v", "most": "max:v"},
        )

    def expert(left: DataFrame, _: DataFrame) -> DataFrame:
        span = F.window("at", f"{window} milliseconds", f"{advance} milliseconds")
        grouped = left.groupBy(span, "k").agg(F.count("*"), F.sum("v"), F.max("v"))
        return grouped.select("window.start", "window.end", "k", *grouped.columns[2:])

    return Case(tables, ours, expert, goal)


CASES = {
    "band": _case(
        _uniform(x=10_000, y=10_000),
        2,
        within=39_999,
        band={"x": (10, 10_000), "y": (10, 10_000)},
        broadcast=True,
        by_time=False,
    ),
    "clustered": _case(_clustered, 2, within=399, band={"x": (10, 10_000), "y": (10, 10_000)}),
    "equality": _case(_uniform(k=1_000), 1.5, within=500, on="k"),
    "skew": _case(_skewed, 2, within=20, on="k"),
    "quotes": _case(_quotes, 1.5, within=200, on="k"),
    "quotes-band": _case(_quotes, 1.5, within=2_000, on="k", band={"x": (100, 10_000)}),
    "asof": Case(
        _case(_quotes, 0, within=0).tables,
        lambda left, right: asof_join(left, right, time="t", on="k", how="left"),
        _asof_expert,
        1.5,
    ),
    "overlap": Case(_intervals, _overlap, _overlap_expert, 1),
    "sliding": _windows(2_000, 16_000, 1_000, 1),
    "tumbling": _windows(1_000, 10_000, 10_000, 1),
}
"""The questions, by name."""

OUTPUT = Path("build") / "bench" / "spark-cases.json"
"""Where the rows go by default."""


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``cases``."""
    parser = subparsers.add_parser(
        "cases",
        help="measure questions of users on the software engine against an expert's queries",
        description="Ask questions of stored rows by turns: with the kit, on the software engine, "
        "and by the query that an expert of Spark writes by hand. The answers are compared. "
        "Figures are ratios of the clock and of processor time.",
        example="--cases equality skew --rows 200000 --turns 3",
    )
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "--cases", nargs="+", default=list(CASES), choices=list(CASES), help="default: all"
    )
    group.add_argument("--rows", type=int, default=2_000_000, metavar="N", help="of each input")
    group.add_argument(
        "--filtered",
        action="store_true",
        help="put a filter that passes all rows before both inputs",
    )
    group.add_argument("--alone", action="store_true", help="leave out the expert's query")
    group.add_argument(
        "--lose-executor",
        type=float,
        metavar="SECONDS",
        help="kill one executor so long after the kit's query has begun, in its first turn; takes "
        "a --master such as local-cluster[2,1,1024], and no turn is run before",
    )
    add_options(group, output=OUTPUT, turns=3)
    parser.set_defaults(run=main)


def _lose_executor(spark: SparkSession) -> None:
    """Kill one of the executors of a session on this machine, as a machine that fails would."""
    port = f":{spark.conf.get('spark.driver.port')}".encode()
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if b"CoarseGrainedExecutorBackend" in command and port in command:
            os.kill(int(folder.name), signal.SIGKILL)
            print(f"executor of process {folder.name} killed", file=sys.stderr)
            return
    print("there is no executor to kill", file=sys.stderr)


def main(options: argparse.Namespace) -> int:
    """Measure, print a row per figure, and write them to a file."""
    require_positive(options, "rows", "turns")
    spark = open_session("splitjoin bench-cases", master=options.master)
    rows: list[BenchRow] = []
    seconds: dict[str, Times] = {}
    for name in options.cases:
        case = CASES[name]
        drawn = case.tables(np.random.default_rng(25), options.rows)
        tables = [pa.table(dict(columns)) for columns in drawn]
        left, right = stored_frames(spark, tables, options.output.parent, prefix=f"case-{name}")
        if options.filtered:
            left, right = (rows.where(f"{rows.columns[0]} is not null") for rows in (left, right))
        ways = {OURS: lambda: case.ours(left, right), EXPERT: lambda: case.expert(left, right)}
        if options.alone:
            del ways[EXPERT]
        if options.lose_executor is None:
            for way in ways.values():
                answer(way())  # Python workers started, code compiled
        else:
            timer = threading.Timer(options.lose_executor, _lose_executor, [spark])
            timer.start()
        print(f"{name}, {options.rows:,} rows a side", file=sys.stderr)
        answers: dict[str, Answer] = {}
        processor: dict[str, Times] = {}
        clock = race(ways, options.turns, answers, processor)
        for kind, spent in (("", clock), ("processor ", processor)):
            seconds |= {f"{name}: {kind}{way}": times for way, times in spent.items()}
            if EXPERT in spent:
                goal = "" if kind else f">= {case.goal:g}"
                label = f"spark.{name}.{kind.strip() or 'speedup'}_vs_expert"
                rows.append(ratio(label, spent[OURS], spent[EXPERT], goal))
    show(seconds, rows, options.output)
    return 0
