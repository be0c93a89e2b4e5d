# SPDX-License-Identifier: Apache-2.0
"""How the kit is installed: its version, and how its commands are called."""

from argparse import ArgumentParser, HelpFormatter
import importlib.metadata
from pathlib import Path
import tomllib
from typing import Any

__all__ = [
    "CommandParser",
    "fpga_tools",
    "kit_version",
    "project_file",
    "sibling_command",
]


def project_file() -> Path | None:
    """Return the ``pyproject.toml`` of the checkout with this file; None in an installed kit."""
    file = Path(__file__).parents[1] / "pyproject.toml"
    return file if file.is_file() else None


def fpga_tools() -> str:
    """Return the command that installs the tools for real devices."""
    return "pip install 'splitjoin-kit[fpga]'" if project_file() is None else "make setup-fpga"


def kit_version() -> str:
    """Return the version of the kit.

    In a checkout, ``pyproject.toml`` is the only place that states it.
    """
    project = project_file()
    if project is not None:
        described = tomllib.loads(project.read_text(encoding="utf-8"))
        return str(described["project"]["version"])
    return importlib.metadata.version("splitjoin-kit")


def sibling_command(parser: ArgumentParser, words: str) -> str:
    """Return how another command of the kit is called, by the way in which this one was called.

    Parameters
    ----------
    parser : ArgumentParser
        Of a subcommand of a package, such as ``python -m hdl route`` or ``splitjoin hdl route``.
    words : str
        Package and subcommand of the other command, such as ``"sim saturate"``.
    """
    caller = parser.prog.split()[:-2]  # without the package and the subcommand of this one
    return " ".join([*caller, words])


class _Help(HelpFormatter):
    """Help in which an example keeps its lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example:") else super()._fill_text(text, width, indent)


class CommandParser(ArgumentParser):
    """Parser of a command, whose help ends with an example that can be pasted into a shell.

    Parameters
    ----------
    example : str, optional
        Options and values of the example; a new line continues the command. Parsers of subcommands
        have no example.
    **options
        As of :class:`argparse.ArgumentParser`.
    """

    def __init__(self, *, example: str | None = None, **options: Any) -> None:
        lines = [] if example is None else f"%(prog)s {example}".rstrip().split("\n")
        epilog = "\n".join(["example:", "  " + " \\\n      ".join(lines)]) if lines else None
        super().__init__(epilog=epilog, formatter_class=_Help, **options)
