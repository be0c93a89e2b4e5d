# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

import pytest

from hdl.accelerator import Accelerator
from hdl.parameters import PRESETS
from hdl.verilog.conversion import to_verilog
from hdl.verilog.lint import WAIVERS, lint

PORTS = {
    "clk", "rst", "i_payload", "i_valid", "i_ready", "o_payload", "o_valid", "o_ready",
    "counter_addr", "counter_data",
}  # fmt: skip


def headers(verilog):
    """Return the ports of every module, by name."""
    found = re.findall(r"^module (\S+?)\s?\((.*?)\);", verilog, re.MULTILINE)
    return {name: ports.split(", ") for name, ports in found}


@pytest.fixture(scope="module")
def tiny():
    return to_verilog(Accelerator(PRESETS["tiny"]))


def test_the_top_has_the_ports_of_the_contract(tiny):
    ports = headers(tiny)["splitjoin"]
    assert set(ports) == PORTS
    assert ports[:2] == ["clk", "rst"]


def test_names_are_plain_identifiers_of_the_component_classes(tiny):
    names = headers(tiny)
    assert {"region", "merger", "join_core", "ingress"} <= set(names)
    assert "\\" not in tiny
    assert "$" not in re.sub(r"\$(un)?signed", "", tiny)


def test_the_text_depends_on_the_parameters_only(tiny):
    """The same bytes, whatever else a process did and however it hashes."""
    script = (
        "from hdl.accelerator import Accelerator; from hdl.parameters import PRESETS;"
        "from hdl.verilog.conversion import to_verilog; import sys;"
        "sys.stdout.write(to_verilog(Accelerator(PRESETS['tiny'])))"
    )
    for seed in ("0", "1"):
        output = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert output == tiny


def test_more_cores_need_no_more_modules():
    """All cores share one body, and so do the nodes of a tree."""
    few, many = (
        headers(to_verilog(Accelerator(PRESETS["tiny"].with_(cores=cores)))) for cores in (4, 16)
    )
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


def test_lint_finds_what_is_wrong(tmp_path):
    path = tmp_path / "wrong.v"
    path.write_text("module wrong(input a, output b);\nassign b = unknown;\nendmodule\n")
    assert "unknown" in lint(path, top="wrong")


def test_every_waiver_has_a_reason():
    lines = WAIVERS.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("lint_off"):
            assert lines[number - 1].startswith("// "), line
