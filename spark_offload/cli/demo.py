# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload demo``: the paper's benchmark, or the user's files, with a report."""

import argparse
from pathlib import Path
import sys
import time

import pyarrow as pa
from pyspark.sql import SparkSession

from host import FailureError, UsageError
from host.cli.query_arguments import add_join_arguments
from host.cli.status import Status
from host.files.formats import format_of, write_table
from host.files.outputs import require_outputs
from spark_offload.cli.benchmark import Benchmark
from spark_offload.cli.file_join import TableAnswer, join_tables_in_spark
from spark_offload.cli.join import add_spark_arguments, explain_and_write, join_files
from spark_offload.cli.spark_tables import frame_of_table
from spark_offload.planning.accelerator import choose_device
from spark_offload.report.figures import Run, derive_figures, table
from spark_offload.report.page import write_report
from spark_offload.session.spark_session import open_session

__all__ = ["add_parser"]

REPORT = Path("build") / "demo" / "report.html"
OUTPUT = Path("build") / "demo" / "joined.parquet"


def add_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", *, of_files: bool
) -> None:
    """Add the subcommand ``demo``; with files it takes the options of ``join``."""
    parser = subparsers.add_parser(
        "demo",
        help="join the paper's benchmark, or --left and --right, and write a report",
        description="Join the benchmark of the SplitJoin paper through Spark on the simulated "
        "accelerator, compare the answer with Spark's own join, and write a report. With --left "
        "and --right, join these files instead; the options are those of 'join'.",
    )
    if of_files:
        add_join_arguments(parser)
        for action in parser._actions:
            if action.dest == "output":
                action.required, action.default = False, str(OUTPUT)
        parser.set_defaults(run=demonstrate_files)
    else:
        defaults = Benchmark()
        parser.add_argument(
            "--tuples", type=int, default=defaults.rows, metavar="N",
            help="tuples of each stream; default: %(default)s",
        )  # fmt: skip
        parser.add_argument(
            "--window", type=int, default=defaults.window, metavar="N",
            help="tuples of each window, which is time-based; default: %(default)s",
        )  # fmt: skip
        parser.add_argument(
            "--rows", type=int, metavar="N", help="a count-based window of the last N rows instead"
        )
        parser.add_argument("--device", metavar="URI", help="default: the simulated accelerator")
        parser.add_argument("--output", metavar="FILE", help="also write the pairs to a file")
        parser.set_defaults(run=demonstrate_benchmark)
    add_spark_arguments(parser)
    parser.add_argument(
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
    left, right = benchmark.tables()
    with Status("demo") as status:
        with status.stage("starting Spark"):
            spark = open_session("splitjoin demo", master=options.master)
        device = choose_device(options.device, query, spark).uri
        with status.stage("warming up"):
            _warm_up(spark)
        answer = join_tables_in_spark(
            spark, left, right, query, device=device, trace=True, status=status
        )
        with status.stage("the same by Spark's own join"):
            expected, seconds = _spark_answer(spark, benchmark, left, right)
    agrees = answer.table.equals(expected)
    verdict = (
        f"All {answer.table.num_rows:,} rows agree with Spark's own join, in order."
        if agrees
        else f"The answer has {answer.table.num_rows:,} rows and differs from that of Spark's own "
        f"join, which has {expected.num_rows:,}."
    )
    run = _run(
        answer,
        title=f"{_kind(device)}: the paper's benchmark through Spark",
        question=str(benchmark),
        rows=(left.num_rows, right.num_rows),
        check=verdict,
        agrees=agrees,
        check_seconds=seconds,
    )
    _show(run, options.report)
    if not agrees:
        raise FailureError(verdict)
    if options.output is not None:
        write_table(answer.table.to_batches(), answer.table.schema, options.output)
    return 0


def demonstrate_files(options: argparse.Namespace) -> int:
    """Join the user's files, compare with the reference join, and report."""
    options.verify = True
    if options.output == str(OUTPUT):
        _make_folder("--output", OUTPUT)
    _make_folder("--report", options.report)
    with Status("demo") as status:
        answer, verdict = join_files(
            options, status, outputs={"--report": options.report}, trace=True
        )
        explain_and_write(options, answer, verdict, status)
    metrics = answer.plan.metrics()
    _show(
        _run(
            answer,
            title=f"{_kind(answer.plan.device)}: a join of two files through Spark",
            question=f"{options.left} joined with {options.right}: {answer.plan.query}",
            rows=(int(metrics.total("left_rows")), int(metrics.total("right_rows"))),
            check="" if verdict is None else verdict.text,
            agrees=None if verdict is None else verdict.agrees,
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


def _warm_up(spark: SparkSession) -> None:
    """Let Spark start its Python workers and compile, so that the figures are of the join alone."""
    left, right = Benchmark(rows=4).tables()
    join_tables_in_spark(spark, left, right, Benchmark().query(), device="software:")


def _spark_answer(
    spark: SparkSession, benchmark: Benchmark, left: pa.Table, right: pa.Table
) -> tuple[pa.Table, float]:
    frames = frame_of_table(spark, left, "left"), frame_of_table(spark, right, "right")
    started = time.perf_counter()
    answer = benchmark.in_spark(*frames).toArrow()
    return answer.cast(_like(answer.schema, left, right)), time.perf_counter() - started


def _like(schema: pa.Schema, left: pa.Table, right: pa.Table) -> pa.Schema:
    """Return the schema with the nullability of the inputs, which does not matter here."""
    fields = [*left.schema, *right.schema]
    return pa.schema(
        [pa.field(own.name, field.type) for own, field in zip(schema, fields, strict=True)]
    )


def _run(
    answer: TableAnswer,
    *,
    title: str,
    question: str,
    rows: tuple[int, int],
    check: str,
    agrees: bool | None,
    check_seconds: float | None,
) -> Run:
    manifest = answer.plan.choice.manifest
    return Run(
        title=title,
        question=question,
        left_rows=rows[0],
        right_rows=rows[1],
        results=answer.table.num_rows,
        seconds=answer.seconds,
        metrics=answer.plan.metrics(),
        engine=manifest.engine,
        storage={
            "cores": manifest.storage.cores,
            "lanes": manifest.storage.lanes,
            "probes": manifest.probes,
        },
        check=check,
        agrees=agrees,
        check_seconds=check_seconds,
        explanation=str(answer.plan.explanation),
    )


def _kind(device: str) -> str:
    """Say what answered, for the title of the report."""
    return "SplitJoin in simulation" if device.startswith("sim:") else f"SplitJoin on {device}"


def _show(run: Run, report: Path) -> None:
    """Print the table and write the report."""
    print(table(derive_figures(run)))
    write_report(run, report)
    print(f"Report: {report}", file=sys.stderr)
