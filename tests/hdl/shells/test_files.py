# SPDX-License-Identifier: Apache-2.0
"""The shell's files in a bundle."""

import hashlib
import json
import re

from amaranth.lib.wiring import In
import pytest

from bench.handshake import HANDSHAKE
from hdl.__main__ import main
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from hdl.registers.table import shell_table
from hdl.shells.axi import AxiOptions
from hdl.shells.files import shell_files
from hdl.shells.names import AcceleratorInstance
from hdl.shells.registers import hash_number
from hdl.verilog.conversion import port_names
from hdl.verilog.lint import lint
from host.protocol.manifest import Manifest, load_manifest

TINY = JoinParameters.of(
    cores=1, sub_window=4, keys=(KeyField(name="x", bits=8),), timestamp_bits=5
)
SHELL = {f"splitjoin_axi.{suffix}" for suffix in ("v", "h", "rdl", "md")}
PARTS = {"manifest.json", "splitjoin.v", "splitjoin.json"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("axi") / "bundle"
    return folder, write_bundle(TINY, folder, shells=["axi"])


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_shell_changes_nothing_about_the_accelerator(bundle, tmp_path):
    folder, manifest = bundle
    plain = write_bundle(TINY, tmp_path / "plain")
    assert set(texts(folder)) == PARTS | SHELL
    assert {**manifest, "shells": None} == {**plain, "shells": None}
    for name in ("splitjoin.v", "splitjoin.json"):
        assert texts(folder)[name] == texts(tmp_path / "plain")[name]
    assert Manifest.load(folder).hash == plain["hash"]


def test_the_manifest_describes_the_shell(bundle):
    folder, manifest = bundle
    shell = manifest["shells"]["axi"]
    assert shell["registers"] == shell_table(TINY).describe()
    assert set(shell["files"].values()) == SHELL
    for part, name in shell["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == shell["checksums"][part]
    verilog = (folder / "splitjoin_axi.v").read_text()
    ports = re.search(r"^module splitjoin_axi\((.*?)\);", verilog, re.MULTILINE | re.DOTALL)[1]
    names = [name.strip() for name in ports.split(",")]
    assert sorted(names) == sorted(port["name"] for port in shell["ports"])
    for port in shell["ports"]:
        width = f"[{port['bits'] - 1}:0] " if port["bits"] > 1 else ""
        assert f"  {port['direction']}put {width}{port['name']};" in verilog
    for stream, described in shell["streams"].items():
        assert described["bytes"] == -(-manifest[described["word"]]["bits"] // 8)
        assert f"{stream}_tdata" in names


def test_the_hash_is_in_the_shell_and_in_the_header(bundle):
    folder, manifest = bundle
    assert f'_MANIFEST_HASH "{manifest["hash"]}"' in (folder / "splitjoin_axi.h").read_text()
    verilog = (folder / "splitjoin_axi.v").read_text()
    assert manifest["hash"] in verilog.splitlines()[1]
    assert hash_number(manifest["hash"]).to_bytes(32, "little").hex() == manifest["hash"]
    with pytest.raises(ValueError, match="must have 64 hexadecimal digits, not 'abcd'"):
        hash_number("abcd")


def test_modules_of_the_shell_have_names_of_their_own(bundle):
    folder, _ = bundle
    modules = re.findall(r"^module (\w+)", (folder / "splitjoin_axi.v").read_text(), re.MULTILINE)
    assert len(set(modules)) == len(modules) > 5
    assert all(name.startswith("splitjoin_axi") for name in modules)


GATED = TINY.with_(engine="index", tuples_per_word=2, result_streams=2)
SHAPES = {
    "two of all": GATED.with_(failure_cycles=GATED.longest_silence, parity=True),
    "rounds": TINY.with_(rounds=True),
    "chain": TINY.with_(architecture=HANDSHAKE),
}


def stub(parameters):
    """Return Verilog with the ports of an accelerator, and nothing in it."""
    lines = []
    for name, member, value in port_names(AcceleratorInstance(parameters)):
        width = f"[{len(value) - 1}:0] " if len(value) > 1 else ""
        lines.append(f"  {'input' if member.flow == In else 'output'} {width}{name},")
    zeros = [f"assign {line.split()[-1][:-1]} = 0;" for line in lines if "output" in line]
    return "\n".join(
        ["module splitjoin(", *lines, "  input clk, input rst", ");", *zeros, "endmodule", ""]
    )


def test_the_shell_and_its_accelerator_are_clean(bundle):
    files = [bundle[0] / name for name in ("splitjoin_axi.v", "splitjoin.v")]
    assert lint(*files, top="splitjoin_axi") == ""


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_shell_is_clean_around_any_accelerator(tmp_path, shape):
    files, ports = shell_files(SHAPES[shape], "ab" * 32, AxiOptions())
    name, text = files["verilog"]
    (tmp_path / name).write_text(text)
    (tmp_path / "splitjoin.v").write_text(stub(SHAPES[shape]))
    assert lint(tmp_path / name, tmp_path / "splitjoin.v", top="splitjoin_axi") == ""
    masters = {port["name"] for port in ports if port["name"].startswith("m_axis")}
    assert ("m_axis_tdata" in masters) == (SHAPES[shape].engine.result_streams == 1)


@pytest.mark.long
def test_a_shell_with_several_inputs_is_clean_and_stays_one(bundle, tmp_path):
    folder = tmp_path / "bundle"
    arguments = ["generate", "--cores", "1", "--sub-window", "4", "--key", "x:8"]
    arguments += ["--timestamp-bits", "5", "--output", str(folder)]
    assert main([*arguments, "--shell", "axi", "--axi-inputs", "3", "--axi-r-inputs", "1"]) == 0
    shell = json.loads((folder / "manifest.json").read_text())["shells"]["axi"]
    assert (shell["options"]["inputs"], shell["options"]["r_inputs"]) == (3, 1)
    assert shell["registers"] == shell_table(TINY, merged=("R", "S0", "S1")).describe()
    assert list(shell["streams"]) == ["s_axis_r", "s_axis_s0", "s_axis_s1", "m_axis"]
    assert lint(folder / "splitjoin_axi.v", bundle[0] / "splitjoin.v", top="splitjoin_axi") == ""
    before = texts(folder)
    assert main(arguments) == 0
    assert texts(folder) == before


@pytest.mark.long
def test_an_aggregate_has_the_same_shell_with_registers_of_its_own(tmp_path, capsys):
    folder = tmp_path / "bundle"
    arguments = ["generate", "--preset", "tiny-aggregate", "--shell", "axi"]
    assert main([*arguments, "--output", str(folder)]) == 0
    assert set(texts(folder)) == PARTS | SHELL
    manifest = json.loads((folder / "manifest.json").read_text())
    shell = manifest["shells"]["axi"]
    assert shell["registers"] == shell_table(AGGREGATE_PRESETS["tiny-aggregate"]).describe()
    for stream, word in (("s_axis", "input_word"), ("m_axis", "result_word")):
        assert shell["streams"][stream] == {"word": word, "bytes": -(-manifest[word]["bits"] // 8)}
    header = (folder / "splitjoin_axi.h").read_text()
    assert "SPLITJOIN_ERRORS_RANGE_MASK 0x00000008u" in header
    assert "SPLITJOIN_PANES_LO 0x110u" in header
    assert load_manifest(folder).hash == manifest["hash"]
    capsys.readouterr()
    assert main(["lint", str(folder)]) == 0
    assert capsys.readouterr().out.count(": clean") == 2


@pytest.mark.long
def test_the_shell_of_an_aggregate_with_several_inputs_is_clean(tmp_path):
    parameters = AGGREGATE_PRESETS["tiny-aggregate"]
    files, ports = shell_files(parameters, "ab" * 32, AxiOptions(inputs=3))
    name, text = files["verilog"]
    (tmp_path / name).write_text(text)
    (tmp_path / "splitjoin.v").write_text(stub(parameters))
    assert lint(tmp_path / name, tmp_path / "splitjoin.v", top="splitjoin_axi") == ""
    slaves = [port["name"] for port in ports if port["name"].endswith("_tdata")]
    assert slaves == ["s_axis_in0_tdata", "s_axis_in1_tdata", "s_axis_in2_tdata", "m_axis_tdata"]
    assert "SPLITJOIN_LATE_INPUTS_0_IN2_MASK 0x00000004u" in files["c_header"][1]
    assert "SPLITJOIN_CONTROL_EXCLUDE" not in files["c_header"][1]


def test_options_of_the_shell_need_the_shell(tmp_path, capsys):
    arguments = ["generate", "--preset", "tiny", "--output", str(tmp_path / "bundle")]
    assert main([*arguments, "--axi-inputs", "2"]) == 2
    assert "Options of the AXI shell need --shell axi" in capsys.readouterr().err


def test_what_was_built_stays_when_a_shell_comes_and_the_shell_stays_too(tmp_path):
    folder = tmp_path / "bundle"
    plain = write_bundle(TINY, folder)
    (folder / "splitjoin.so").write_text("built from it")
    with_shell = write_bundle(TINY, folder, shells=["axi"])
    assert set(texts(folder)) == PARTS | SHELL | {"splitjoin.so"}
    assert json.loads((folder / "manifest.json").read_text()) == with_shell
    assert write_bundle(TINY, folder) == with_shell != plain
    assert set(texts(folder)) == PARTS | SHELL | {"splitjoin.so"}
    (folder / "splitjoin_axi.v").write_text("changed")
    write_bundle(TINY, folder)
    assert "changed" not in texts(folder).values()
    other = write_bundle(PRESETS["tiny"], folder)
    assert "shells" not in other
    assert set(texts(folder)) == PARTS


def test_generate_writes_a_shell_and_lint_reads_it(tmp_path, capsys):
    folder = str(tmp_path / "bundle")
    command = "generate --cores 1 --sub-window 4 --key x:8 --timestamp-bits 5 --shell axi --output"
    assert main([*command.split(), folder]) == 0
    assert main(["lint", folder]) == 0
    assert f"{folder}/splitjoin_axi.v: clean" in capsys.readouterr().out
    verilog = tmp_path / "bundle" / "splitjoin_axi.v"
    verilog.write_text(verilog.read_text().replace("splitjoin splitjoin (", "splitjoins s ("))
    assert main(["lint", folder]) == 1


def test_an_unknown_shell_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Shell must be one of axi, not 'pci'"):
        write_bundle(TINY, tmp_path / "bundle", shells=["pci"])
