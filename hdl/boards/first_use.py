# SPDX-License-Identifier: Apache-2.0
"""Compile the WebAssembly programs of the flows, which each one otherwise does at its first use.

A YoWASP program is compiled to machine code when it runs for the first time, which takes a minute
of a processor for Yosys, and the code is kept in the user's cache folder. Processes that start
while it is not there yet all compile it. ``make setup-fpga`` runs :func:`main` once, so that
neither the first synthesis nor tests that run side by side pay for it.
"""

from pathlib import Path
import sys
import tempfile

from hdl.fpga.tools import ToolError, find_tool, run_tool

from .flows import FLOWS

__all__ = ["PROGRAMS", "compile_programs", "main"]

#: Small programs that do not tell their versions, and so are compiled when they are needed.
_SILENT = ("yowasp-gmpack", "yowasp-icepack")
#: The programs of all flows that are WebAssembly and tell their version, in the order of their use.
PROGRAMS = tuple(
    dict.fromkeys(
        step.tool
        for flow in FLOWS.values()
        for step in flow.steps
        if step.tool.startswith("yowasp-") and step.tool not in _SILENT
    )
)
#: Seconds that one program may take to be compiled.
DEADLINE = 1800


def compile_programs(names=PROGRAMS, *, report=print):
    """Run programs once, one after the other, for nothing but their versions.

    Parameters
    ----------
    names : iterable of str
        Programs, as :func:`hdl.fpga.tools.find_tool` knows them.
    report : callable
        Receives a line of text before each program, and its duration after it.

    Raises
    ------
    ToolError
        If a program is missing, fails, or takes too long.
    """
    for name in names:
        path = find_tool(name)
        report(f"{name}: its first run compiles it, which takes up to some minutes")
        with tempfile.TemporaryDirectory() as folder:
            seconds = run_tool(
                [path, "--version"],
                folder=Path(folder), log=f"{name}.log", step=name, deadline=DEADLINE,
            )  # fmt: skip
        report(f"{name}: ready ({seconds:.0f} s)")


def main():
    """Compile all programs; return an exit code."""
    try:
        compile_programs(report=lambda text: print(text, flush=True))
    except ToolError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
