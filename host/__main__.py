# SPDX-License-Identifier: Apache-2.0
"""`python -m host`: look after the host side: tools, devices, joins of files."""

from collections.abc import Sequence
from importlib import import_module
import sys

from host.cli.command import OutputFile, ending
from host.installation import CommandParser

__all__ = ["COMMANDS", "main", "parser"]

#: The commands, each of which is a module of :mod:`host.cli`.
COMMANDS = (
    "doctor", "join", "join-many", "asof", "aggregate", "operate", "estimate", "devices",
    "selftest", "types",
)  # fmt: skip


def parser(prog: str = "python -m host", commands: Sequence[str] = COMMANDS) -> CommandParser:
    """Return the parser of the command line; what other commands need is not loaded."""
    result = CommandParser(prog=prog, description=(__doc__ or "").partition(": ")[2])
    parsers = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in commands:
        import_module(f"host.cli.{name.replace('-', '_')}").add_parser(parsers)
    return result


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m host") -> int:
    """Run a command; return its exit code: 2 for wrong usage, 1 for failure, 130 if interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    asked = [name for name in COMMANDS if given[:1] == [name]]
    options = parser(prog, asked or COMMANDS).parse_args(given)
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
