# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload join``: join two inputs through Spark.

The rows stay in the cluster: executors read them, join them and write the result. This process
holds none of them, so it needs the same memory whatever the size of the inputs.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
import sys
import time

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from host import UsageError
from host.cli.arguments import add_query_arguments, query_from
from host.cli.command import Status, tell_verdict
from host.files.writing import inputs_of
from host.installation import CommandParser, command
from host.query.queries import Query
from host.query.words import PARTITIONS
from host.reference.types import JoinType
from spark_offload.api import plan_query
from spark_offload.cli.files import Source, Target, add_file_arguments, csv_options_from
from spark_offload.cluster.session import open_session, running_stages, show_progress
from spark_offload.errors import kit_errors
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.columns import common_type
from spark_offload.plan.plan import Options, Plan
from spark_offload.verification.comparison import Verification

__all__ = [
    "Joined",
    "add_input_arguments",
    "add_parser",
    "add_spark_arguments",
    "join_files",
    "report_join",
    "settings_from",
]

_SETTINGS = {
    # A time without a zone is one in every format, as it is in Parquet.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Spark's default, INT96, is deprecated, and read wrongly beyond the year 2262 by some.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A query names a column exactly as its input does.
    "spark.sql.caseSensitive": "true",
}

_ONE_FILE_A_PARTITION = "spark.sql.files.openCostInBytes"
"""By this Spark packs small files into one partition; where each file is sorted, it must not."""


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``join``."""
    parser = subparsers.add_parser(
        "join",
        help="join two inputs over a sliding window, through Spark",
        description="Join two inputs over a sliding window, through Spark on an accelerator. Spark "
        "reads the inputs and writes the result, in parallel; this process holds no rows. The "
        "result has the left columns, then the right ones. One-sided rows, by --how, come when "
        "they leave the window.",
        example="--left trades.csv --right quotes.csv --time time --on symbol\n"
        "--band price:price:-10:10 --within 5s --output pairs.parquet",
    )
    add_input_arguments(parser)
    add_spark_arguments(parser)
    parser.set_defaults(run=main)


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a join of files through Spark."""
    add_file_arguments(parser)
    add_query_arguments(parser, against="Spark's own join, before the output appears")


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that only a join through Spark has."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master", default="local[*]", help="Spark master; default: %(default)s, this machine"
    )
    spark.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of Spark, as spark-submit takes it: spark.driver.memory=8g; may be "
        "repeated",
    )  # fmt: skip


