# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.spark matches``: aggregates of matches, found in three ways."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
import sys

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.spark.race import (
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
from host import UsageError
from host.devices.bundles import default_bundle
from host.installation import CommandParser
from spark_offload.api import plan_join_aggregate
from spark_offload.cluster.session import open_session
from spark_offload.measures import JoinMetrics
from spark_offload.plan.plan import Plan

__all__ = [
    "MatchesBenchmark",
    "PAIRS",
    "REDUCED",
    "SPARK",
    "add_parser",
    "main",
]

# Aggregates of the matches of a band: rows whose left rows have a given number of matches.

REDUCED = "matches reduced on the device"
PAIRS = "pairs from the device, reduced by Spark"
SPARK = "Spark by an expert: join and groupBy"
"""Names of the three ways."""


@dataclass(frozen=True)
class MatchesBenchmark:
    """Two streams with a key of uniform values; a left row matches a band of keys.

    A tuple arrives every tick, in turn from the left stream (even ticks) and from the right one.

    Parameters
    ----------
    rows : int
        Rows of each stream.
    window : int
        Right rows that a left row meets, earlier and later ones; even.
    matches : float
        Expected number of those that it matches.
    columns : int
        Columns of right rows that are aggregated.
    seed : int
        Of the random numbers.
    """

    rows: int = 40_000
    window: int = 4_096
    matches: float = 100.0
    columns: int = 1
    seed: int = 56

    REACH = 500
    """Half width of the band."""

    @property
    def within(self) -> int:
        """Width of the window in ticks, in which ``window / 2`` right rows come."""
        return self.window - 1

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the left and the right rows."""
        rng = np.random.default_rng(self.seed)

        def keyed(side: int) -> dict[str, npt.NDArray[np.int64]]:
            return {
                "t": np.arange(self.rows, dtype=np.int64) * 2 + side,
                "x": rng.integers(0, self.values, self.rows),
            }

        left, right = keyed(0), keyed(1)
        for name in self.names:
            right[name] = rng.integers(0, 1 << 20, self.rows)
        return pa.table(left), pa.table(right)

    @property
    def values(self) -> int:
        """Number of values of the key."""
        return round((2 * self.REACH + 1) * self.window / self.matches)

    @property
    def names(self) -> list[str]:
        """Names of the aggregated columns."""
        return [f"v{number}" for number in range(self.columns)]

    def ways(
        self, left: DataFrame, right: DataFrame, reducing: str, pairs: str | None
    ) -> dict[str, Callable[[], Plan]]:
        """Return what plans the question for a device that reduces matches, and one that does not.

        Count, sum, least and greatest value of each column are asked for.

        Parameters
        ----------
        left, right : DataFrame
            The rows.
        reducing : str
            Address of a join aggregate.
        pairs : str or None
            Address of a device that sends pairs; None for the default one.
        """
        aggregates = {"n": "count"}
        for name in self.names:
            aggregates |= {f"{one}_{name}": f"{one}:{name}" for one in ("sum", "min", "max")}

        def plan(device: str | None) -> Plan:
            # Strict: what is measured is the device, not what would stand in for it.
            return plan_join_aggregate(
                left,
                right,
                band={"x": (-self.REACH, self.REACH)},
                time="t",
                within=self.within,
                aggregates=aggregates,
                device=device,
                strict=True,
            )

        return {REDUCED: lambda: plan(reducing), PAIRS: lambda: plan(pairs)}

    def by_expert(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same rows by the query that an expert of Spark writes by hand, in no order.

        The plane of key and time is cut into cells twice as wide as band and window
        (:func:`bench.spark.race.by_expert`); the pairs
        are grouped by the time of the left row, which no other left row has.
        """
        cells = [Cells("x", self.REACH, self.values), Cells("t", self.within, 2 * self.rows)]
        pairs = grid_join(left, right, cells, near({"x": self.REACH, "t": self.within}))
        values = [
            function(f"{name}_right").alias(f"{function.__name__}_{name}")
            for name in self.names
            for function in (F.sum, F.min, F.max)
        ]
        grouped = pairs.groupBy("t").agg(F.count(F.lit(1)).alias("n"), *values)
        return left.join(grouped, "t", "left").na.fill(0, ["n"])

    def __str__(self) -> str:
        each = "column" if self.columns == 1 else f"each of {self.columns} columns"
        return (
            f"Two streams of {self.rows:,} tuples; count, and sum, least and greatest value of "
            f"{each}, of the matches of each left row: {self.matches:g} on average of the "
            f"{self.window:,} right rows within {self.within:,} ticks."
        )


# ``python -m bench.spark matches``: aggregates of matches, found in three ways.

OUTPUT = Path("build") / "bench" / "spark-matches.json"
"""Where the rows go by default."""

VALUE_BITS = 32
"""Bits of the values of the device that is built by default."""


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``matches``."""
    defaults = MatchesBenchmark()
    parser = subparsers.add_parser(
        "matches",
        help="measure aggregates of matches against Spark's join and groupBy",
        description="Count and aggregate the matches of each left row in three ways by turns: on a "
        "simulated join aggregate, which sends a word for each left row; on a simulated "
        "accelerator that sends pairs, which Spark reduces; and by the join and groupBy that an "
        "expert of Spark writes by hand. The answers are compared. The hardware counts the words "
        "that leave a device, and its cycles.",
        example="--rows 20000 --turns 3",
    )
    group = parser.add_argument_group("measurement")
    for name, kind, text in (
        ("rows", int, "of each stream"),
        ("window", int, "right rows that a left row meets, an even number"),
        ("matches", float, "matches of a left row, on average"),
        ("columns", int, "columns that are aggregated"),
    ):
        group.add_argument(
            f"--{name}",
            type=kind,
            default=getattr(defaults, name),
            metavar="N",
            help=f"{text}; default: %(default)s",
        )
    group.add_argument(
        "--device", metavar="URI", help="a join aggregate; default: demo with --value-bits 32"
    )
    group.add_argument(
        "--pairs-device", metavar="URI", help="default: the simulated accelerator for the question"
    )
    add_options(group, output=OUTPUT, turns=5)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Measure, print a row per figure, and write them to a file."""
    require_positive(options, "rows", "window", "columns", "turns")
    if options.window % 2:
        raise UsageError(f"--window must be even, not {options.window}.")
    if not 0 < options.matches <= options.window:
        raise UsageError(
            f"--matches must be above 0 and at most --window ({options.window}), not "
            f"{options.matches:g}."
        )
    benchmark = MatchesBenchmark(
        options.rows, options.window, options.matches, columns=options.columns
    )
    print(benchmark, file=sys.stderr)
    reducing = options.device
    if reducing is None:
        reducing = f"sim:{default_bundle('scan', options=['--value-bits', str(VALUE_BITS)])}"
    spark = open_session("splitjoin bench-matches", master=options.master)
    folder = options.output.parent
    left, right = stored_frames(spark, benchmark.tables(), folder, prefix="matches")
    plans: dict[str, Plan] = {}
    ways: dict[str, Callable[[], DataFrame]] = {}
    for name, make in benchmark.ways(left, right, reducing, options.pairs_device).items():

        def planned(name: str = name, make: Callable[[], Plan] = make) -> DataFrame:
            plans[name] = make()
            return plans[name].dataframe()

        ways[name] = planned
    ways[SPARK] = lambda: benchmark.by_expert(left, right)
    for way in ways.values():
        answer(way())  # Python workers started, code compiled
    answers: dict[str, Answer] = {}
    processor: dict[str, Times] = {}
    seconds = race(ways, options.turns, answers, processor)
    counted = {name: plan.metrics() for name, plan in plans.items()}
    rows = [*_ratios("speedup", seconds), *_ratios("processor", processor)]
    seconds |= {f"processor: {name}": times for name, times in processor.items()}
    show(seconds, [*rows, *_counts(counted, benchmark)], options.output)
    return 0


def _ratios(kind: str, seconds: dict[str, Times]) -> list[BenchRow]:
    """Return the times of the other ways in parts of that of a device that reduces, by turns."""
    if REDUCED not in seconds:
        return []
    return [
        ratio(f"spark.matches.{kind}_vs_{name}", seconds[REDUCED], seconds[other])
        for name, other in (("pairs", PAIRS), ("spark", SPARK))
    ]


def _counts(counted: dict[str, JoinMetrics], benchmark: MatchesBenchmark) -> list[BenchRow]:
    """Return what a left row costs by the counters of the hardware."""
    rows = []
    for place, way in (("", REDUCED), ("pairs_", PAIRS)):
        metrics = counted[way]
        for unit, count in (
            ("words", metrics.counters().get("output_busy", 0)),
            ("cycles", int(metrics.total("cycles"))),
        ):
            each = count / benchmark.rows
            rows.append(BenchRow(f"spark.matches.{place}{unit}_per_left_row", each, unit))
    return rows
