# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.spark bands`: the accelerator against what Spark does by itself."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.spark.race import (
    Answer,
    BenchRow,
    ClusteredBenchmark,
    Times,
    add_options,
    answer,
    by_expert,
    race,
    ratio,
    require_positive,
    show,
    stored_frames,
)
from host import UsageError
from host.devices.bundles import SIMULATED
from host.installation import CommandParser
from host.query.quantities import Duration
from host.query.queries import Bands, Query
from host.query.tables import output_schema
from spark_offload.api import plan_aggregate, plan_join
from spark_offload.cluster.machines import DeviceSource
from spark_offload.cluster.session import open_session
from spark_offload.plan.plan import Plan, metrics
from spark_offload.task.join import JoinTask

__all__ = [
    "AggregateBenchmark",
    "KIT",
    "SPARK",
    "WINDOWS",
    "add_parser",
    "main",
]

# Aggregates over windows of time: the kit beside Spark's own groupBy(window(...)).

KIT, SPARK = "panes on the host", "Spark's groupBy(window)"
"""Names of the two ways."""

WINDOWS = {"sliding": 16, "tumbling": 1}
"""Panes of a window; each window begins one pane after the other."""


@dataclass(frozen=True)
class AggregateBenchmark:
    """Rows that come every millisecond, with a key and a value each.

    Parameters
    ----------
    rows : int
        Number of rows.
    keys : int
        Number of distinct keys, all equally frequent.
    pane : int
        Milliseconds of a pane.
    seed : int
        Of the random numbers.
    """

    rows: int = 800_000
    keys: int = 1_000
    pane: int = 10_000
    seed: int = 25

    def table(self) -> pa.Table:
        """Return the rows, in the order of their times."""
        rng = np.random.default_rng(self.seed)
        times = pa.array(np.arange(self.rows, dtype=np.int64) * 1_000, pa.timestamp("us", "UTC"))
        return pa.table(
            {
                "at": times,
                "key": rng.integers(0, self.keys, self.rows, dtype=np.int32),
                "value": rng.integers(0, 1 << 20, self.rows, dtype=np.int64),
            }
        )

    def ways(self, frame: DataFrame, panes: int) -> dict[str, Callable[[], DataFrame]]:
        """Return both ways to count, add up, and find the greatest in windows of so many panes.

        Parameters
        ----------
        frame : DataFrame
            The rows.
        panes : int
            Panes of a window.
        """

        def planned() -> Plan:
            return plan_aggregate(
                frame,
                time="at",
                window=f"{panes * self.pane}ms",
                advance=f"{self.pane}ms",
                on="key",
                aggregates={"n": "count", "total": "sum:value", "most": "max:value"},
                strict=True,
            )

        return {KIT: lambda: planned().dataframe(), SPARK: lambda: planned().own_answer()}

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows with {self.keys:,} keys; count, sum and max over windows of "
            f"{self.pane / 1000:g} s, and of {WINDOWS['sliding']} times that, every "
            f"{self.pane / 1000:g} s."
        )


# `python -m bench.spark bands`: the accelerator against what Spark does by itself.

ARROW_ROWS = 10_000
"""Rows of a batch that Spark sends (``spark.sql.execution.arrow.maxRecordsPerBatch``)."""

OUTPUT = Path("build") / "bench" / "spark.json"
"""Where the rows go by default."""

