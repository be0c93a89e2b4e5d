# SPDX-License-Identifier: Apache-2.0
"""`python -m host`: look after the host side: tools, devices, joins of files."""

import argparse
from collections.abc import Sequence
import sys

from host.cli import aggregate, asof, devices, doctor, join, selftest, types
from host.cli.command import OutputFile, ending

__all__ = ["main", "parser"]


def parser(prog: str = "python -m host") -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(prog=prog, description=__doc__)
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor.add_parser(commands)
    join.add_parser(commands)
    asof.add_parser(commands)
    aggregate.add_parser(commands)
    devices.add_parser(commands)
    selftest.add_parser(commands)
    types.add_parser(commands)
    return result


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m host") -> int:
    """Run a command; return its exit code: 2 for wrong usage, 1 for failure, 130 if interrupted."""
    options = parser(prog).parse_args(arguments)
    output = OutputFile(options)
    try:
        return int(options.run(options))
    except (Exception, KeyboardInterrupt) as error:
        end = ending(error, output)
        if end is None:
            raise
        print(f"{prog} {options.command}: {end[0]}", file=sys.stderr)
        return end[1]


if __name__ == "__main__":
    sys.exit(main())
