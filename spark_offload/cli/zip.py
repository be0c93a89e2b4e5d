# SPDX-License-Identifier: Apache-2.0
"""`python -m spark_offload zip`: the packages as an archive for spark-submit."""

import argparse
from pathlib import Path

from host.files.writing import atomic_output
from host.installation import CommandParser
from spark_offload.cluster.machines import write_packages

__all__ = [
    "OUTPUT",
    "add_parser",
    "main",
]

OUTPUT = Path("build") / "spark" / "splitjoin.zip"
"""Where the archive goes by default."""


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``zip``."""
    parser = subparsers.add_parser(
        "zip",
        help="write the packages as an archive for spark-submit",
        description="Write host, spark_offload and splitjoin as an archive, which `spark-submit "
        "--py-files` takes. NumPy, PyArrow and pandas must be on the cluster's machines.",
        example="",
    )
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, metavar="FILE", help="default: %(default)s"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Write the archive; return the exit code."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(options.output) as place:
        count = write_packages(place)
    print(f"{options.output}: {count} files; spark-submit --py-files {options.output} PROGRAM")
    return 0
