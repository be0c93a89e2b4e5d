# SPDX-License-Identifier: Apache-2.0
"""The command ``splitjoin`` leads to the commands of the four packages."""

from importlib import import_module
import os
import subprocess
import sys
import tomllib

import pytest

from splitjoin.__main__ import COMMANDS, main

# Runs `splitjoin` where a module is missing, or where loading it is interrupted.
HINDERED = """
import sys
from splitjoin.__main__ import main

class Hindrance:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            if sys.argv[2] == "missing":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Hindrance())
sys.exit(main(sys.argv[3:]))
"""


def hindered(root, module, how, *words):
    return subprocess.run(
        [sys.executable, "-c", HINDERED, module, how, *words],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_names_the_command_that_was_called(capsys, name):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: splitjoin {name} [-h]")


def test_errors_name_the_command_that_was_called(capsys, tmp_path):
    assert main(["hdl", "lint", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("splitjoin hdl: Folder ")
    assert main(["sim", "build"]) == 2
    assert capsys.readouterr().err.startswith("splitjoin sim: Give either a BUNDLE ")
    assert main(["host", "selftest", "nothing:"]) == 2
    assert capsys.readouterr().err.startswith("splitjoin host selftest: ")
    (tmp_path / "file").touch()
    assert main(["spark", "zip", "--output", str(tmp_path / "file" / "packages.zip")]) == 1
    assert capsys.readouterr().err.startswith("splitjoin spark zip: ")


def test_help_lists_the_packages_and_loads_none(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert [name for name, command in COMMANDS.items() if command.purpose in said] == [*COMMANDS]


@pytest.mark.parametrize("words", [[], ["nothing"], ["--nothing"]])
def test_a_package_must_be_named(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "PACKAGE" in capsys.readouterr().err


def test_the_version_is_that_of_the_project(capsys, root):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert capsys.readouterr().out == f"splitjoin {project['version']}\n"


def test_every_extra_that_a_message_names_exists(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert {command.extra for command in COMMANDS.values()} <= {*project["optional-dependencies"]}
    assert all(import_module(command.package) for command in COMMANDS.values())


def test_a_missing_package_is_named_with_the_extra_that_brings_it(root):
    done = hindered(root, "amaranth", "missing", "hdl", "presets")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "splitjoin hdl: The Python package amaranth is needed for this command; install the kit "
        "with its extra: pip install 'splitjoin-kit[hdl]'.\n"
    )


def test_a_missing_part_of_the_kit_is_a_defect_and_keeps_its_traceback(root):
    done = hindered(root, "host.cli", "missing", "host", "types")
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'host.cli'\n")
    assert "Traceback" in done.stderr


def test_an_interrupt_while_a_package_is_loaded_is_one_line(root):
    done = hindered(root, "pyarrow", "interrupted", "host", "join")
    assert done.stderr == "splitjoin host: interrupted; nothing was written.\n"
    assert done.returncode == 130
