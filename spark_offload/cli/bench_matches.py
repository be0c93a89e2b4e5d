# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload bench-matches``: aggregates of matches, found in three ways."""

import argparse
from collections.abc import Callable
from pathlib import Path
import sys

from pyspark.sql import DataFrame

from host import UsageError
from host.devices.bundles import default_bundle
from spark_offload.cli.matches_benchmark import PAIRS, REDUCED, SPARK, MatchesBenchmark
from spark_offload.cli.race import Answer, BenchRow, Times, answer, race, ratio, show, stored_frames
from spark_offload.measures.metrics import JoinMetrics
from spark_offload.planning.join_aggregate_plan import JoinAggregatePlan
from spark_offload.session.spark_session import open_session

__all__ = ["add_parser", "main"]

OUTPUT = Path("build") / "bench" / "spark-matches.json"
"""Where the rows go by default."""

VALUE_BITS = 32
"""Bits of the values of the device that is built by default."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``bench-matches``."""
    defaults = MatchesBenchmark()
    parser = subparsers.add_parser(
        "bench-matches",
        help="measure aggregates of matches against Spark's join and groupBy",
        description="Count and aggregate the matches of each left row in three ways by turns: on a "
        "simulated join aggregate, which sends a word for each left row; on a simulated "
        "accelerator that sends pairs, which Spark reduces; and by the join and groupBy that an "
        "expert of Spark writes by hand. The answers are compared. The hardware counts the words "
        "that leave a device, and its cycles.",
    )
    for name, kind, text in (
        ("rows", int, "of each stream"),
        ("window", int, "right rows that a left row meets, an even number"),
        ("matches", float, "matches of a left row, on average"),
        ("columns", int, "columns that are aggregated"),
    ):
        parser.add_argument(
            f"--{name}",
            type=kind,
            default=getattr(defaults, name),
            metavar="N",
            help=f"{text}; default: %(default)s",
        )
    parser.add_argument(
        "--device", metavar="URI", help="a join aggregate; default: demo with --value-bits 32"
    )
    parser.add_argument(
        "--pairs-device", metavar="URI", help="default: the simulated accelerator for the question"
    )
    parser.add_argument("--master", default="local[2]", metavar="URL", help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Measure, print a row per figure, and write them to a file."""
    for name in ("rows", "window", "columns", "turns"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name} must be at least 1, not {getattr(options, name)}.")
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
    plans: dict[str, JoinAggregatePlan] = {}
    ways: dict[str, Callable[[], DataFrame]] = {}
    for name, make in benchmark.ways(left, right, reducing, options.pairs_device).items():

        def planned(name: str = name, make: Callable[[], JoinAggregatePlan] = make) -> DataFrame:
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
    rows = []
    for name, other in (("pairs", PAIRS), ("spark", SPARK)):
        ratios = [own / ours for ours, own in zip(seconds[REDUCED], seconds[other], strict=True)]
        rows.append(ratio(f"spark.matches.{kind}_vs_{name}", ratios, 0, ""))
    return rows


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
            rows.append(BenchRow(f"spark.matches.{place}{unit}_per_left_row", each, unit, "", None))
    return rows