ACCELERATOR, SOFTWARE = "accelerator", "software engine"
EXPERT, AS_WRITTEN = "Spark, by an expert", "Spark, as written"


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``bands``."""
    parser = subparsers.add_parser(
        "bands",
        help="measure the join against Spark's own",
        description="Join the paper's benchmark on the simulated accelerator, by the query that an "
        "expert of Spark writes by hand (rows repeated for the cells of a grid that they reach, an "
        "equality of the cells, an exact filter), and by Spark's own join of the conditions as "
        "they are, which compares every row with every row and takes minutes. All in one run, the "
        "software engine and the first two in turn; the answers are compared. Before that, the "
        "join of columns of 64 bits is planned alone, once with a cold session and then with a "
        "warm one; after it, aggregates over sliding and tumbling windows take turns with Spark's "
        "own.",
        example="--tuples 20000 --window 2000 --turns 3 --without-own",
    )
    group = parser.add_argument_group("measurement")
    group.add_argument("--tuples", type=int, default=200_000, metavar="N", help="of each stream")
    group.add_argument("--window", type=int, default=20_000, metavar="ROWS", help="of each window")
    group.add_argument(
        "--deviation",
        type=float,
        metavar="SD",
        help="fields in one cluster, normal with this standard deviation, instead of uniform ones; "
        "the expert then cuts time into cells too",
    )
    group.add_argument("--device", default=SIMULATED, metavar="URI", help="default: %(default)s")
    group.add_argument(
        "--without-own",
        action="store_true",
        help="leave out the join that takes minutes and runs once",
    )
    add_options(group, output=OUTPUT, turns=10)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Measure, print a row per figure, and write them to a file."""
    require_positive(options, "tuples", "window", "turns")
    if options.deviation is not None and not 0 <= options.deviation <= 10_000:
        raise UsageError(f"--deviation must be from 0 to 10000, not {options.deviation}.")
    benchmark = ClusteredBenchmark(
        rows=options.tuples, window=options.window, deviation=options.deviation
    )
    print(benchmark, file=sys.stderr)
    spark = open_session("splitjoin bench", master=options.master)
    left, right = stored_frames(spark, benchmark.tables(), options.output.parent)
    band: Bands = {(name, name): (-benchmark.reach, benchmark.reach) for name in "xy"}

    def joined(*inputs: DataFrame, device: str = options.device) -> DataFrame:
        # Strict: what is measured is the device, not what would stand in for it.
        plan = plan_join(
            *inputs,
            band=band,
            time="t",
            within=benchmark.within,
            device=device,
            strict=True,
        )
        return plan.dataframe()

    def offloaded(way: str, device: str) -> DataFrame:
        frames[way].append(joined(left, right, device=device))
        return frames[way][-1]

    frames: dict[str, list[DataFrame]] = {ACCELERATOR: [], SOFTWARE: []}
    wide = [frame.selectExpr("t", "bigint(x) AS x", "bigint(y) AS y") for frame in (left, right)]
    planning = _planning(lambda: joined(*wide), options.turns + 1)
    ways: dict[str, Callable[[], DataFrame]] = {
        ACCELERATOR: lambda: offloaded(ACCELERATOR, options.device),
        SOFTWARE: lambda: offloaded(SOFTWARE, "software:"),
        EXPERT: lambda: by_expert(benchmark, left, right),
    }
    for make in ways.values():
        answer(make())  # Python workers started, code compiled
    answers: dict[str, Answer] = {}
    seconds = race(ways, options.turns, answers)
    if not options.without_own:
        written = {AS_WRITTEN: lambda: benchmark.in_spark(left, right)}
        seconds |= race(written, 1, answers)
    done = metrics(frames[ACCELERATOR][-1])
    spent = done.total("seconds") - done.total("waited_seconds")
    overhead = spent / (2 * benchmark.rows) * 1e6
    taken = task_seconds(benchmark, options.turns)
    software = [each / (2 * benchmark.rows) * 1e6 for each in taken]
    if benchmark.deviation is None:
        rows = [*_plan_rows(planning), *_rows(seconds, overhead, software)]
        rows += _aggregate_rows(spark, options, seconds)
    else:
        rows = [_speedup("spark.clustered.speedup_vs_expert", seconds, ">= 3")]
    show(seconds, rows, options.output)
    return 0


