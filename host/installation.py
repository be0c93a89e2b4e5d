# SPDX-License-Identifier: Apache-2.0
"""Where the kit runs, how its commands are called, and what default devices are made from."""

from argparse import ArgumentParser, HelpFormatter
import os
from pathlib import Path
from typing import Any

__all__ = [
    "PRESETS",
    "CommandParser",
    "command",
    "find_checkout",
    "how_to_get",
    "processors",
]

# Whether the kit runs from a checkout or was installed by pip, and how its commands are called.
#
# Messages that name a command or an extra of the kit ask here, so that users of an installed kit
# are not sent to a Makefile that they do not have.


def find_checkout() -> Path | None:
    """Return the root of the checkout with this file; None if the kit was installed by pip."""
    root = Path(__file__).resolve().parents[1]
    parts = ("pyproject.toml", "hdl", "sim")  # an installed kit's folder lacks the first
    return root if all((root / part).exists() for part in parts) else None


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def command(words: str) -> str:
    """Return how a command of the kit is called.

    Parameters
    ----------
    words : str
        Package, subcommand and options, such as ``"sim build --preset demo"``.
    """
    return f"{'splitjoin' if find_checkout() is None else 'python -m'} {words}"


def how_to_get(extra: str, target: str) -> str:
    """Return the command that installs an extra of the kit.

    Parameters
    ----------
    extra : str
        The extra of the installed kit.
    target : str
        The target of the checkout's Makefile.
    """
    if find_checkout() is None:
        return f"pip install 'splitjoin-kit[{extra}]'"
    return f"make {target}"


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


# The configurations that the default devices are built from.

PRESETS = {"scan": "demo", "index": "demo-index", "gated": "demo-gated"}
"""Names of presets of ``python -m sim build``: by engine, and a scan with gates and rounds."""
