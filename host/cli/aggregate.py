# SPDX-License-Identifier: Apache-2.0
"""`python -m host aggregate`: aggregate the rows of a file over windows of time."""

import argparse
import time

import pyarrow as pa

from host.cli.arguments import (
    FILES,
    INPUT,
    add_checks,
    add_csv_options,
    add_other_words,
    add_output,
    add_sorted,
    naming_cells,
    parse_span,
    read_input,
    require_output,
)
from host.cli.command import Status, add_memory, memory_of, tell_verdict, tell_written
from host.errors import UsageError
from host.files.writing import write_table
from host.installation import CommandParser
from host.operators.aggregate import Aggregate
from host.operators.verification import compare_with_reference
from host.pipeline.inputs import OrderedInput
from host.query.queries import FUNCTIONS, AggregateQuery

__all__ = [
    "add_parser",
    "main",
]


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``aggregate`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "aggregate",
        help="aggregate the rows of a file over windows of time",
        description="Aggregate the rows of a file over windows of time, by keys, as Spark's "
        "groupBy(window(...)) does. The result has the boundaries of the window, the keys and the "
        "aggregates, in the order of windows and keys. It is computed on the host, or with "
        "--device on an accelerator, with the same answer.",
        example="--input trades.csv --time time --window 1h --on symbol\n"
        "--aggregate n=count --aggregate highest=max:price --output hourly.csv",
    )
    files = parser.add_argument_group("files", FILES)
    files.add_argument("--input", required=True, metavar="FILE", help=f"the table: {INPUT}")
    add_output(files)
    add_csv_options(files)
    add_memory(files)
    query = parser.add_argument_group("query")
    query.add_argument("--time", required=True, metavar="COLUMN", help="the column of time")
    query.add_argument(
        "--window", required=True, metavar="DURATION|NUMBER",
        help="how long a window is: 1h, 90s, 500ms for temporal columns, a number for others",
    )  # fmt: skip
    query.add_argument(
        "--advance", metavar="DURATION|NUMBER",
        help="how much later the next window begins; default: as long as a window is",
    )  # fmt: skip
    query.add_argument(
        "--on", action="append", default=[], metavar="COLUMN",
        help="a column that is equal in the rows of a group; may be repeated",
    )  # fmt: skip
    query.add_argument(
        "--aggregate", action="append", required=True, metavar="NAME=FUNCTION[:COLUMN]",
        help=f"what is computed, such as n=count or total=sum:price; {', '.join(FUNCTIONS)}; may "
        "be repeated",
    )  # fmt: skip
    add_sorted(query, "the table is")
    run = parser.add_argument_group("run")
    run.add_argument(
        "--device", metavar="URI",
        help="an accelerator of windowed aggregates: sim: for one that is built for the query, or "
        "sim:BUNDLE, whose operator has what is computed",
    )  # fmt: skip
    add_checks(run, "the reference operator", "say what is computed, and how")
    add_other_words(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the aggregation; return the exit code."""
    query = _query(options)
    require_output(options, {"--input": options.input})
    memory = memory_of(options)
    started: list[Aggregate] = []
    with Status("aggregate") as status:
        files = read_input(options, options.input, status)
        with naming_cells([("input", files)]):
            with status.stage(f"reading the times of {options.input}"):
                rows = OrderedInput(
                    files, query.time, "input", is_sorted=query.sorted, memory=memory,
                    columns=[*query.on, *query.columns],
                )  # fmt: skip
            source = rows.pipeline()
            pipeline = source.aggregate(query, device=options.device, started=started.append)
            if options.explain:
                print(f"query    {query}\n{pipeline.explain()}")
            began = time.monotonic()
            with status.stage("aggregating"):
                execution = pipeline.execution()
                batches = execution.batches()
                if options.verify:
                    result = pa.Table.from_batches(batches, execution.schema)
                    with status.stage("comparing with the reference operator"):
                        verdict = compare_with_reference(files.table(), query, result)
                    tell_verdict(*verdict)
                    batches = iter(result.to_batches())
                count = write_table(batches, execution.schema, options.output)
        done = started[-1].work
        cycles = f", {done.device_work.cycles} cycles of {options.device}" * bool(options.device)
        tell_written(options, f"{done.rows} rows, {count} results{cycles}", began)
    return 0


def _query(options: argparse.Namespace) -> AggregateQuery:
    """Return the query that the options describe."""
    aggregates = {}
    for text in options.aggregate:
        name, separator, given = text.partition("=")
        if not separator or not name or not given:
            raise UsageError(
                f"--aggregate takes NAME=FUNCTION or NAME=FUNCTION:COLUMN, not {text!r}."
            )
        if name in aggregates:
            raise UsageError(f"--aggregate names {name!r} twice; choose another name for one.")
        aggregates[name] = given
    return AggregateQuery(
        time=options.time,
        window=parse_span(options.window, "--window"),
        advance=None if options.advance is None else parse_span(options.advance, "--advance"),
        on=options.on,
        aggregates=aggregates,
        sorted=options.sorted,
    )
