# SPDX-License-Identifier: Apache-2.0
"""The LiteX module of a package, in the example SoC."""

import json
import os
import subprocess
import sys

import pytest

from hdl.packaging.files import write_package
from hdl.packaging.headers import PackageNames
from hdl.shells.axi import AxiOptions
from hdl.verilog.lint import lint
from tests.hdl.packaging.packaged import TINY

NAMES = PackageNames("my_join_")
TWO = TINY.with_(result_streams=2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "axi"),
    [
        pytest.param(TINY, AxiOptions(), id="one port"),
        pytest.param(TWO, AxiOptions(), id="two ports"),
        pytest.param(TINY, AxiOptions(inputs=2), id="two inputs"),
        pytest.param(TINY, AxiOptions(bus_clock="separate", names="vitis"), id="two clocks"),
    ],
)
def test_the_example_elaborates_and_its_verilog_fits_the_package(parameters, axi, tmp_path):
    folder = tmp_path / "package"
    write_package(parameters, folder, NAMES, shell="axi", bench=False, axi=axi)
    done = subprocess.run(
        [sys.executable, "my_join_litex_soc.py", tmp_path / "soc"],
        cwd=folder, env={**os.environ, "PYTHONWARNINGS": "ignore"},  # LiteX's own
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    regions = json.loads((tmp_path / "soc" / "my_join_soc.json").read_text())
    assert regions["accelerator_registers"] == "0x20000000"
    verilog = tmp_path / "soc" / "my_join_soc.v"
    text = verilog.read_text()
    assert text.count("my_join_axi my_join_axi(") == 1
    # Verilator elaborates both together. What it says of LiteX's style is not of interest here, but
    # a pin that does not exist, or has another width, is.
    found = lint(verilog, folder / "my_join.v", top="my_join_soc").splitlines()
    assert not [line for line in found if "%Error" in line or "-PIN" in line]
    streams = ["m_axis_r", "m_axis_s"] if parameters is TWO else ["m_axis"]
    streams += ["s_axis_r", "s_axis_s"] if axi.inputs == 2 else ["s_axis"]
    assert all(f".{stream}_tdata" in text for stream in streams)
    assert f".{axi.pins.registers}_awaddr" in text
