# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from hdl.manifest import describe
from hdl.presets import PRESETS
from host import Manifest
from host.errors import ManifestError
from host.protocol.manifest import FORMAT, RoutedClock

VERILOG = "module splitjoin; endmodule // née\n"


@pytest.fixture
def bundle(tmp_path):
    """A bundle whose Verilog is a stub; opening it costs no generation."""
    values = describe(PRESETS["demo"], VERILOG, verilog_file="splitjoin.v")
    (tmp_path / "splitjoin.v").write_text(VERILOG, encoding="utf-8")
    (tmp_path / "manifest.json").write_text(json.dumps(values), encoding="utf-8")
    return tmp_path


def change(bundle, **values):
    """Change a manifest by hand."""
    file = bundle / "manifest.json"
    text = json.dumps(json.loads(file.read_text(encoding="utf-8")) | values)
    file.write_text(text, encoding="utf-8")


def test_it_says_what_the_parameters_say(bundle):
    demo = PRESETS["demo"]
    for path in (bundle, str(bundle), bundle / "manifest.json"):
        manifest = Manifest.load(path)
        assert manifest.path == bundle
    assert manifest.capacity == demo.capacity
    assert (manifest.probes, manifest.probe_bits) == (demo.engine.probes, demo.engine.probe_bits)
    assert manifest.timestamp_bits == demo.timestamp_bits
    assert (manifest.comparator, manifest.predicate) == ("band", None)
    storage = manifest.storage
    assert (storage.cores, storage.lanes) == (demo.cores, demo.engine.lanes)
    assert (storage.ring_rows, storage.slack) == (demo.ring_rows, demo.slack)
    assert [(key.name, key.low, key.high) for key in manifest.keys] == [
        ("x", -(1 << 31), (1 << 31) - 1),
        ("y", -(1 << 31), (1 << 31) - 1),
    ]
    assert manifest.counters[0].name == "cycles"


def test_an_unsigned_key_starts_at_zero():
    values = describe(PRESETS["tiny"], "", verilog_file="")
    values["parameters"]["keys"][0]["signed"] = False
    (key,) = Manifest.from_dict(values).keys
    assert (key.low, key.high) == (0, 255)


def test_no_bundle_says_how_to_make_one(tmp_path):
    with pytest.raises(ManifestError, match="python -m sim build"):
        Manifest.load(tmp_path / "nothing")
    with pytest.raises(ManifestError, match="python -m sim build"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("format_", [4, 5, 7])
def test_a_manifest_of_a_flat_record_is_refused_with_the_remedy(format_):
    values = describe(PRESETS["tiny"], "", verilog_file="") | {"format": format_}
    with pytest.raises(ManifestError, match=rf"of format {format_}, this kit reads 8.*generate"):
        Manifest.from_dict(values)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"format": 99}', b"\xff\xfe\x00"])
def test_a_foreign_file_is_refused(tmp_path, text):
    (tmp_path / "manifest.json").write_bytes(text)
    with pytest.raises(ManifestError, match="manifest"):
        Manifest.load(tmp_path)


def test_result_ports_are_in_the_manifest():
    one = describe(PRESETS["tiny"], "", verilog_file="")
    assert Manifest.from_dict(one).result_ports == ("o",)
    two = describe(PRESETS["tiny"].with_(result_streams=2), "", verilog_file="")
    assert one["format"] == two["format"] == FORMAT
    assert two["parameters"]["engine"]["result_streams"] == 2
    assert Manifest.from_dict(two).result_ports == ("o_r", "o_s")
    del two["result_ports"]
    with pytest.raises(ManifestError, match="result_ports.*generate it again"):
        Manifest.from_dict(two)


@pytest.mark.parametrize("part", ["storage", "input_word", "counters"])
def test_an_incomplete_manifest_is_refused(bundle, part):
    change(bundle, **{part: {"fields": {}} if part != "counters" else [{}]})
    with pytest.raises(ManifestError, match="generate it again"):
        Manifest.load(bundle)


def test_a_changed_manifest_is_stale(bundle):
    change(bundle, files={"verilog": "splitjoin.v", "other": "x"})
    with pytest.raises(ManifestError, match="generate it again"):
        Manifest.load(bundle)
    assert Manifest.load(bundle, verify=False).files["other"] == "x"


def test_changed_verilog_is_stale(bundle):
    (bundle / "splitjoin.v").write_text(VERILOG + " ", encoding="utf-8")
    with pytest.raises(ManifestError, match="do not match the hash"):
        Manifest.load(bundle)


def test_missing_verilog_is_named(bundle):
    (bundle / "splitjoin.v").unlink()
    with pytest.raises(ManifestError, match=r"splitjoin\.v"):
        Manifest.load(bundle)


def test_tools_may_differ(bundle):
    change(bundle, tools={"yosys": "another"})
    assert Manifest.load(bundle).tools == {"yosys": "another"}


def test_a_clock_may_come_later(bundle):
    assert Manifest.load(bundle).clock is None
    clock = RoutedClock("ecp5-default", True, 8_100, "lfe5u-85f", 8, 142.0, "docs/routing/x.json")
    change(bundle, clock=vars(clock))
    assert Manifest.load(bundle).clock == clock
    change(bundle, clock={"mhz": 142.0})
    with pytest.raises(ManifestError, match="generate it again"):
        Manifest.load(bundle)