def settings_from(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of Spark that the command line gives.

    Raises
    ------
    UsageError
        If one is not NAME=VALUE.
    """
    settings = {}
    for text in options.conf:
        name, equals, value = text.partition("=")
        if not (name.strip().startswith("spark.") and equals):
            raise UsageError(f"--conf takes spark.NAME=VALUE, not {text!r}.")
        settings[name.strip()] = value
    return settings


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    with Status("join") as status:
        joined = join_files(options, status)
    report_join(options, joined)
    return 0


@dataclass(frozen=True)
class Joined:
    """Outcome of a join of files: its plan, metrics, rows, results and time.

    Parameters
    ----------
    plan : Plan
        The plan that ran.
    metrics : JoinMetrics
        What its tasks measured.
    rows : (int, int)
        Rows in.
    results : int
        Rows out.
    seconds : float
        From the call of Spark's action until everything was written.
    verification : Verification or None
        What a comparison with Spark's own join found, if it was asked for.
    """

    plan: Plan
    metrics: JoinMetrics
    rows: tuple[int, int]
    results: int
    seconds: float
    verification: Verification | None


def join_files(
    options: argparse.Namespace,
    status: Status,
    *,
    outputs: Mapping[str, Path] | None = None,
    trace: bool = False,
) -> Joined:
    """Join what the options name; what can be wrong with them without reading a row comes first.

    Parameters
    ----------
    options : argparse.Namespace
        Of the command line.
    status : Status
        Where to show how far it is.
    outputs : mapping of str to Path, optional
        What the command writes besides ``--output``, by option.
    trace : bool
        Whether to measure the latency of every result.

    Raises
    ------
    JoinError
        If the options or the rows will not do, or Spark fails; nothing is written then.
    """
    query = query_from(options)
    settings, csv_options = settings_from(options), csv_options_from(options)
    target = Target.of(options.output, options.single_file)
    sources = Source.of("--left", options.left), Source.of("--right", options.right)
    if csv_options and all(source.format != "csv" for source in sources):
        raise UsageError("--csv-option is for inputs of CSV; neither --left nor --right is one.")
    if options.verify and not query.is_timed:
        raise UsageError(
            "--verify compares with Spark's own join, which has no windows of the last rows "
            f"(--rows); take `{command('host join --verify')}`."
        )
    read = {key: path for key, path in inputs_of(options).items() if key == "--device"}
    target.require(sources, outputs=outputs or {}, inputs=read)
    with status.stage("starting Spark"):
        session = open_session("splitjoin join", master=options.master, options=settings)
    # One of its own, so that settings of the command stay with it.
    spark = session.newSession()
    for name, value in _SETTINGS.items():
        spark.conf.set(name, settings.get(name, value))
    frames = []
    for source in sources:
        with status.stage(f"reading {source.text}", partial(running_stages, spark)):
            frames.append(source.read(spark, csv_options))
    left, right = frames
    if query.sorted and any(len(source.files) > 1 for source in sources):
        query = replace(query, sorted=PARTITIONS)
        most = spark.conf.get("spark.sql.files.maxPartitionBytes") or "128m"
        spark.conf.set(_ONE_FILE_A_PARTITION, most)
    with show_progress(status, spark) as progress, kit_errors():
        plan = plan_query(
            left,
            right,
            query,
            Options(device=options.device, build=options.build, trace=trace, progress=progress),
        )
        if options.explain:
            print(plan.estimated(count=True))
        return _written(plan, query, target, options, spark, status)


def _written(
    plan: Plan,
    query: Query,
    target: Target,
    options: argparse.Namespace,
    spark: SparkSession,
    status: Status,
) -> Joined:
    """Run the plan and write its answer, which gets its name only if it is right."""
    verification = None
    with target.staged(spark) as place:
        began = time.perf_counter()
        with _arranged(plan, query, target, by_time=options.sort_by_time) as answer:
            target.write(answer, place)
        seconds = time.perf_counter() - began
        metrics = plan.metrics()
        results = int(metrics.total("results"))
        rows = int(metrics.total("left_rows")), int(metrics.total("right_rows"))
        if options.verify:
            with status.stage("comparing with Spark's own join", partial(running_stages, spark)):
                written = target.read_back(spark, plan.schema, place)
                verification = plan.verify(answer=written, raises=False)
            tell_verdict(verification.agrees, str(verification).rstrip("."))
    return Joined(plan, metrics, rows, results, seconds, verification)


@contextmanager
def _arranged(plan: Plan, query: Query, target: Target, *, by_time: bool) -> Iterator[DataFrame]:
    """Yield the answer in the order and in as many partitions as it is to be written in."""
    answer = plan.dataframe()
    places = [f"c{index}" for index in range(len(answer.columns))]  # no name can clash
    rows, names = answer.toDF(*places), answer.columns
    # Results come by the arrival of their later row, and rows alone when they leave the window.
    sorts = by_time and not (plan.follows_time and query.how is JoinType.INNER)
    sorted_by = _times(plan, query, places) if sorts else []
    single = target.single and (sorts or not target.merges)
    if single and plan.explanation.partitions == 1 and not sorts:
        yield answer.coalesce(1)
    elif single:
        # Not coalesce(), which would make one task of the join as well.
        sorted_by = sorted_by or [F.monotonically_increasing_id()]
        keys = [key.alias(f"k{index}") for index, key in enumerate(sorted_by)]
        one = rows.select(*places, *keys).repartition(1)
        in_order = one.sortWithinPartitions(*(f"k{index}" for index in range(len(keys))))
        yield in_order.select(*places).toDF(*names)
    elif sorted_by:
        # Spark samples what it sorts, and would join twice for that.
        kept = rows.persist(StorageLevel.DISK_ONLY)
        try:
            yield kept.orderBy(*sorted_by).toDF(*names)
        finally:
            kept.unpersist()
    else:
        yield answer


def _times(plan: Plan, query: Query, places: list[str]) -> list[Column]:
    """Return the times of the later row of a result and of the earlier one."""
    schemas = [frame.schema for frame in plan.inputs]
    columns = [schema.names.index(order) for schema, order in zip(schemas, query.time, strict=True)]
    if not query.how.has_pairs:
        return [F.col(places[columns[0]])]
    kinds = (schema[order].dataType for schema, order in zip(schemas, query.time, strict=True))
    common = common_type(*kinds)
    both = columns[0], len(schemas[0]) + columns[1]
    times = [F.col(places[column]).cast(common) for column in both]
    window = [F.col(places[-2])] if query.per_window else []
    return [F.greatest(*times), F.least(*times), *window]


def report_join(options: argparse.Namespace, joined: Joined) -> None:
    """Print what a join has taken."""
    metrics, (left, right) = joined.metrics, joined.rows
    cycles = int(metrics.total("cycles"))
    counted = f"{cycles} cycles " if cycles else ""
    print(
        f"{left} + {right} rows, {joined.results} results, {joined.seconds:.2f} s, {counted}on "
        f"{joined.plan.device}, written to {options.output}",
        file=sys.stderr,
    )
    for remark in metrics.remarks():
        print(remark, file=sys.stderr)
    for cause in joined.plan.explanation.causes:
        print(f"not offloaded: {cause}", file=sys.stderr)
