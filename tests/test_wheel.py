# SPDX-License-Identifier: Apache-2.0
"""The wheel holds all of the packages, and runs where there is no checkout."""

from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint
import json
import os
from pathlib import Path
import subprocess
import sys
import tomllib
import venv
import zipfile

import pytest

from tests.test_readme import block

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
#: The packages of the wheel, by the patterns that find them.
PACKAGES = [pattern.removesuffix("*") for pattern in SETUPTOOLS["packages"]["find"]["include"]]
REPORTS = sorted((ROOT / "docs" / "routing").glob("*.json"))
#: Packages of which mypy checks every function: a program that uses them can rely on their types.
TYPED = PROJECT["tool"]["mypy"]["files"]


def files_of_packages(root=ROOT):
    """Return the paths of all files that the packages consist of, relative to ``root``."""
    return {
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_of_the_packages_has_a_pattern_that_puts_it_into_the_wheel():
    patterns = ["*.py", *SETUPTOOLS["package-data"]["*"]]
    found = files_of_packages()
    names = {path: path.rpartition("/")[2] for path in found}
    assert [p for p, name in names.items() if not any(fnmatchcase(name, n) for n in patterns)] == []
    unused = [n for n in patterns if not any(fnmatchcase(name, n) for name in names.values())]
    assert set(unused) <= {"*.js", "*.css"}, "a pattern that no file matches"


def test_every_folder_with_code_is_a_package():
    folders = {(ROOT / path).parent for path in files_of_packages() if path.endswith(".py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_a_package_has_types_for_its_users_if_mypy_checks_it():
    marked = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert marked == {*TYPED}


def test_every_command_of_the_wheel_leads_to_a_function():
    commands = PROJECT["project"]["scripts"]
    assert commands
    for name, value in commands.items():
        assert callable(EntryPoint(name, value, "console_scripts").load())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a copy of the sources, in which no earlier build has left anything."""
    source, wheels = (tmp_path_factory.mktemp(name) for name in ("source", "wheels"))
    reports = [path.relative_to(ROOT) for path in REPORTS]
    for path in [*files_of_packages(), *reports, "pyproject.toml", "README.md", "LICENSE"]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes((ROOT / path).read_bytes())
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, source)
    (built,) = wheels.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of the programs of a new environment with the wheel and its extra ``spark``."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True)
    run(place / "bin" / "pip", "install", "-q", f"{wheel}[spark]")
    return place / "bin"


def run(*command, seconds=1200, **others):
    """Run a program that must succeed; return what it has printed."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True, text=True, timeout=seconds, check=False, **others,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    return done


def user(folder):
    """Return the environment of a user who has no checkout, no settings and an empty cache."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    return {**kept, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_wheel_holds_every_file_of_the_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    reports = {name for name in held if ".data/data/share/" in name}
    assert held - reports == files_of_packages()
    assert {name.rpartition("/")[2] for name in reports} == {path.name for path in REPORTS}


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_ten_lines_of_the_readme_run_from_any_folder_where_the_wheel_is_installed(
    installed, tmp_path
):
    program = f"{block('python')}\nfrom splitjoin.spark import explain\nprint(explain(pairs))\n"
    done = run(installed / "python", "-c", program, cwd=tmp_path, env=user(tmp_path))
    assert block("text") in done.stdout
    bundles = tmp_path / "cache" / "splitjoin" / "bundles"
    (bundle,) = bundles.iterdir()
    assert f"sim:{bundle}" in done.stdout
    assert "Building the default bundle" in done.stderr
    assert json.loads((bundle / "manifest.json").read_text())["clock"]["mhz"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_commands_run_from_any_folder_where_the_wheel_is_installed(installed, tmp_path):
    command, environment = installed / "splitjoin", user(tmp_path)
    there = {"cwd": tmp_path, "env": environment}
    assert run(command, "--version", **there).stdout.split()[1] == PROJECT["project"]["version"]
    assert "Everything that is required is there." in run(command, "host", "doctor", **there).stdout
    (tmp_path / "a.csv").write_text("t,k\n1,7\n3,8\n")
    (tmp_path / "b.csv").write_text("t,k\n2,7\n9,8\n")
    words = "host join --left a.csv --right b.csv --on k:k --time t:t --within 5 --output c.csv"
    run(command, *words.split(), **there)
    assert (tmp_path / "c.csv").read_text().splitlines()[1:] == ["1,7,2,7"]
    run(command, "spark", "demo", "--tuples", "2000", "--window", "200", **there)
    assert (tmp_path / "build" / "demo" / "report.html").is_file()
    run(command, *["spark", "zip", "--output", "packages.zip"], **there)
    with zipfile.ZipFile(tmp_path / "packages.zip") as archive:
        held = {*archive.namelist()}
    shipped = ("host/", "spark_offload/", "splitjoin/", "sim/__init__.py", "sim/model/")
    assert held == {path for path in files_of_packages() if path.startswith(shipped)}
