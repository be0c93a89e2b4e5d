# SPDX-License-Identifier: Apache-2.0
import json
import os
from pathlib import Path

from amaranth.lib import data
import pytest

from hdl.__main__ import main
from hdl.accelerator import Accelerator
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
import hdl.bundle
from hdl.bundle import write_bundle
from hdl.manifest import describe, fingerprint
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from hdl.words.inputs import input_word
from hdl.words.results import result_word
from host.protocol.manifest import Manifest, digest
from tests.hdl.packaging.packaged import TINY as SMALLER

TINY = PRESETS["tiny"]
#: Files of a bundle.
PARTS = {"manifest.json", "splitjoin.v", "splitjoin.json"}


@pytest.fixture
def short(monkeypatch):
    """Let Verilog and netlist be one line each, for tests that look at files only."""
    texts = ("module splitjoin; endmodule\n", "{}\n")
    monkeypatch.setattr(hdl.bundle, "generate", lambda parameters: texts)


def contents(folder):
    """Names and texts of a folder's files."""
    return {path.name: path.read_text() for path in folder.iterdir()}


def shape_at(layout, name):
    """Return the field at a dotted path of nested layouts, with its absolute offset."""
    offset = 0
    for part in name.split("."):
        field = layout[part]
        offset, layout = offset + field.offset, field.shape
    return offset, field.width


def test_a_bundle_is_what_the_host_reads(tmp_path):
    values = write_bundle(TINY, tmp_path / "deep" / "bundle")
    manifest = Manifest.load(tmp_path / "deep" / "bundle")
    assert manifest.values == values
    assert JoinParameters.from_dict(values["parameters"]) == TINY
    assert manifest.capacity == TINY.capacity
    assert set(contents(tmp_path / "deep" / "bundle")) == PARTS
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["bundle"]


def test_fields_are_where_the_layouts_have_them():
    parameters = TINY.with_(keys=(KeyField(name="x", bits=9), KeyField(name="yy", bits=64)))
    values = describe(parameters, "", verilog_file="splitjoin.v")
    places = {
        "input_word": (
            input_word(parameters),
            {
                "kind": "kind",
                "key.x": "body.tuple.key.x",
                "key.yy": "body.tuple.key.yy",
                "timestamp": "body.tuple.timestamp",
                "control.op": "body.control.op",
                "control.index": "body.control.index",
                "control.value": "body.control.value",
            },
        ),
        "result_word": (
            result_word(parameters),
            {
                "kind": "kind",
                "side": "side",
                **{name: f"body.pair.{name}" for name in ("probe", "lane", "row", "core")},
                **{
                    name: f"body.punctuation.{name}" for name in ("overflow", "disorder", "illegal")
                },
            },
        ),
    }
    for word, (layout, names) in places.items():
        assert isinstance(layout, data.Layout)
        assert values[word]["bits"] == layout.size
        assert set(values[word]["fields"]) == set(names)
        for name, path in names.items():
            field = values[word]["fields"][name]
            assert (field["offset"], field["bits"]) == shape_at(layout, path), name
    assert values["input_word"]["fields"]["key.x"]["signed"] is True
    assert values["input_word"]["fields"]["control.value"]["signed"] is True
    assert values["result_word"]["fields"]["lane"]["bits"] == 0


def test_two_tuples_and_two_results_lie_where_the_layouts_have_them():
    parameters = TINY.with_(engine="index", tuples_per_word=2)
    values = describe(parameters, "", verilog_file="splitjoin.v")
    fields = values["input_word"]["fields"]
    for name, path in {
        "first": "first",
        "key.x": "body.tuple.key.x",
        "control.value": "body.control.value",
        "both.r.key.x": "body.both.r.key.x",
        "both.s.timestamp": "body.both.s.timestamp",
    }.items():
        field = fields[name]
        assert (field["offset"], field["bits"]) == shape_at(input_word(parameters), path), name
    for name in ("key.x", "timestamp"):  # R's tuple is where a tuple alone would be
        assert fields[f"both.r.{name}"] == fields[name]
    alone = parameters.with_(tuples_per_word=1)
    one = describe(alone, "", verilog_file="splitjoin.v")["result_word"]
    two = values["result_word"]
    assert two["bits"] == 2 * one["bits"] == result_word(parameters).size
    for name, field in one["fields"].items():
        assert two["fields"][name] == field
        second = {**field, "offset": field["offset"] + one["bits"]}
        assert two["fields"][f"two.{name}"] == second
    assert len(two["fields"]) == 2 * len(one["fields"])
    assert values["input_kinds"]["BOTH"] == values["result_kinds"]["NONE"] == 3
    manifest = Manifest.from_dict(values)
    assert manifest.tuples_per_word == 2
    assert manifest.result.bits == one["bits"]
    assert set(manifest.result.fields) == set(one["fields"])


def test_host_and_generator_agree_on_the_hash():
    values = describe(TINY, "module splitjoin;", verilog_file="splitjoin.v")
    assert values["hash"] == digest(values, "module splitjoin;")
    assert fingerprint({**values, "tools": {}, "hash": ""}, "module splitjoin;") == values["hash"]
    assert fingerprint(values, "module another;") != values["hash"]


def test_other_parts_are_in_the_hash_by_their_checksums():
    def hash_of(netlist):
        parts = [("netlist", "splitjoin.json", netlist)]
        values = describe(TINY, "module splitjoin;", verilog_file="splitjoin.v", others=parts)
        assert values["files"]["netlist"] == "splitjoin.json"
        assert values["hash"] == digest(values, "module splitjoin;")
        return values["hash"]

    assert hash_of("{}") != hash_of("{} ")