def task_seconds(benchmark: ClusteredBenchmark, turns: int) -> Times:
    """Return the processor time of a task of the software engine, run in this process.

    It gets all rows, tagged and in batches as Spark sends them, so what is measured is what a task
    does by itself. A machine that is busy with Spark changes the seconds by the clock manyfold.
    """
    left, right = benchmark.tables()
    query = Query(
        band={(name, name): (-benchmark.reach, benchmark.reach) for name in "xy"},
        time="t",
        within=benchmark.within,
    )
    task = JoinTask(
        query=query,
        devices=DeviceSource({"software:": "software:"}, None, False, Duration(0)),
        left=left.schema,
        right=right.schema,
        output=output_schema(left.schema, right.schema),
    )
    rows = tagged_rows(left, right).to_batches(ARROW_ROWS)
    seconds: Times = []
    for _ in range(turns + 1):
        began = time.process_time()
        for _ in task.function("join")(iter(rows)):
            pass
        seconds.append(time.process_time() - began)
    return seconds[1:]  # the first one loads modules


def tagged_rows(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return the rows of both sides as a task gets them, by the time ``t``; left ones come first.

    In a row of one side, the columns of the other side are null.
    """
    sides = []
    for tag, (own, letter) in enumerate(((left, "l"), (right, "r"))):
        count = own.num_rows
        columns = {
            "side": pa.array(np.full(count, tag, np.int8)),
            "order": own["t"],
            "row": pa.array(np.arange(count)),
        }
        columns |= {f"{letter}{at}": column for at, column in enumerate(own.columns)}
        sides.append(pa.table(columns))
    both = pa.concat_tables(sides, promote_options="default")
    return both.sort_by([("order", "ascending"), ("side", "ascending")]).combine_chunks()


def _aggregate_rows(
    spark: SparkSession, options: argparse.Namespace, seconds: dict[str, Times]
) -> list[BenchRow]:
    """Return the figures of aggregates over windows; ``seconds`` get those of both ways."""
    benchmark = AggregateBenchmark(rows=4 * options.tuples)
    print(benchmark, file=sys.stderr)
    path = options.output.parent / "spark-rows.parquet"
    pq.write_table(benchmark.table(), path, row_group_size=1 << 15)
    frame = spark.read.parquet(str(path.absolute()))
    rows = []
    for shape, panes in WINDOWS.items():
        ways = benchmark.ways(frame, panes)
        for make in ways.values():
            answer(make())
        spent = race(ways, options.turns, {})
        name = f"spark.aggregate.{'tumbling_' * (shape == 'tumbling')}speedup_vs_spark"
        rows.append(ratio(name, spent[KIT], spent[SPARK]))
        seconds |= {f"{shape}: {way}": times for way, times in spent.items()}
    return rows


def _planning(make: Callable[[], DataFrame], turns: int) -> Times:
    """Return how long each of several joins took to plan, of which nothing is computed."""
    seconds: Times = []
    for _ in range(turns):
        start = time.perf_counter()
        make()
        seconds.append(time.perf_counter() - start)
    return seconds


def _plan_rows(seconds: Times) -> list[BenchRow]:
    """Return the figures of planning: the first join of a session, and each later one."""
    return [
        BenchRow("spark.first_join_s", seconds[0], "s", "< 1.6"),
        BenchRow.middle("spark.plan_s", seconds[1:], "s", "< 0.085"),
    ]


def _rows(seconds: dict[str, Times], overhead: float, software: Times) -> list[BenchRow]:
    """Return the figures."""
    rows = []
    if AS_WRITTEN in seconds:
        ours = seconds[ACCELERATOR]
        own = seconds[AS_WRITTEN] * len(ours)  # which ran once
        rows.append(ratio("spark.band.speedup_vs_spark", ours, own, ">= 100"))
    return [
        *rows,
        _speedup("spark.band.speedup_vs_expert", seconds, ">= 1"),
        BenchRow("spark.overhead_us_per_row", overhead, "us", "< 0.5"),
        BenchRow.middle("spark.task.software_us_per_row", software, "us", "<= 0.6"),
    ]


def _speedup(name: str, seconds: dict[str, Times], goal: str) -> BenchRow:
    """Return how much quicker the accelerator is than the expert's query."""
    return ratio(name, seconds[ACCELERATOR], seconds[EXPERT], goal)
