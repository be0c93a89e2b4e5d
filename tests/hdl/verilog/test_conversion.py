# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import subprocess
import sys

import pytest

from hdl.accelerator import Accelerator
from hdl.bundle import generate
from hdl.presets import PRESETS
from hdl.verilog.conversion import to_verilog
from hdl.verilog.lint import WAIVERS, lint
from sim.failures.flip_trials import FLIP_SHAPES

PORTS = {
    "clk", "rst", "i_payload", "i_valid", "i_ready", "o_payload", "o_valid", "o_ready",
    "counter_addr", "counter_data",
}  # fmt: skip


def headers(verilog):
    """Return the ports of every module, by name."""
    found = re.findall(r"^module (\S+?)\s?\((.*?)\);", verilog, re.MULTILINE | re.DOTALL)
    return {name: re.split(r",\s+", ports.strip()) for name, ports in found}


@pytest.fixture(scope="module")
def texts():
    """Verilog and netlist of the preset `tiny`, as a bundle has them."""
    return generate(PRESETS["tiny"])


@pytest.fixture(scope="module")
def tiny(texts):
    """Its Verilog."""
    return texts[0]


def test_the_top_has_the_ports_of_the_contract(tiny):
    ports = headers(tiny)["splitjoin"]
    assert set(ports) == PORTS
    assert ports[:2] == ["clk", "rst"]


def test_names_are_plain_identifiers_of_the_component_classes(tiny):
    names = headers(tiny)
    assert {"region", "merger", "join_core", "ingress"} <= set(names)
    assert "\\" not in tiny
    assert "$" not in re.sub(r"\$(un)?signed", "", tiny)


def test_the_netlist_has_the_modules_and_ports_of_the_verilog(texts):
    verilog, netlist = texts
    modules = json.loads(netlist)["modules"]
    assert {name: list(module["ports"]) for name, module in modules.items()} == headers(verilog)


@pytest.mark.long
def test_the_verilog_is_the_same_without_the_netlist(tiny):
    assert to_verilog(Accelerator(PRESETS["tiny"])) == tiny


def test_contents_of_memories_that_nothing_defines_are_not_in_the_netlist(texts):
    cells = [
        cell
        for module in json.loads(texts[1])["modules"].values()
        for cell in module["cells"].values()
    ]
    memories = [cell["parameters"]["INIT"] for cell in cells if cell["type"] == "$mem_v2"]
    assert memories
    assert set(memories) == {"x"}


@pytest.mark.long
def test_the_text_depends_on_the_parameters_only(texts):
    """The same bytes, whatever else a process did and however it hashes."""
    script = (
        "from hdl.accelerator import Accelerator; from hdl.presets import PRESETS;"
        "from hdl.verilog.conversion import to_netlist; import sys;"
        "sys.stdout.write(''.join(to_netlist(Accelerator(PRESETS['tiny']))))"
    )
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    output = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": other, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output == "".join(texts)


@pytest.mark.long
def test_more_cores_need_no_more_modules(tiny):
    """All cores share one body, and so do the nodes of a tree."""
    binary = PRESETS["tiny"].with_(fan_in=2, fan_out=2, cores=4)
    few, many = headers(tiny), headers(to_verilog(Accelerator(binary)))
    extra = {re.sub(r"_\d+$", "", name) for name in set(many) - set(few)}
    # A tree has one more level, with results one digit wider.
    assert extra <= {
        "merger",
        "stream_register",
        "distribution_node",
        "activity_node",
    }
    assert len(many) <= len(few) + 5


def test_generated_verilog_is_clean(tiny, tmp_path):
    path = tmp_path / "splitjoin.v"
    path.write_text(tiny)
    assert lint(path) == ""


@pytest.mark.long
@pytest.mark.parametrize("engine", ["index", pytest.param("scan", marks=pytest.mark.long)])
def test_verilog_with_parity_is_clean(tmp_path, engine):
    parameters = FLIP_SHAPES["equality index"]  # which the tests of flipped bits generate, too
    if engine == "scan":
        parameters = PRESETS["tiny"].with_(comparator="equality")
        parameters = parameters.with_(failure_cycles=parameters.longest_silence, parity=True)
    verilog, _ = generate(parameters)
    assert "initial for (zeroed_row = 0;" in verilog
    path = tmp_path / "splitjoin.v"
    path.write_text(verilog)
    assert lint(path) == ""


def test_lint_finds_what_is_wrong(tmp_path):
    path = tmp_path / "wrong.v"
    path.write_text("module wrong(input a, output b);\nassign b = unknown;\nendmodule\n")
    assert "unknown" in lint(path, top="wrong")


def test_every_waiver_has_a_reason():
    lines = WAIVERS.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("lint_off"):
            assert lines[number - 1].startswith("// "), line