def test_the_same_bundle_is_left_as_it_is(tmp_path):
    folder = tmp_path / "bundle"
    write_bundle(TINY, folder)
    (folder / "splitjoin.so").write_text("built from it")
    write_bundle(TINY, folder)
    assert "splitjoin.so" in contents(folder)
    write_bundle(SMALLER, folder)
    assert "splitjoin.so" not in contents(folder)
    assert (
        Manifest.load(folder).parameters["window"]["sub_window"]
        == SMALLER.window.sub_window
        != TINY.window.sub_window
    )


def test_a_failure_leaves_the_older_bundle_and_nothing_else(tmp_path, monkeypatch, short):
    folder = tmp_path / "bundle"
    write_bundle(TINY, folder)
    before = contents(folder)

    def fail(new, old, aside):
        raise OSError("No space left on device")

    monkeypatch.setattr(hdl.bundle, "replace_folder", fail)
    with pytest.raises(OSError, match="No space"):
        write_bundle(TINY.with_(sub_window=9), folder)
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_an_older_bundle_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path, monkeypatch, short, error
):
    folder = tmp_path / "bundle"
    write_bundle(TINY, folder)
    before = contents(folder)
    rename = Path.rename

    def fail(path, target):
        if path.name == target.name:  # the new one; the older one has gone aside already
            assert not folder.exists()
            raise error
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(type(error)):
        write_bundle(TINY.with_(sub_window=9), folder)
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_what_a_killed_process_left_is_removed_and_what_is_being_written_is_not(tmp_path, short):
    left, written = tmp_path / ".a[b].1.partial", tmp_path / ".a[b].2.partial"
    for place in (left, written, tmp_path / ".ab.3.partial"):
        (place / "a[b]").mkdir(parents=True)
        (place / "a[b]" / "splitjoin.v").write_text("half")
    for place in (left, tmp_path / ".ab.3.partial"):
        os.utime(place, (0, 0))
    write_bundle(TINY, tmp_path / "a[b]")
    assert {path.name for path in tmp_path.iterdir()} == {
        "a[b]", written.name, ".ab.3.partial",
    }  # fmt: skip
    (tmp_path / "a[b]" / ".splitjoin.so.12.partial").write_text("half")
    write_bundle(TINY.with_(sub_window=9), tmp_path / "a[b]")
    assert set(contents(tmp_path / "a[b]")) == PARTS


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(ValueError, match=r"holds 'index.html', which belongs to no bundle"):
        write_bundle(TINY, tmp_path)
    with pytest.raises(ValueError, match="is a file, not a folder"):
        write_bundle(TINY, tmp_path / "index.html")


def test_generate_takes_every_parameter(tmp_path, capsys, short):
    options = (
        "--preset tiny --cores 3 --sub-window 5 --lanes 2 --probes 2 --fan-out 2 --fan-in 3 "
        "--key a:7 --key b:12:unsigned --timestamp-bits 9 --probe-bits 3 --comparator equality"
    )
    assert main(["generate", *options.split(), "--output", str(tmp_path / "bundle")]) == 0
    assert JoinParameters.from_dict(
        json.loads((tmp_path / "bundle" / "manifest.json").read_text())["parameters"]
    ) == JoinParameters.of(
        cores=3, sub_window=5, lanes=2, probes=2, fan_out=2, fan_in=3, timestamp_bits=9,
        probe_bits=3, comparator="equality",
        keys=(KeyField(name="a", bits=7), KeyField(name="b", bits=12, signed=False)),
    )  # fmt: skip
    assert "3 cores x 5 tuples" in capsys.readouterr().out


def test_presets_are_listed(capsys):
    assert main(["presets"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        *PRESETS,
        *AGGREGATE_PRESETS,
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--preset huge", "Preset must be one of tiny"),
        ("--cores 0", "'cores' must be an integer of at least 1, not 0"),
        ("--cores many", "invalid int value: 'many'"),
        ("--key x", "expected NAME:BITS"),
        ("--key x:65", "must have 1 to 64 bits, not 65"),
        ("--key X:8", "must be a lower-case identifier, not 'X'"),
        ("--key x:8 --key x:9", "Key field names must differ"),
        ("--comparator custom", "Comparator 'custom' needs parameter 'predicate' or 'where'"),
        ("--predicate nowhere:near", "Predicate 'nowhere:near' is not an importable"),
    ],
)
def test_bad_parameters_are_a_sentence_and_exit_code_2(tmp_path, capsys, options, message):
    try:
        code = main(["generate", *options.split(), "--output", str(tmp_path / "bundle")])
    except SystemExit as error:  # of the parser of arguments
        code = error.code
    assert code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_what_was_generated_a_moment_ago_is_not_generated_again(generated_once, monkeypatch):
    made = []

    def counted(parameters):
        made.append(parameters)
        return Accelerator(parameters)

    monkeypatch.setattr(hdl.bundle, "make_accelerator", counted)
    monkeypatch.setattr(hdl.bundle, "generate_once", generated_once)
    monkeypatch.setattr(hdl.bundle, "to_netlist", lambda accelerator: (str(len(made)), ""))
    generated_once.cache_clear()
    try:
        texts = [hdl.bundle.generate(TINY) for _ in range(2)]
    finally:
        generated_once.cache_clear()  # of what is no Verilog
    assert texts == [("1", "")] * 2
    assert made == [TINY]
    own = TINY.with_(comparator="custom", predicate="tests.hdl.test_accelerator:nearby")
    for _ in range(2):
        hdl.bundle.generate(own)
    assert made == [TINY, own, own]
