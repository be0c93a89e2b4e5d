# SPDX-License-Identifier: Apache-2.0
"""A package as its user gets it."""

import json
import re
from xml.etree import ElementTree

import pytest

from hdl.__main__ import main
from hdl.bundle import describe_bundle
from hdl.packaging.files import package_files, write_package
from hdl.packaging.headers import PackageNames
from hdl.shells.axi import AxiOptions
from hdl.verilog.lint import lint
from tests.hdl.packaging.packaged import TINY, run_bench

NAMES = PackageNames("trades_")
COMMAND = "package --cores 1 --sub-window 4 --key x:8 --timestamp-bits 5 --output"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Folder of a package with the AXI shell."""
    folder = tmp_path_factory.mktemp("package")
    write_package(TINY, folder, NAMES, shell="axi")
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Folder of a package without a shell."""
    folder = tmp_path_factory.mktemp("bare")
    write_package(TINY, folder)
    return folder


def modules(text):
    return re.findall(r"^module (\w+)", text, re.MULTILINE)


@pytest.mark.long
def test_every_module_has_the_prefix(package):
    names = modules((package / "trades.v").read_text())
    assert len(set(names)) == len(names) > 20
    assert all(name.startswith("trades_") for name in names)
    assert "trades_axi" in names
    assert "trades_region" in names


@pytest.mark.long
def test_the_bare_accelerator_is_the_one_module_without_anything_behind_the_prefix(bare):
    names = modules((bare / "splitjoin.v").read_text())
    assert "splitjoin" in names
    assert all(name.startswith("splitjoin_") for name in names if name != "splitjoin")


@pytest.mark.long
def test_an_accelerator_without_a_shell_has_no_module_for_litex_and_no_ip_xact(package, bare):
    for part in ("litex", ".xml"):
        assert [path for path in package.iterdir() if part in path.name]
        assert not [path for path in bare.iterdir() if part in path.name]


@pytest.mark.long
def test_two_packages_share_no_module(package, bare):
    first, second = (package / "trades.v").read_text(), (bare / "splitjoin.v").read_text()
    assert not set(modules(first)) & set(modules(second))


def test_a_package_is_clean(package, capsys):
    assert main(["lint", str(package)]) == 0
    assert f"{package}/trades.v: clean" in capsys.readouterr().out


@pytest.mark.long
def test_a_package_without_a_shell_is_clean(bare, capsys):
    assert main(["lint", str(bare)]) == 0
    assert f"{bare}/splitjoin.v: clean" in capsys.readouterr().out


def test_lint_finds_what_is_wrong_with_a_package(package, tmp_path, capsys):
    text = (package / "trades.v").read_text()
    (tmp_path / "trades.v").write_text(text.replace("module trades_region(", "module gone("))
    (tmp_path / "trades.json").write_text((package / "trades.json").read_text())
    assert main(["lint", str(tmp_path)]) == 1
    assert "trades_region" in capsys.readouterr().out


def test_the_header_says_what_the_file_is(package):
    manifest, _ = describe_bundle(TINY)
    comment, _, code = (package / "trades.v").read_text().partition("\nmodule ")
    assert code
    lines = comment.splitlines()
    assert lines[0] == "// SPDX-License-Identifier: Apache-2.0"
    assert f"// Hash of the manifest: {manifest['hash']}" in lines
    assert f"// Written by the SplitJoin kit {manifest['kit']}, not to be edited." in lines
    assert "//   sub_window = 4" in lines
    assert "//   in    24  s_axis_tdata" in lines
    assert "//       9:2  key.x: signed, of a tuple: field x of its key" in lines
    assert "//    1 OP_FLUSH" in lines


def test_the_manifest_of_a_package_lists_its_ports_and_registers(package):
    manifest, _ = describe_bundle(TINY)
    about = json.loads((package / "trades.json").read_text())
    assert about["hash"] == manifest["hash"]
    assert about["input_word"] == manifest["input_word"]
    part = about["package"]
    assert (part["top"], part["prefix"], part["shell"]) == ("trades_axi", "trades_", "axi")
    assert set(part["checksums"]) == {path.name for path in package.iterdir()} - {"trades.json"}
    verilog = (package / "trades.v").read_text()
    declared = re.search(r"^module trades_axi\((.*?)\);", verilog, re.MULTILINE | re.DOTALL)[1]
    names = [name.strip() for name in declared.split(",")]
    assert sorted(names) == sorted(port["name"] for port in part["ports"])
    assert any(register["name"] == "ERRORS" for register in part["registers"])


