# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.spark``: joins, aggregates of matches and streams, beside Spark's own."""

from collections.abc import Sequence
import sys

from bench.spark import bands, cases, command, matches, streams
from host.installation import CommandParser
from spark_offload.__main__ import run

__all__ = ["main", "parser"]

COMMAND = "python -m bench.spark"


def parser() -> CommandParser:
    """Return the parser of the command line."""
    result = CommandParser(prog=COMMAND, description=(__doc__ or "").partition(": ")[2])
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for measurement in (cases, command, bands, matches, streams):
        measurement.add_parser(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 2: wrong usage, 1: a failure, 130: interrupted."""
    return run(parser().parse_args(arguments), COMMAND)


if __name__ == "__main__":
    sys.exit(main())
