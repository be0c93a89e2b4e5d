# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload join``: join two files through Spark."""

import argparse
from collections.abc import Mapping
from pathlib import Path
import sys
from typing import Any

from host import FailureError
from host.cli.query_arguments import add_join_arguments, query_from
from host.cli.status import Status
from host.files.formats import format_of, write_table
from host.files.outputs import inputs_of, require_outputs
from host.join.inputs import read_input
from host.join.verification import Verdict, compare_pairs, reference_pairs
from spark_offload.cli.file_join import ArrivalOrder, TableAnswer, join_tables_in_spark
from spark_offload.session.spark_session import open_session

__all__ = ["add_parser", "add_spark_arguments", "join_files", "main"]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``join``."""
    parser = subparsers.add_parser(
        "join",
        help="join two files over a sliding window, through Spark",
        description="Join two files over a sliding window, through Spark on an accelerator. The "
        "result has the left columns, then the right ones, in the order of arrival of the later "
        "row of each pair unless --ordering says otherwise. Rows that come alone, by --how, come "
        "when they leave the window.",
    )
    add_join_arguments(parser)
    add_spark_arguments(parser)
    parser.set_defaults(run=main)


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that only a join through Spark has."""
    parser.add_argument(
        "--master", default="local[*]", help="Spark master; default: %(default)s, this machine"
    )


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    with Status("join") as status:
        answer, verdict = join_files(options, status)
        explain_and_write(options, answer, verdict, status)
    return 0


def join_files(
    options: argparse.Namespace,
    status: Status,
    *,
    outputs: Mapping[str, Path] | None = None,
    **settings: Any,
) -> tuple[TableAnswer, Verdict | None]:
    """Join the files that the options name; all that can be wrong with them comes first.

    Parameters
    ----------
    options : argparse.Namespace
        Of the command line.
    status : Status
        Where to show how far it is.
    outputs : mapping of str to Path, optional
        What the command writes besides ``--output``, by option.
    **settings
        Passed to :func:`~spark_offload.cli.file_join.join_tables_in_spark`.

    Returns
    -------
    answer : TableAnswer
        The pairs.
    verdict : Verdict or None
        What the reference join says of them, if it was asked.
    """
    query = query_from(options)
    format_of(options.output)
    require_outputs({"--output": options.output, **(outputs or {})}, inputs_of(options))
    tables = []
    for path, column in zip((options.left, options.right), query.order, strict=True):
        with status.stage(f"reading {path}"):
            tables.append(read_input(path, column, is_sorted=query.sorted))
    left, right = tables
    with status.stage("checking", lambda: f"{left.num_rows + right.num_rows:,} rows"):
        ArrivalOrder(left, right, query)  # meets bad values before Spark is started
    with status.stage("starting Spark"):
        spark = open_session("splitjoin join", master=options.master)
    answer = join_tables_in_spark(
        spark,
        left,
        right,
        query,
        device=options.device,
        build=options.build,
        status=status,
        **settings,
    )
    if not options.verify:
        return answer, None
    with status.stage("comparing with the reference join"):
        expected = reference_pairs(left, right, query)
        return answer, compare_pairs(answer.pairs, expected, ordered=query.ordering.period == 1)


def explain_and_write(
    options: argparse.Namespace, answer: TableAnswer, verdict: Verdict | None, status: Status
) -> None:
    """Print what was asked for, and write the answer unless it is wrong."""
    if options.explain:
        with status.stage("estimating the cost"):
            explanation = answer.plan.estimated(count=True)
        print(explanation)
    if verdict is not None:
        print(f"verify: {verdict.text}", file=sys.stderr)
        if not verdict.agrees:
            raise FailureError(f"Verification failed: {verdict.text}.")
    with status.stage(f"writing {options.output}"):
        write_table(answer.table.to_batches(), answer.table.schema, options.output)
    metrics = answer.plan.metrics()
    print(
        f"{int(metrics.total('left_rows'))} + {int(metrics.total('right_rows'))} rows, "
        f"{answer.table.num_rows} results, {answer.seconds:.2f} s, "
        f"{int(metrics.total('cycles'))} cycles on {answer.plan.device}, "
        f"written to {options.output}",
        file=sys.stderr,
    )
    if metrics.hardware is not None:
        print(f"hardware: {metrics.hardware}", file=sys.stderr)
