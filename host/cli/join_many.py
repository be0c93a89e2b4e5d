# SPDX-License-Identifier: Apache-2.0
"""`python -m host join-many`: join three or more files over a window."""

import argparse
from pathlib import Path
import time

from host.api import join_many
from host.cli.arguments import (
    FILES,
    INPUT,
    add_other_words,
    add_output,
    parse_span,
    require_output,
)
from host.cli.command import Status, tell_written
from host.errors import UsageError
from host.files.writing import write_table
from host.installation import CommandParser

__all__ = [
    "add_parser",
    "main",
]


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``join-many`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "join-many",
        help="join three or more files over a window",
        description="Join two, three or more files over a window: a result has one row of each, "
        "all of them within the window of one another. Files are joined one after another in the "
        "order in which they are given. Columns of the result are called input.column. Inputs and "
        "results are held in memory.",
        example="--input a=trades.csv --input b=quotes.csv --input c=news.csv --time time\n"
        "--on symbol --within 5s --where 'a.price > b.bid' --output found.parquet",
    )
    files = parser.add_argument_group("files", FILES)
    files.add_argument(
        "--input", required=True, action="append", metavar="NAME=FILE",
        help=f"a file, and what conditions and the result call it; once for each input: {INPUT}",
    )  # fmt: skip
    add_output(files)
    query = parser.add_argument_group("query")
    query.add_argument(
        "--time", required=True, metavar="COLUMN[,COLUMN…]",
        help="the columns that rows arrive by: one name, or one for each input",
    )  # fmt: skip
    query.add_argument(
        "--on", action="append", default=[], metavar="COLUMN[,COLUMN…]",
        help="columns that must be equal in all inputs: one name, or one for each; may be repeated",
    )  # fmt: skip
    query.add_argument(
        "--within", required=True, metavar="DURATION|NUMBER",
        help="how far apart in time any two rows of a result may be",
    )  # fmt: skip
    query.add_argument(
        "--advance", metavar="DURATION|NUMBER",
        help="windows in common, as long as --within, one every so far: one of them has all rows",
    )  # fmt: skip
    query.add_argument(
        "--where", metavar="CONDITION",
        help="any other condition: 'a.x < b.y and abs(b.z - c.z) <= 3', as of host join",
    )  # fmt: skip
    parser.add_argument_group("run").add_argument(
        "--device", metavar="URI",
        help="what every two of them are joined on; default: as of host join",
    )  # fmt: skip
    add_other_words(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    inputs: dict[str, Path] = {}
    for given in options.input:
        name, separator, path = given.partition("=")
        if not separator or not path:
            raise UsageError(f"--input takes NAME=FILE, not {given!r}.")
        if name in inputs:
            raise UsageError(f"Two inputs are called {name!r}; choose another name for one.")
        inputs[name] = Path(path)
    require_output(options, {f"--input {name}": path for name, path in inputs.items()})
    began = time.monotonic()
    with Status("join-many") as status, status.stage("joining"):
        found = join_many(
            inputs,
            time=_listed(options.time),
            on=[_listed(text) for text in options.on],
            within=parse_span(options.within, "--within"),
            advance=None if options.advance is None else parse_span(options.advance, "--advance"),
            where=options.where,
            device=options.device,
        )
        rows = write_table(iter(found.to_batches()), found.schema, options.output)
    tell_written(options, f"{len(inputs)} inputs, {rows} results", began)
    return 0


def _listed(text: str) -> str | list[str]:
    """Return one name, or a list of those between commas."""
    names = text.split(",")
    return names if len(names) > 1 else text
