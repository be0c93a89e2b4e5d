# SPDX-License-Identifier: Apache-2.0
"""``splitjoin``: the four packages of the kit, as one command of an installed kit.

``splitjoin host ...`` is ``python -m host ...`` of the Python that the kit is installed for, and so
on. A package is loaded when it is asked for, because each needs other packages of PyPI.
"""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
import sys
from typing import NamedTuple, cast

from hdl.installation import kit_version

__all__ = ["COMMANDS", "Command", "main", "parser"]

#: Exit code after an interrupt from the keyboard, as in shells.
INTERRUPTED = 130


class Command(NamedTuple):
    """A package of the kit as a subcommand.

    Parameters
    ----------
    package : str
        Name of the package.
    extra : str
        Extra of the kit that brings what the package needs.
    purpose : str
        What the package's command does, for the list of subcommands.
    """

    package: str
    extra: str
    purpose: str


#: The subcommands, by their names.
COMMANDS = {
    "host": Command("host", "host", "join files on an accelerator, list devices, check the tools"),
    "spark": Command("spark_offload", "spark", "join files through Spark, and the demo"),
    "hdl": Command("hdl", "hdl", "generate accelerators: Verilog, packages, bitstreams, reports"),
    "sim": Command("sim", "sim", "build simulated accelerators, run benches"),
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the first word; the package parses those behind it."""
    result = argparse.ArgumentParser(
        prog="splitjoin",
        description="Stream joins on FPGA accelerators, simulated or real.",
        epilog="splitjoin PACKAGE --help lists the commands of a package.",
    )
    result.add_argument("--version", action="version", version=f"splitjoin {kit_version()}")
    packages = result.add_subparsers(dest="package", required=True, metavar="PACKAGE")
    for name, command in COMMANDS.items():
        packages.add_parser(name, help=command.purpose, add_help=False)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of a package.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words of the command line; by default, those of this process.

    Returns
    -------
    int
        The exit code. It is 1 if a package of PyPI is missing, 130 after an interrupt while the
        package is loaded, else that of the package's command.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = parser().parse_args(words[:1]).package
    command = COMMANDS[name]
    try:
        run = _load(command.package)
    except KeyboardInterrupt:
        print(f"splitjoin {name}: interrupted; nothing was written.", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {other.package for other in COMMANDS.values()}:
            raise  # a part of the kit itself: a defect, which needs its traceback
        print(
            f"splitjoin {name}: The Python package {missing} is needed for this command; "
            f"install the kit with its extra: pip install 'splitjoin-kit[{command.extra}]'.",
            file=sys.stderr,
        )
        return 1
    return run(words[1:], prog=f"splitjoin {name}")


def _load(package: str) -> Callable[..., int]:
    return cast("Callable[..., int]", import_module(f"{package}.__main__").main)


if __name__ == "__main__":
    sys.exit(main())
