# SPDX-License-Identifier: Apache-2.0
"""A kernel of Vitis as its user gets it, as far as open tools can try it."""

import json
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

from hdl.__main__ import main
from hdl.fpga.tools import YOSYS, find_tool, run_tool
from hdl.presets import PRESETS
from hdl.shells.files import ports_of
from hdl.shells.vitis_kernel import VitisKernel
from hdl.verilog.lint import lint
from host import open_device
from host.devices import is_shared
from host.devices.kernel import KernelDevice
from host.errors import DeviceError, UsageError
from tests.hdl.packaging.packaged import TINY
from tests.hdl.shells.simulated_kernel import Xrt
from tests.host.device_contract import ask, empty, punctuation
from tests.host.small_bundles import (
    FLUSH,
    configuration,
    expected,
    pack,
    random_tuples,
)

#: Ports of a kernel, by their names in `kernel.xml`, and what an AXI interface must have.
AXI4 = {"araddr", "arlen", "arvalid", "arready", "rdata", "rlast", "rvalid", "rready", "awaddr",
        "awlen", "awvalid", "awready", "wdata", "wstrb", "wlast", "wvalid", "wready", "bresp",
        "bvalid", "bready"}  # fmt: skip


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Folder that the command has written."""
    folder = tmp_path_factory.mktemp("kernel") / "kernel"
    options = "--cores 1 --sub-window 4 --key x:8 --timestamp-bits 5"
    assert main(["kernel", *options.split(), "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def xrt(kernel):
    digest = json.loads((kernel / "bundle" / "manifest.json").read_text())["hash"]
    return lambda **options: Xrt(TINY, digest, **options)


def opened(xrt, kernel):
    return KernelDevice("xrt:k.xclbin?bundle=b", kernel / "bundle", "k.xclbin", xrt)


def test_the_description_names_ports_and_registers_that_are_there(kernel):
    """Structure as of UG1393: no schema of it is published."""
    root = ElementTree.parse(kernel / "splitjoin_kernel.xml").getroot()
    assert (root.tag, root.get("versionMajor")) == ("root", "1")
    (about,) = root
    assert (about.get("name"), about.get("language")) == ("splitjoin_kernel", "ip_c")
    assert about.get("hwControlProtocol") == "ap_ctrl_hs"
    verilog = (kernel / "splitjoin_kernel.v").read_text()
    declared = re.search(r"^module splitjoin_kernel\((.*?)\);", verilog, re.M | re.S)[1]
    names = {name.strip() for name in declared.split(",")}
    widths = {each["name"]: each["bits"] for each in ports_of(VitisKernel(TINY, digest="0" * 64))}
    assert names == set(widths)
    ports = {port.get("name"): port.attrib for port in about.find("ports")}
    assert {name for name, port in ports.items() if port["mode"] == "slave"} == {"s_axi_control"}
    for name, port in ports.items():
        data = "wdata" if port["mode"] == "slave" else "rdata"
        assert widths[f"{name}_{data}"] == int(port["dataWidth"])
        if port["mode"] == "master":
            assert {f"{name}_{signal}" for signal in AXI4} <= names
            assert widths[f"{name}_araddr"] == 64
    args = [arg.attrib for arg in about.find("args")]
    assert [int(arg["id"]) for arg in args] == list(range(len(args)))
    taken = set(range(0, 0x10, 4))  # of ap_ctrl_hs
    for arg in args:
        offset, size = int(arg["offset"], 16), int(arg["size"], 16)
        assert arg["port"] in ports
        assert arg["addressQualifier"] == str(int(arg["port"] != "s_axi_control"))
        assert arg["hostSize"] == arg["size"]
        own = set(range(offset, offset + size, 4))
        assert not own & taken
        taken |= own
    assert max(taken) < int(ports["s_axi_control"]["range"], 16)


def test_the_script_packages_these_files(kernel):
    script = (kernel / "splitjoin_kernel_xo.tcl").read_text()
    for name in re.findall(r"\$here (splitjoin_kernel\.(?:v|xml))\]", script):
        assert (kernel / name).is_file()
    assert "foreach bus {s_axi_control m_axi_words m_axi_results}" in script
    assert script.count("{") == script.count("}")
    assert script.count("[") == script.count("]")


def test_the_verilog_is_clean(kernel):
    assert lint(kernel / "splitjoin_kernel.v", top="splitjoin_kernel") == ""


@pytest.mark.long
def test_yosys_synthesizes_it_for_an_ultrascale(kernel, tmp_path):
    """All of `synth_xilinx`; no cell may be left that the family does not have."""
    shutil.copy(kernel / "splitjoin_kernel.v", tmp_path)
    script = (
        "read_verilog splitjoin_kernel.v; synth_xilinx -family xcup -top splitjoin_kernel; "
        "check -assert -mapped; tee -o cells.json stat -json"
    )
    run_tool(
        [find_tool(YOSYS), "-q", "-p", script],
        folder=tmp_path, log="yosys.log", step="synth_xilinx", deadline=900,
    )  # fmt: skip
    cells = json.loads((tmp_path / "cells.json").read_text())["design"]["num_cells_by_type"]
    assert cells["FDRE"] > 1000


def test_a_run_answers_as_the_reference_join_does(xrt, kernel):
    """Random pauses on all channels of both memories; words and results in several runs."""
    rng = np.random.default_rng(3)
    script = [*configuration(TINY), *random_tuples(TINY, rng, 40, pace=1), FLUSH]
    with opened(xrt(stalls=0.3), kernel) as device:
        assert ask(device, script, room=40, cycles=400) == expected(TINY, script)
        counters = device.counters()
        assert counters["tuples_r"] + counters["tuples_s"] == 40
        assert counters["marks"] == len(punctuation(expected(TINY, script))) - counters["stars"]


@pytest.mark.long
@pytest.mark.parametrize("portions", [{"offer": 1}, {"room": 1}, {"offer": 3, "room": 2}])
def test_neither_portions_nor_room_change_the_results(xrt, kernel, portions):
    rng = np.random.default_rng(4)
    script = [*configuration(TINY), *random_tuples(TINY, rng, 12, pace=0), FLUSH]
    with opened(xrt(stalls=0.2), kernel) as device:
        assert ask(device, script, cycles=150, **portions) == expected(TINY, script)


@pytest.mark.long
def test_opening_resets_what_an_earlier_host_has_left(xrt, kernel):
    rng = np.random.default_rng(5)
    card = xrt()
    script = [*configuration(TINY), *random_tuples(TINY, rng, 12), FLUSH]
    with opened(card, kernel) as device:
        device.exchange(
            pack(device.manifest, script), empty(device.manifest.result_word, 2), cycles=60
        )
    with opened(card, kernel) as device:
        assert ask(device, script, room=99, cycles=600) == expected(TINY, script)


def test_an_error_of_the_memory_is_told(xrt, kernel):
    card = xrt(fails=lambda address: address == 0x4_0000_0000)
    with opened(card, kernel) as device, pytest.raises(DeviceError, match="memory of device"):
        ask(device, [*configuration(TINY), FLUSH], cycles=200)


@pytest.mark.long
def test_another_kernel_than_the_bundles_is_refused(kernel):
    with pytest.raises(DeviceError, match=r"has the manifest hash (ab){32}, but the bundle has"):
        opened(Xrt(TINY, "ab" * 32), kernel)


def test_a_uri_without_xrt_says_what_is_missing(kernel):
    with pytest.raises(UsageError, match="needs the package pyxrt"):
        open_device(f"xrt:k.xclbin?bundle={kernel / 'bundle'}")
    with pytest.raises(UsageError, match="lacks its xclbin"):
        open_device("xrt:?bundle=b")
    assert is_shared("xrt:k.xclbin?bundle=b")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (TINY.with_(result_streams=2), "has one port for results, not 2; set result_streams=1"),
        (PRESETS["tiny"].with_(store="external", engine="scan"), "no ports for the external"),
    ],
)
def test_what_no_kernel_can_have_is_refused(parameters, reason):
    with pytest.raises(ValueError, match=reason):
        VitisKernel(parameters, digest="0" * 64)


def test_an_aggregate_has_a_kernel_too(tmp_path):
    assert main(["kernel", "--preset", "tiny-aggregate", "--output", str(tmp_path)]) == 0
    assert not lint(tmp_path / "splitjoin_kernel.v", top="splitjoin_kernel")
