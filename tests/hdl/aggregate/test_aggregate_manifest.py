# SPDX-License-Identifier: Apache-2.0
import json

import numpy as np
import pytest

from hdl.__main__ import main, summary
from hdl.aggregate.accelerator import AggregateAccelerator, describe_aggregate
from hdl.aggregate.words import aggregate_word, value_result
from hdl.bundle import write_bundle
from hdl.verilog.conversion import to_verilog
from hdl.verilog.lint import lint
from host.errors import DeviceError, ManifestError
from host.operators.windowed import Output, WindowedOperator
from host.protocol.codecs import AggregateCodec
from host.protocol.manifest import AggregateManifest, Manifest, load_manifest
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.input_program import InputProgram
from tests.hdl.aggregate.operators import aggregate_parameters, operator

#: What `--operator` names.
TRADES = operator("sum", "max", size=6, advance=2)


def manifest_of(parameters):
    values = describe_aggregate(parameters, "", verilog_file="splitjoin.v")
    return AggregateManifest.from_dict(json.loads(json.dumps(values)))


@pytest.mark.long
def test_a_bundle_is_an_accelerator_whose_manifest_the_host_reads(tmp_path, capsys):
    reference = f"{__name__}:TRADES"
    place = str(tmp_path / "bundle")
    arguments = ["--operator", reference, "--cores", "2", "--key-capacity", "12"]
    assert main(["generate", *arguments, "--output", place]) == 0
    assert "2 cores, operator small for 12 keys, 3 panes" in capsys.readouterr().out
    manifest = load_manifest(place)
    assert isinstance(manifest, AggregateManifest)
    assert WindowedOperator.from_dict(manifest.operator).to_dict() == TRADES.to_dict()
    assert (manifest.cores, manifest.keys, manifest.panes) == (2, 12, 3)
    assert manifest.slides_by == {"total": "delta", "greatest": "panes"}
    verilog = (tmp_path / "bundle" / "splitjoin.v").read_text()
    parameters = aggregate_parameters(TRADES, cores=2, keys=12, timestamp_bits=32)
    assert verilog == to_verilog(AggregateAccelerator(parameters))
    assert lint(tmp_path / "bundle" / "splitjoin.v") == ""
    with pytest.raises(ManifestError, match="has a manifest of format 6, this kit reads 8"):
        Manifest.load(place)
    path = tmp_path / "bundle" / "manifest.json"
    path.write_text(path.read_text().replace('"keys": 12', '"keys": 13'))
    with pytest.raises(ManifestError, match="was changed after it was generated"):
        load_manifest(place)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"having": "total > 3"}, "; sends reductions: having are left"),
        ({"outputs": [Output("twice", "total * 2")], "having": "1"}, "its outputs and having are"),
        ({"outputs": [Output("total", "total", per="greatest")]}, "its outputs are left"),
    ],
)
def test_what_no_circuit_computes_is_told(changes, said):
    told = summary(aggregate_parameters(TRADES.with_(**changes)))
    assert said in told
    assert bool(said) == ("to who reads the results" in told)


def test_a_manifest_of_a_join_is_none_of_an_aggregate():
    with pytest.raises(ManifestError, match="this kit reads 6 here; generate it by"):
        AggregateManifest.from_dict({"format": 4})
    with pytest.raises(ManifestError, match=r"incomplete manifest \(KeyError\('kit'\)\)"):
        AggregateManifest.from_dict({"format": 6})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "aggregate", "--lanes", "2"], "describe an aggregate, but --lanes is of a"),
        (["--panes", "2"], "describe a join, but --panes is of an aggregate: give --operator"),
        (["--operator", "nowhere:NAME"], "Operator 'nowhere:NAME' cannot be imported"),
        (["--operator", "a:B", "--preset", "aggregate"], "says all that preset 'aggregate' would"),
        (
            ["--preset", "aggregate", "--shell", "axi", "--axi-r-inputs", "1"],
            "Tuples of an aggregate have no sides",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, message, tmp_path, capsys):
    assert main(["generate", *arguments, "--output", str(tmp_path / "bundle")]) == 2
    assert message in capsys.readouterr().err


def test_a_command_for_joins_says_so_of_an_aggregate(capsys):
    assert main(["bitstream", "--board", "ulx3s-85f", "--preset", "aggregate"]) == 2
    assert "This command knows joins only" in capsys.readouterr().err


def test_the_host_packs_words_and_unpacks_results_as_the_circuit_has_them():
    described = operator("sum", "min")
    parameters = aggregate_parameters(described, cores=3, pane_bits=9)
    manifest = manifest_of(parameters)
    codec = AggregateCodec(manifest)
    program = InputProgram(described, parameters)
    program.add(7, item=3, v=-5)
    program.add(300, item=15, v=127)
    program.reach(70_000)  # beyond all timestamps
    words = codec.pack_tuples([7, 300], {"item": [3, 15], "v": [-5, 127]}).tolist()
    words += codec.pack_control("WATERMARK", value=70_000).tolist()
    assert manifest.input_word.bits == aggregate_word(parameters).size
    assert [sum(part << 64 * n for n, part in enumerate(row)) for row in words] == [
        word.as_value().value for word in program.words
    ]
    layout = value_result(parameters)
    value = {"key": 14, "window": {"total": -700, "least": -128}}
    constants = [
        {"kind": 0, "boundary": 70_000, "body": {"value": value}},
        {"kind": 1, "boundary": 70_000, "body": {"faults": {"range": 1, "key": 9}}},
    ]
    bits = [layout.const(constant).as_value().value for constant in constants]
    assert decoded(parameters, bits)[0] == (70_000, 14, (-700, -128))
    rows = results_array(manifest, bits)
    found = codec.fields(rows)
    assert (found["boundary"][0], found["key"][0]) == (70_000, 14)
    assert {name: found[f"window.{name}"][0] for name in value["window"]} == value["window"]
    codec.check(rows[:1])
    with pytest.raises(
        DeviceError, match=r"fault \(range\) by boundary 70000: a reduction of key 9"
    ):
        codec.check(rows)


def results_array(manifest, bits):
    columns = manifest.result_word.columns
    rows = [[word >> 64 * n & (1 << 64) - 1 for n in range(columns)] for word in bits]
    return np.array(rows, np.uint64)


@pytest.mark.long
def test_a_bundle_of_the_same_operator_stays_as_it_is(tmp_path):
    parameters = aggregate_parameters(TRADES)
    first = write_bundle(parameters, tmp_path / "bundle")
    written = (tmp_path / "bundle" / "splitjoin.v").stat().st_mtime_ns
    assert write_bundle(parameters, tmp_path / "bundle") == first
    assert (tmp_path / "bundle" / "splitjoin.v").stat().st_mtime_ns == written
