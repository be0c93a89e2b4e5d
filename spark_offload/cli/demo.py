# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload demo``: the paper's benchmark, or the user's files, with a report.

The benchmark of the SplitJoin paper is a band on two fields. Its time on devices that nobody has
here is that of the cost model.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from host import FailureError, UsageError
from host.cli.command import Status, aligned
from host.devices.bundles import SIMULATED
from host.files.reading import format_of
from host.files.writing import require_outputs, write_table
from host.installation import CommandParser
from host.protocol.cost_model import mean_of_last
from host.protocol.modelled import ModelledDevice, modelled_devices
from host.query.queries import Query
from spark_offload.api import plan_query
from spark_offload.cli.join import (
    Joined,
    add_input_arguments,
    add_spark_arguments,
    join_files,
    report_join,
    settings_from,
)
from spark_offload.cli.report import Run, derive_figures, write_report
from spark_offload.cluster.session import open_session, show_progress
from spark_offload.errors import kit_errors
from spark_offload.plan.accelerator import choose_device
from spark_offload.plan.plan import Options

__all__ = [
    "Benchmark",
    "add_parser",
    "estimated",
    "near",
    "renamed",
]


@dataclass(frozen=True)
class Benchmark:
    """Two streams whose fields ``x`` and ``y`` are uniform over 1 to 10,000.

    A tuple arrives every tick, in turn from R (even ticks) and from S (odd ones). A pair matches
    if ``x`` differs by at most ``reach``, and ``y`` too.

    Parameters
    ----------
    rows : int
        Rows of each stream.
    window : int
        Tuples of each window, as the time that so many of a side take.
    reach : int
        Half width of the band.
    seed : int
        Of the random numbers.
    """

    rows: int = 20_000
    window: int = 8_192
    reach: int = 10
    seed: int = 2016

    @property
    def within(self) -> int:
        """Width of the time-based window in ticks: it holds exactly ``window`` tuples a side."""
        return 2 * self.window - 1

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return R and S."""
        rng = np.random.default_rng(self.seed)
        sides = [
            pa.table(
                {
                    "t": np.arange(self.rows, dtype=np.int64) * 2 + side,
                    "x": self.field(rng),
                    "y": self.field(rng),
                }
            )
            for side in range(2)
        ]
        return sides[0], sides[1]

    def field(self, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draw the values of one field."""
        return rng.integers(1, 10_001, self.rows, dtype=np.int32)

    @property
    def values(self) -> str:
        """How the values of a field are drawn, in words."""
        return "uniform over 1 to 10,000"

    def query(self, *, counted: bool = False) -> Query:
        """Return the question: by time, or by the last ``window`` rows, which is the same here."""
        band = (-self.reach, self.reach)
        return Query(
            band=[("x", "x", *band), ("y", "y", *band)],
            time="t",
            rows=self.window if counted else None,
            within=None if counted else self.within,
        )

    def in_spark(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same question as Spark's own join, in the order of the later row.

        The conditions are written down as they are, so Spark compares every row with every row.
        """
        other = renamed(right)
        joined = left.join(other, self.near())
        later = F.greatest("t", "t_right")
        return joined.orderBy(later, F.least("t", "t_right"))

    def near(self) -> Column:
        """The conditions as they are asked for."""
        return near({"t": self.within, "x": self.reach, "y": self.reach})

    def __str__(self) -> str:
        return (
            f"Two streams of {self.rows:,} tuples, fields x and y {self.values}; pairs "
            f"with |x - x'| <= {self.reach} and |y - y'| <= {self.reach}, each window the last "
            f"{self.window:,} tuples of a stream."
        )


def estimated(benchmark: Benchmark, device: ModelledDevice, results: int) -> tuple[str, float, str]:
    """Return a device's name, the seconds of its cycles for a benchmark, and what these are."""
    window = mean_of_last(benchmark.window, benchmark.rows)
    found = device.estimate(2 * benchmark.rows, (window, window), results)
    words = f"{found.cycles:.3g} cycles per tuple at {device.mhz:.1f} MHz; clock: {device.clock}"
    return device.name, found.device, words


def near(reaches: Mapping[str, int]) -> Column:
    """Return whether the columns of a pair differ by so much at most."""
    conditions = [
        F.abs(F.col(name) - F.col(f"{name}_right")) <= reach for name, reach in reaches.items()
    ]
    return reduce(lambda one, other: one & other, conditions)


def renamed(right: DataFrame) -> DataFrame:
    """The right rows with the names that their columns have in the answer."""
    return right.toDF(*(f"{name}_right" for name in right.columns))


REPORT = Path("build") / "demo" / "report.html"
OUTPUT = Path("build") / "demo" / "joined.parquet"


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]", *, of_files: bool) -> None:
    """Add the subcommand ``demo``; with files it takes the options of ``join``."""
    parser = subparsers.add_parser(
        "demo",
        help="join the paper's benchmark, or --left and --right, and write a report",
        description="Join the benchmark of the SplitJoin paper through Spark on the simulated "
        "accelerator, compare the answer with Spark's own join, and write a report. With --left "
        "and --right, join these files instead; the options are those of 'join'.",
        example="--tuples 20000 --window 2000",
    )
    if of_files:
        add_input_arguments(parser)
        for action in parser._actions:
            if action.dest == "output":
                action.required, action.default = False, str(OUTPUT)
        parser.set_defaults(run=demonstrate_files, device=SIMULATED)
    else:
        defaults = Benchmark()
        benchmark = parser.add_argument_group("benchmark")
        benchmark.add_argument(
            "--tuples", type=int, default=defaults.rows, metavar="N",
            help="tuples of each stream; default: %(default)s",
        )  # fmt: skip
        benchmark.add_argument(
            "--window", type=int, default=defaults.window, metavar="N",
            help="tuples of each window, which is time-based; default: %(default)s",
        )  # fmt: skip
        benchmark.add_argument(
            "--rows", type=int, metavar="N", help="a count-based window of the last N rows instead"
        )
        benchmark.add_argument(
            "--device", default=SIMULATED, metavar="URI", help="default: %(default)s"
        )
        benchmark.add_argument("--output", metavar="FILE", help="also write the pairs to a file")
        parser.set_defaults(run=demonstrate_benchmark)
    add_spark_arguments(parser)
    parser.add_argument_group("report").add_argument(
        "--report", type=Path, default=REPORT, metavar="FILE", help="default: %(default)s"
    )


