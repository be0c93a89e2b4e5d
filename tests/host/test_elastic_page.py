# SPDX-License-Identifier: Apache-2.0
"""The programs and commands of docs/elastic.md run in turn, and print what it shows."""

from pathlib import Path
import re
import shlex

import pytest

from hdl.presets import PRESETS
from host.__main__ import main
from tests.host.simulated_bundle import simulated_bundle
from tests.host.tables import bundle

PAGE = Path(__file__).resolve().parents[2] / "docs" / "elastic.md"
DEVICE = "sim:build/demo"


def blocks(language):
    """Return the blocks of a language that use the accelerator of the page, or that show a text."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [text for text in found if language == "text" or DEVICE in text]


def run_programs(device):
    """Run the programs with another device."""
    Path("build").mkdir()
    programs, names = blocks("python"), {}
    assert len(programs) == 3
    for text in programs:
        exec(compile(text.replace(DEVICE, device), str(PAGE), "exec"), names)


def test_epochs_of_the_page_take_effect_where_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo = PRESETS["demo"]
    folder = bundle(
        tmp_path / "bundle",
        keys=["x32"] * len(demo.keys), cores=demo.cores, sub_window=demo.window.sub_window,
        timestamp_bits=demo.timestamp_bits,
    )  # fmt: skip
    run_programs(f"software:{folder}")
    told, _ = blocks("text")
    assert capsys.readouterr().out.startswith(told)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_whole_page_runs_on_the_simulated_accelerator(tmp_path, monkeypatch, capsys):
    device = simulated_bundle(PRESETS["demo"], tmp_path / "bundle")
    monkeypatch.chdir(tmp_path)
    run_programs(device)
    assert capsys.readouterr().out == "".join(blocks("text"))
    commands = re.findall(r"^\$ python -m host (.*)$", "".join(blocks("console")), re.MULTILINE)
    assert len(commands) == 3
    changes = []
    for command in commands:
        assert main(shlex.split(command.replace(DEVICE, device))) == 0
        changes += re.findall(r"^elastic: .*(\d+) changes", capsys.readouterr().err, re.MULTILINE)
    assert len(changes) == 2
