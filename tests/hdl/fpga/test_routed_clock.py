# SPDX-License-Identifier: Apache-2.0
"""A bundle names the routing report of its preset, or of the twin that is routed in its place."""

import json

import pytest

from hdl.bundle import write_bundle
from hdl.fpga import reports as module
from hdl.fpga import reports as published
from hdl.fpga.provenance import design_hash
from hdl.fpga.reports import REPORTS, reports_root, routed_clock
from hdl.presets import PRESETS, TWINS
from host.protocol.manifest import Manifest, RoutedClock

VERILOG = "module today; endmodule\n"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a function that puts a report into a checkout; all designs are alike in it."""
    monkeypatch.setattr(published, "routed_verilog", lambda parameters, device, inputs: VERILOG)
    (tmp_path / REPORTS).mkdir(parents=True)

    def put(preset, *, device="lfe5u-85f", speed=8, mhz=142.04, verilog=VERILOG):
        path = tmp_path / REPORTS / f"{preset}-{device}-grade{speed}.json"
        path.write_text(json.dumps({
            "preset": preset, "parameters": PRESETS[preset].words(), "device": device,
            "speed": speed, "fmax_mhz": mhz, "design": design_hash(verilog), "commit": "abc1234",
        }))  # fmt: skip
        return tmp_path

    return put


@pytest.mark.parametrize(("preset", "routed"), [*TWINS.items(), ("ecp5-default", "ecp5-default")])
def test_a_preset_has_the_clock_of_its_own_report_or_of_its_twins(checkout, preset, routed):
    root = checkout(routed)
    clock = routed_clock(PRESETS[preset], root=root)
    assert RoutedClock(**clock) == RoutedClock(
        preset=routed,
        twin=preset != routed,
        capacity=PRESETS[routed].capacity,
        device="lfe5u-85f",
        speed=8,
        mhz=142.04,
        report=f"docs/routing/{routed}-lfe5u-85f-grade8.json",
        earlier_design=None,
    )
    assert (root / clock["report"]).is_file()


def test_a_report_of_an_earlier_design_says_which(checkout):
    root = checkout("ecp5-default", verilog="module yesterday; endmodule\n")
    hash12 = design_hash("module yesterday; endmodule\n")[:12]
    earlier = routed_clock(PRESETS["demo-index"], root=root)["earlier_design"]
    assert earlier == f"commit abc1234, Verilog {hash12}"


def test_of_several_reports_it_is_that_of_the_fastest_grade_of_the_largest_device(checkout):
    checkout("tiny", device="lfe5u-25f", speed=8, mhz=1)
    checkout("tiny", device="lfe5u-85f", speed=6, mhz=2)
    root = checkout("tiny", device="lfe5u-85f", speed=7, mhz=3)
    assert routed_clock(PRESETS["tiny"], root=root)["mhz"] == 3


@pytest.mark.parametrize(
    "parameters",
    [PRESETS["demo"], PRESETS["demo-index"].with_(sub_window=99), PRESETS["ecp5-index"]],
    ids=["without a twin", "of other parameters", "not routed"],
)
def test_others_have_no_clock(checkout, parameters):
    assert routed_clock(parameters, root=checkout("ecp5-default")) is None


def test_without_a_checkout_there_is_no_clock(tmp_path):
    assert routed_clock(PRESETS["demo-index"], root=tmp_path) is None


def test_a_new_route_changes_nothing_of_a_bundle_but_its_clock(tmp_path, monkeypatch):
    folder = tmp_path / "bundle"
    clock = RoutedClock("tiny", False, 16, "lfe5u-85f", 8, 100.0, "docs/routing/tiny.json")
    hashes = set()
    for new in (None, vars(clock), vars(clock) | {"mhz": 120.0, "earlier_design": "x"}, None):
        monkeypatch.setattr("hdl.bundle.routed_clock", lambda parameters, new=new: new)
        write_bundle(PRESETS["tiny"], folder)
        manifest = Manifest.load(folder)  # which holds the hash against the rest
        assert manifest.clock == (new and RoutedClock(**new))
        hashes.add(manifest.hash)
        if len(list(folder.iterdir())) == 3:
            (folder / "splitjoin.so").write_text("built from it")
        assert {path.name for path in folder.iterdir()} == {
            "manifest.json", "splitjoin.v", "splitjoin.json", "splitjoin.so",
        }  # fmt: skip
    assert len(hashes) == 1


def test_an_installed_kit_finds_the_reports_that_its_wheel_has_brought(tmp_path, monkeypatch):
    site = tmp_path / "lib" / "site-packages"
    shared = tmp_path / "share" / "splitjoin-kit"
    report = "../../share/splitjoin-kit/docs/routing/a.json"
    described = site / "splitjoin_kit-1.dist-info"
    for folder in (described, shared / REPORTS):
        folder.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: splitjoin-kit\nVersion: 1\n")
    (described / "RECORD").write_text(f"hdl/__init__.py,,\n{report},,\n")
    (site / report).resolve().touch()
    monkeypatch.setattr(module, "ROOT", site)
    monkeypatch.syspath_prepend(site)
    assert reports_root() == shared
    (described / "RECORD").write_text("hdl/__init__.py,,\n")
    assert reports_root() == site