def demonstrate_benchmark(options: argparse.Namespace) -> int:
    """Join generated streams and compare with Spark's own join, row for row."""
    for name in ("tuples", "window", "rows"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} must be at least 1, not {value}.")
    window = options.window if options.rows is None else options.rows
    _make_folder("--report", options.report)
    outputs = {"--report": options.report}
    if options.output is not None:
        format_of(options.output)
        outputs["--output"] = Path(options.output)
    require_outputs(outputs)
    benchmark = Benchmark(rows=options.tuples, window=window)
    print(benchmark, file=sys.stderr)
    query = benchmark.query(counted=options.rows is not None)
    tables = benchmark.tables()
    with Status("demo") as status:
        with status.stage("starting Spark"):
            spark = open_session(
                "splitjoin demo", master=options.master, options=settings_from(options)
            )
        device = choose_device(options.device, query, spark).uri
        with status.stage("warming up"):
            _warm_up(spark)
        with show_progress(status, spark) as progress:
            answer, joined = _in_spark(
                spark, tables, query, device=device, trace=True, progress=progress
            )
        software: float | None = None
        if device.startswith("sim:"):
            with status.stage("the same on the software engine"):
                again, counterpart = _in_spark(spark, tables, query, device="software:")
            software = counterpart.seconds
            if not again.equals(answer):
                raise FailureError("The software engine gives other rows than the accelerator.")
        with status.stage("the same by Spark's own join"):
            expected, seconds = _spark_answer(spark, benchmark, tables)
    agrees = answer.cast(expected.schema).equals(expected)
    verdict = (
        f"All {answer.num_rows:,} rows agree with Spark's own join, in order."
        if agrees
        else f"The answer has {answer.num_rows:,} rows and differs from that of Spark's own "
        f"join, which has {expected.num_rows:,}."
    )
    run = Run(
        joined=joined,
        title=f"{_kind(device)}: the paper's benchmark through Spark",
        question=str(benchmark),
        check=verdict,
        agrees=agrees,
        check_seconds=seconds,
        software_seconds=software,
        estimates=[
            estimated(benchmark, one, answer.num_rows)
            for one in modelled_devices()
            if window <= one.capacity
        ],
    )
    _show(run, options.report)
    if not agrees:
        raise FailureError(verdict)
    if options.output is not None:
        write_table(answer.to_batches(), answer.schema, options.output)
    return 0


def demonstrate_files(options: argparse.Namespace) -> int:
    """Join the user's files and report; with ``--verify`` also compare, and measure latencies."""
    if options.output == str(OUTPUT):
        _make_folder("--output", OUTPUT)
    _make_folder("--report", options.report)
    with Status("demo") as status:
        joined = join_files(
            options, status, outputs={"--report": options.report}, trace=options.verify
        )
    report_join(options, joined)
    verified = joined.verification
    _show(
        Run(
            joined=joined,
            title=f"{_kind(joined.plan.device)}: a join of two files through Spark",
            question=f"{options.left} joined with {options.right}: {joined.plan.query}",
            check="not asked for (--verify)" if verified is None else str(verified),
            agrees=None if verified is None else verified.agrees,
            check_seconds=None,
        ),
        options.report,
    )
    return 0


def _make_folder(option: str, path: Path) -> None:
    """Make the folder that a file will be written in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"The folder of {option} {str(path)!r} cannot be made: {error.strerror}."
        ) from error


def _in_spark(
    spark: SparkSession, tables: tuple[pa.Table, pa.Table], query: Query, **options: Any
) -> tuple[pa.Table, Joined]:
    """Join generated tables; return the answer, in the order of arrival, and what it took."""
    left, right = tables
    frames = spark.createDataFrame(left), spark.createDataFrame(right)
    plan = plan_query(*frames, query, Options(strict=True, **options))
    began = time.perf_counter()
    with kit_errors():
        answer = plan.dataframe().toArrow()
    seconds = time.perf_counter() - began
    rows = left.num_rows, right.num_rows
    return answer, Joined(plan, plan.metrics(), rows, answer.num_rows, seconds, None)


def _warm_up(spark: SparkSession) -> None:
    """Let Spark start its Python workers and compile, so that the figures are of the join alone."""
    _in_spark(spark, Benchmark(rows=4).tables(), Benchmark().query(), device="software:")


def _spark_answer(
    spark: SparkSession, benchmark: Benchmark, tables: tuple[pa.Table, pa.Table]
) -> tuple[pa.Table, float]:
    left, right = map(spark.createDataFrame, tables)
    began = time.perf_counter()
    answer = benchmark.in_spark(left, right).toArrow()
    return answer, time.perf_counter() - began


def _kind(device: str) -> str:
    """Say what answered, for the title of the report."""
    return "SplitJoin in simulation" if device.startswith("sim:") else f"SplitJoin on {device}"


def _show(run: Run, report: Path) -> None:
    """Print the table and write the report."""
    print(aligned(derive_figures(run)))
    write_report(run, report)
    print(f"Report: {report}", file=sys.stderr)
