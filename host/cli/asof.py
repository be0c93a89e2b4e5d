# SPDX-License-Identifier: Apache-2.0
"""`python -m host asof`: join each row of a file with the closest row in time of another file."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
import time

import pyarrow as pa

from host.cli.arguments import (
    add_checks,
    add_column_options,
    add_file_arguments,
    add_other_words,
    add_sorted,
    add_suffix,
    column_pair,
    naming_cells,
    ordered_inputs,
    parse_span,
    require_output,
)
from host.cli.command import (
    Status,
    add_wait,
    memory_of,
    open_for_command,
    tell_verdict,
    tell_written,
    wait_of,
)
from host.files.writing import write_table
from host.installation import CommandParser, command
from host.operators.asof import AsofJoin, AsofStream
from host.operators.verification import compare_pairs
from host.query.queries import AsofQuery
from host.reference.types import Direction, JoinType

__all__ = [
    "add_parser",
    "main",
]


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``asof`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "asof",
        help="join each row of a file with the closest row in time of another",
        description="Join each left row with the right row that is closest to it in time, as "
        "pandas' merge_asof and the ASOF JOIN of SQL do. The result has the left columns, then the "
        "right ones, in the order of the left rows' times. Without --device, the host joins them.",
        example="--left trades.csv --right quotes.csv --time time --on symbol\n"
        "--within 5s --output priced.csv",
    )
    add_file_arguments(parser)
    query = parser.add_argument_group("query")
    add_column_options(query)
    query.add_argument(
        "--direction", default=Direction.BACKWARD.value, metavar="DIRECTION",
        help="where the right row lies in time: backward (not later), forward (not earlier) or "
        "nearest; default: %(default)s",
    )  # fmt: skip
    query.add_argument(
        "--within", metavar="DURATION|NUMBER",
        help="how far away in time the right row may be: 180min, 30s, 500ms for temporal columns, "
        "a whole number for others; default: any distance",
    )  # fmt: skip
    query.add_argument(
        "--allow-exact-matches", action=argparse.BooleanOptionalAction, default=True,
        help="whether a right row with the same time counts; default: it does",
    )  # fmt: skip
    query.add_argument(
        "--how", default=JoinType.LEFT.value, metavar="TYPE",
        help="left (every left row comes, with nulls if there is no right row) or inner (only left "
        "rows with a right row); default: %(default)s",
    )  # fmt: skip
    add_sorted(query, "both tables are")
    add_suffix(query)
    run = parser.add_argument_group("run")
    run.add_argument(
        "--device", metavar="URI",
        help="the accelerator that finds the right rows, such as sim:BUNDLE of an index; default: "
        "none, the host searches",
    )  # fmt: skip
    add_wait(run)
    add_checks(run, "the reference join", "say what is joined, and how")
    add_other_words(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    query = _query(options)
    wait = wait_of(options)
    memory_of(options)
    require_output(options, {"--left": options.left, "--right": options.right})
    with Status("asof") as status, ExitStack() as held:
        device = None
        if options.device is not None:
            with status.stage(f"opening {options.device}"):
                opened = open_for_command(options.device, command("host asof"), wait)
                device = held.enter_context(opened)
        left, right = ordered_inputs(options, query.time, status)
        began = time.monotonic()
        join: AsofStream | AsofJoin
        sides = [("left", left.dataset), ("right", right.dataset)]
        with naming_cells(sides), status.stage("planning"):
            if device is None and not options.verify:
                join = AsofStream(left.schema, right.schema, query)
                batches = join.batches(left.batches(), right.batches())
            else:  # both look for rows at any distance, in all rows at once
                join = AsofJoin(left.reader().read_all(), right.reader().read_all(), query, device)
                batches = _checked(join, options.verify, status)
        if options.explain:
            print("\n".join([_explanation(join), *(f"input    {each}" for each in (left, right))]))
        with status.stage("joining"):
            rows = write_table(batches, join.schema, options.output)
        done = f"{left.rows} + {right.rows} rows, {rows} results"
        tell_written(options, done, began, _worked(join))
    return 0


def _query(options: argparse.Namespace) -> AsofQuery:
    """Return the query that the options describe."""
    return AsofQuery(
        time=column_pair(options.time, "--time"),
        on=[column_pair(text, "--on") for text in options.on],
        direction=options.direction,
        within=None if options.within is None else parse_span(options.within, "--within"),
        allow_exact_matches=options.allow_exact_matches,
        how=options.how,
        sorted=options.sorted,
        suffix=options.suffix,
    )


def _checked(join: AsofJoin, verify: bool, status: Status) -> Iterator[pa.RecordBatch]:
    """Yield the result; raise after it if it is to be verified and the reference differs."""
    yield from join.batches()
    if not verify:
        return
    with status.stage("comparing with the reference join"):
        verdict = compare_pairs(join.rows, join.reference_rows(), ordered=True)
    tell_verdict(*verdict)


def _worked(join: AsofStream | AsofJoin) -> str:
    """Say what a device has done, if there was one."""
    if isinstance(join, AsofStream) or join.found_by is None:
        return ""
    found_by = join.found_by
    cycles = f", {found_by.cycles} cycles" if found_by.cycles else ""
    asked = f", {found_by.looked_up} rows looked up on the host" if found_by.looked_up else ""
    return f"{cycles} on {found_by.device.uri}{asked}"


def _explanation(join: AsofStream | AsofJoin) -> str:
    """Say what is joined, and how."""
    device = "none: the software engine, by one sort of both sides by key and time"
    if isinstance(join, AsofJoin) and join.found_by is not None:
        uri, manifest = join.found_by.device.uri, join.found_by.device.manifest
        search = (
            "a search ends at the newest row of its key"
            if "DISTINCT" in manifest.operations
            else "a scan finds every row of the window, and the host keeps the newest"
        )
        device = f"{uri}, windows of up to {manifest.capacity} rows; {search}"
    return "\n".join(
        [
            f"query    {join.query}",
            f"device   {device}",
            "order    by the time of the left row, then input order",
            f"columns  {', '.join(join.schema.names)}",
        ]
    )
