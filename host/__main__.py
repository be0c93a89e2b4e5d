# SPDX-License-Identifier: Apache-2.0
"""`python -m host`: look after the host side: tools, devices, joins of files."""

import argparse
from collections.abc import Sequence
import sys

import pyarrow as pa

from host import devices_command, doctor, join_command, types_command
from host.errors import JoinError

__all__ = ["main", "parser"]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(prog="python -m host", description=__doc__)
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor.add_parser(commands)
    join_command.add_parser(commands)
    devices_command.add_parser(commands)
    types_command.add_parser(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 2 for wrong usage, 1 for a failure."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except JoinError as error:
        print(f"python -m host {options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"python -m host {options.command}: interrupted", file=sys.stderr)
        return 130
    except (OSError, MemoryError, pa.ArrowException) as error:
        reason = str(error).strip() or type(error).__name__
        print(f"python -m host {options.command}: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