def test_ip_xact_has_the_ports_of_the_verilog_and_files_of_the_package(package):
    root = ElementTree.parse(package / "trades.xml")
    vlnv = [root.findtext(f"{{*}}{part}") for part in ("vendor", "library", "name")]
    assert vlnv == ["splitjoin-kit", "accelerator", "trades"]
    assert root.findtext(".//{*}moduleName") == "trades_axi"
    verilog = (package / "trades.v").read_text()
    body = re.search(r"^module trades_axi\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)[0]
    declared = re.findall(r"^  (in|out)put (?:\[(\d+):0\] )?(\w+);", body, re.MULTILINE)
    described = [
        (port.findtext("*/{*}direction"), port.findtext(".//{*}left", ""), port.findtext("{*}name"))
        for port in root.iterfind(".//{*}port")
    ]
    assert sorted(described) == sorted(declared)
    files = {file.findtext("{*}name") for file in root.iterfind(".//{*}file")}
    assert files <= {path.name for path in package.iterdir()}
    assert {"trades.v", "trades.xdc", "trades.sdc", "trades_registers.h"} <= files


def test_the_page_lists_every_port_and_field(package):
    about = json.loads((package / "trades.json").read_text())
    page = (package / "trades.md").read_text()
    for port in about["package"]["ports"]:
        assert f"| `{port['name']}` | {port['direction']} | {port['bits']} | " in page
    for word in ("input_word", "result_word"):
        for name, field in about[word]["fields"].items():
            assert (f"| `{name}` |" in page) == (field["bits"] > 0)


def test_the_bench_passes(package, kept):
    assert "PASS: " in run_bench(package, "trades", kept)


def test_a_custom_predicate_has_no_bench():
    custom = TINY.with_(comparator="custom", predicate="tests.hdl.packaging.packaged:TINY")
    with pytest.raises(ValueError, match="not for 'custom'.*write the package with --no-bench"):
        package_files(custom)


@pytest.mark.long
def test_windows_in_external_memory_have_ports_on_the_page_and_no_bench():
    parameters = TINY.with_(store="external", memory_width=64, memory_burst=4)
    with pytest.raises(ValueError, match="no memories behind the ports m_axi_.*--no-bench"):
        package_files(parameters)
    texts = package_files(parameters, bench=False)
    (page,) = (text for name, text in texts.items() if name == "splitjoin.md")
    assert "| `m_axi_1_rdata` | in | 64 | AXI4, for the windows of region 1 |" in page


@pytest.mark.long
def test_the_command_writes_a_package_under_any_prefix(tmp_path, capsys):
    folder = tmp_path / "deep" / "package"
    assert main([*COMMAND.split(), str(folder), "--module-prefix", "my_2_", "--no-bench"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{folder}: top module my_2"
    assert sorted(line.strip() for line in said[1:]) == sorted(p.name for p in folder.iterdir())
    assert not (folder / "my_2_tb.sv").exists()
    assert "bench" not in (folder / "my_2.core").read_text()


TWO_INPUTS = "--shell axi --axi-inputs 2 --bus-clock separate --names vitis --no-bench"


@pytest.mark.long
def test_the_command_writes_a_package_of_a_shell_that_looks_otherwise(tmp_path):
    assert main([*COMMAND.split(), str(tmp_path), *TWO_INPUTS.split()]) == 0
    about = json.loads((tmp_path / "splitjoin.json").read_text())["package"]
    options = AxiOptions(inputs=2, bus_clock="separate", names="vitis")
    assert about["options"] == options.to_dict()
    assert {"s_axis_r", "s_axis_s", "m_axis"} == set(about["streams"])
    assert "STALLS_R" in {register["name"] for register in about["registers"]}
    page = (tmp_path / "splitjoin.md").read_text()
    assert "| `ap_clk` | in | 1 | clock of all signals but those of the registers |" in page
    assert "| `ap_rst_n_2` | in | 1 | reset, active low, synchronous to `ap_clk_2` |" in page
    assert "| `s_axi_control_awaddr` | in | 12 | AXI4-Lite, for the registers |" in page
    assert "| `s_axis_s_tlast` | in | 1 | ignored |" in page
    assert "| 15 | `OP_SOURCE` |" in page
    assert "| 1 | `SOURCE_LEAVE` |" in page
    about_words = json.loads((tmp_path / "splitjoin.json").read_text())
    assert about_words["source_orders"] == {"WATERMARK": 0, "LEAVE": 1, "EXCLUDE": 2}
    script = (tmp_path / "splitjoin_vivado.tcl").read_text()
    assert "foreach bus {s_axis_r s_axis_s m_axis}" in script
    assert "-busif s_axi_control -clock ap_clk_2 $core" in script
    bounds = (tmp_path / "splitjoin.xdc").read_text()
    assert "ASYNC_REG TRUE [get_cells -quiet {crossing/asking_2/stage0_reg " in bounds
    assert bounds.count("set_max_delay -datapath_only -from [get_cells -quiet {crossing/re") == 2
    for clock in ("ap_clk", "ap_clk_2"):
        assert f"[get_property -min PERIOD [get_clocks -of_objects [get_ports {clock}]]]" in bounds
    assert lint(tmp_path / "splitjoin.v", top="splitjoin_axi") == ""


AGGREGATE = "package --preset tiny-aggregate --output"


@pytest.mark.long
def test_an_aggregate_has_a_package_without_a_bench(tmp_path, capsys):
    command = [*AGGREGATE.split(), str(tmp_path / "sums"), "--module-prefix", "sums_"]
    shell = ["--shell", "axi", "--axi-inputs", "2"]
    assert main([*command, *shell]) == 2
    assert "operator 'sum_by_key' is an aggregate: write the package with --no-bench" in (
        capsys.readouterr().err
    )
    assert main([*command, *shell, "--no-bench"]) == 0
    folder = tmp_path / "sums"
    verilog = (folder / "sums.v").read_text()
    assert "// SplitJoin aggregate accelerator, top module sums_axi." in verilog
    assert lint(folder / "sums.v", top="sums_axi") == ""
    # The SystemVerilog package compiles; nothing uses it here.
    found = lint(folder / "sums.v", folder / "sums_pkg.sv", top="sums_axi")
    assert set(re.findall(r"%([\w-]+)", found)) == {"Warning-UNUSEDPARAM"}
    page = (folder / "sums.md").read_text()
    assert "| `operator` |" not in page
    assert "| operator | sum_by_key |" in page
    assert "| 7 | `OP_EXCLUDE` |" in page
    assert "| `window.total` | 54:23 |  | of a value: its reduction total |" in page
    assert "SUMS_ERRORS_CAPACITY_MASK" in (folder / "sums_registers.h").read_text()
    script = (folder / "sums_vivado.tcl").read_text()
    assert "foreach bus {s_axis_in0 s_axis_in1 m_axis}" in script
    assert "SplitJoin aggregate accelerator, hash" in (folder / "sums.core").read_text()
    assert "self.sink_in1 = stream.Endpoint" in (folder / "sums_litex.py").read_text()


@pytest.mark.long
def test_a_join_aggregate_has_a_package_without_a_bench(tmp_path):
    command = f"package --preset tiny-join-aggregate --shell axi --output {tmp_path}"
    assert main([*command.split(), "--axi-inputs", "2", "--no-bench"]) == 0
    found = lint(tmp_path / "splitjoin.v", tmp_path / "splitjoin_pkg.sv", top="splitjoin_axi")
    assert set(re.findall(r"%([\w-]+)", found)) == {"Warning-UNUSEDPARAM"}
    page = (tmp_path / "splitjoin.md").read_text()
    assert "of a value: the sum of their values |" in page
    assert "| 0 | `RESULT_KIND_VALUE` |" in page
    package = (tmp_path / "splitjoin_pkg.sv").read_text()
    assert "input logic signed [7:0] value" in package
    assert "SPLITJOIN_ENGINE_VALUES_MASK" in (tmp_path / "splitjoin_registers.h").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--axi-inputs 2", "Options of the AXI shell need --shell axi"),
        ("--axi-inputs 2 --shell axi --timestamp-bits 0", "timestamp"),
    ],
)
def test_options_of_a_shell_that_does_not_fit_are_refused(options, said, tmp_path, capsys):
    assert main([*COMMAND.split(), str(tmp_path / "x"), *options.split()]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("prefix", ["Trades_", "trades", "_", "a__b_", "9_", "module_", "a-b_"])
def test_a_prefix_that_makes_no_names_is_refused(prefix, tmp_path, capsys):
    assert main([*COMMAND.split(), str(tmp_path / "x"), "--module-prefix", prefix]) == 2
    assert repr(prefix) in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
