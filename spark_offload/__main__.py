# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload``: joins of files through Spark, and the demo."""

import argparse
from collections.abc import Sequence
from pathlib import Path
import sys

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from host.cli.command import INTERRUPTED, OutputFile, ending
from host.files.writing import atomic_output
from host.installation import CommandParser
from spark_offload.cli import demo, join
from spark_offload.cluster.machines import write_packages
from spark_offload.cluster.session import kept_java_log, quick_interrupts, stop_session
from spark_offload.errors import kit_errors

__all__ = ["main", "parser", "run"]

#: How this command is called, unless another one leads here.
COMMAND = "python -m spark_offload"

#: Where the archive for spark-submit goes by default.
ARCHIVE = Path("build") / "spark" / "splitjoin.zip"

#: Commands that were here once, and what measures the same in a checkout.
MOVED = {"bench": "bands", "bench-matches": "matches", "bench-stream": "streams"}


def parser(*, of_files: bool = False, prog: str = COMMAND) -> CommandParser:
    """Return the parser of the command line.

    Parameters
    ----------
    of_files : bool
        Whether the demo is asked to join the user's files instead of generated streams.
    prog : str
        How the command is called, for its usage.
    """
    result = CommandParser(prog=prog, description=(__doc__ or "").partition(": ")[2])
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    join.add_parser(commands)
    demo.add_parser(commands, of_files=of_files)
    _add_zip(commands)
    return result


def _add_zip(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``zip``."""
    parser = subparsers.add_parser(
        "zip",
        help="write the packages as an archive for spark-submit",
        description="Write host, spark_offload and splitjoin as an archive, which `spark-submit "
        "--py-files` takes. NumPy, PyArrow and pandas must be on the cluster's machines.",
        example="",
    )
    parser.add_argument(
        "--output", type=Path, default=ARCHIVE, metavar="FILE", help="default: %(default)s"
    )
    parser.set_defaults(run=_zip)


def _zip(options: argparse.Namespace) -> int:
    """Write the archive; return the exit code."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(options.output) as place:
        count = write_packages(place)
    print(f"{options.output}: {count} files; spark-submit --py-files {options.output} PROGRAM")
    return 0


def main(arguments: Sequence[str] | None = None, *, prog: str = COMMAND) -> int:
    """Run a command; return its exit code: 2: wrong usage, 1: a failure, 130: interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    of_files = any(word.startswith(("--left", "--right")) for word in words)
    if words and words[0] in MOVED:
        moved = f"`python -m bench.spark {MOVED[words[0]]}`, in a checkout of the kit"
        print(f"{prog}: Command {words[0]!r} is {moved}", file=sys.stderr)
        return 2
    return run(parser(of_files=of_files, prog=prog).parse_args(words), prog)


def run(options: argparse.Namespace, prog: str) -> int:
    """Run the command that was parsed, ``options.run``, with errors as a user reads them.

    Parameters
    ----------
    options : argparse.Namespace
        What :meth:`argparse.ArgumentParser.parse_args` returned.
    prog : str
        How the command is called, in front of errors.
    """
    output = OutputFile(options)
    before = SparkSession.getActiveSession()
    with quick_interrupts():
        try:
            with kit_errors():
                return int(options.run(options))
        except (Exception, KeyboardInterrupt) as error:
            end = ending(error, output)
            if end is None:
                raise
            said = f"{end[0]}{_java_note(error)}"
            print(f"{prog} {options.command}: {said}", file=sys.stderr)
            session = SparkSession.getActiveSession()
            if end[1] == INTERRUPTED and session is not None and session is not before:
                stop_session(session)
            return end[1]


def _java_note(error: BaseException) -> str:
    """Return where to read what Java has printed, if Java did not answer any more."""
    silent = (Py4JError, ConnectionError)
    unanswered = any(
        isinstance(each, silent) and not isinstance(each, Py4JJavaError)
        for each in (error, error.__cause__)
    )
    log = kept_java_log() if unanswered else None
    return "" if log is None else f" What Java has printed is in {log}."


if __name__ == "__main__":
    sys.exit(main())
